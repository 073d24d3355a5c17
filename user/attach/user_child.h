/* SPDX-License-Identifier: MIT */
/*
 * A child that works on files in the root directory of another process, with that process's user and no capability: a
 * folder there may be a mount of that user, and its file system a server of that user. The user can stop or block the
 * child, so the parent waits for it only with deadlines.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct user_child {
	pid_t pid; /* 0: none */
	int socket; /* SOCK_SEQPACKET, to the child */
	uid_t uid; /* user of the process */
};

#define USER_CHILD_NONE {.socket = -1}

/* The child's work. `root` is a descriptor of the process's root directory. The child ends when it returns. */
typedef void (*user_child_work)(int socket, int root, const void *context);

/*
 * Starts the child. If it cannot become the process's user, its first result is the error. Returns 0 or -errno: -ESRCH
 * when the process has ended, -EBUSY when too many children for this user did not end.
 */
int user_child_start(struct user_child *child, pid_t pid, uint64_t start_ticks, user_child_work work,
		     const void *context);
/* Returns the next result of the child, which is -errno after a failure, or -ETIMEDOUT. */
int user_child_await(const struct user_child *child, uint64_t timeout_ms);
/* Kills the child. One that does not end at once is collected later. Does nothing when there is none. */
void user_child_release(struct user_child *child);

void user_child_answer(int socket, int result); /* in the child */
