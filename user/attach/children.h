/* SPDX-License-Identifier: MIT */
/*
 * Collects attach children that do not end at once. Such a child runs as the target's user, who can stop it. It also
 * reads the target's file systems, where a hostile FUSE server can block it so that even SIGKILL does not end it at
 * once. So the loader never waits for a child: one that has not ended is remembered here and collected later.
 *
 * The same holds for processes that the child started (place.h). The loader sees only that some process still
 * holds the other end of the pipe `life`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Waits up to 100 ms for a child that is about to end. Returns true when it was collected, with its CPU time. */
bool children_collect_soon(pid_t child, int *ret_status, uint64_t *ret_cpu_ns);
/*
 * Remembers a child until it has ended; kills it after `kill_ns` (CLOCK_MONOTONIC). `child` is 0 when it was already
 * collected and only what it started may be left. Takes ownership of `life` (O_NONBLOCK). `uid` is the user of the
 * target that the child worked for.
 */
void children_leave(pid_t child, int life, uid_t uid, uint64_t kill_ns);
/* Call periodically. Collects the children that have ended and kills those that are past their time. */
void children_collect(uint64_t now_ns);
/* Collects, and returns how many of this user are left. A child whose descendants are left counts too. */
size_t children_left(uid_t uid);
/* Call before the loader exits. Waits until no child is left. Gives up shortly after the last child was killed. */
void children_wait(void);
/*
 * In a child: takes this user and only this group, and gives up all capabilities, also when that user is root. The user
 * cannot trace the child or read its memory. Cannot be undone. 0 or -errno.
 */
int children_become(uid_t uid, gid_t gid);

/*
 * A child that works on files in the root directory of another process, with that process's user and no capability: a
 * folder there may be a mount of that user, and its file system a server of that user. The user can stop or block the
 * child, so the parent waits for it only with deadlines.
 */
struct user_child {
	pid_t pid; /* 0: none */
	int socket; /* SOCK_SEQPACKET, to the child */
	uid_t uid; /* user of the process */
};

#define USER_CHILD_NONE {.socket = -1}

/* The child's work. `root` is a descriptor of the process's root directory. The child ends when it returns. */
typedef void (*user_child_work)(int socket, int root, const void *context);

/*
 * Starts the child; with `pid` 0 one with our own rights and no root, as our own files too may be on a disk, or be a
 * pipe, that does not answer. If it cannot become the process's user, its first result is the error. Returns 0 or
 * -errno: -ESRCH when the process has ended, -EBUSY when too many children for this user did not end.
 */
int user_child_start(struct user_child *child, pid_t pid, uint64_t start_ticks, user_child_work work,
		     const void *context);
#define USER_CHILD_MS 5000 /* for one answer of a child that has little to do */
/* Returns the next result of the child, which is -errno after a failure; or -ETIMEDOUT, or -EINTR as signals_wait(). */
int user_child_await(const struct user_child *child, uint64_t timeout_ms);
/* The same after user_child_copy(), which may be slow but not stand still: 5 s for a megabyte, and 1 s on average. */
int user_child_await_copy(const struct user_child *child);
/* Kills the child. One that does not end at once is collected later. Does nothing when there is none. */
void user_child_release(struct user_child *child);

/* In the child. */
void user_child_answer(int socket, int result);
#define USER_CHILD_PIECE (1u << 20) /* bytes */
#define USER_CHILD_GOES_ON 1 /* the answer for each piece of what user_child_await_copy() waits for */
int user_child_copy(int socket, int from, uint64_t bytes, int to); /* as io_copy(); answer its result afterwards */
