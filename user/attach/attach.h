/* SPDX-License-Identifier: MIT */
/*
 * Bringing the agent into a running HotSpot JVM, whatever its user and
 * namespaces: dynamic attach (SIGQUIT, /tmp/.java_pidN), the agent library placed
 * where the target can read it, and the control socket connected. All of it happens in a
 * child process, which may switch namespaces and credentials and may hang; the
 * loader only waits for one packet.
 */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "duet_agent.h"

#define ATTACH_TIMEOUT_NS (5ull * 1000000000)

enum attach_kind {
	ATTACH_RUNNING, /* it was there, or somebody asked for it */
	ATTACH_STARTING, /* has just been noticed: spared if it ends at once */
	ATTACH_LOADED, /* the agent is there already (-agentpath): only connect */
};

struct attach_target {
	pid_t pid;
	pid_t ns_pid;
	uint64_t start_ticks; /* checked again in the child: a reused pid is not touched */
	uid_t uid;
	gid_t gid;
	enum attach_kind kind;
	uint64_t timeout_ns; /* of the whole attach, 0 = ATTACH_TIMEOUT_NS; then the child is killed */
};

struct attach_result {
	int error; /* 0 or -errno */
	int socket; /* connected (O_NONBLOCK) control socket when error is 0, the caller's; else -1 */
	char why[256]; /* one sentence when error: what failed, on what, why, the way out */
	uint64_t cpu_ns; /* that the child took */
};

/* Where an agent listens, and what it takes for proof that its loader calls. Both strings. */
struct attach_control {
	char name[DUET_NAME_MAX + 1]; /* of an abstract socket, which others see */
	char secret[DUET_SECRET_DIGITS + 1];
};

struct attach {
	pid_t child;
	int fd; /* becomes readable when the child is done */
	int life; /* at its end once the child and all that it started have ended */
	pid_t pid; /* of the JVM */
	uid_t uid; /* its user */
	uint64_t timeout_ns;
	/* CLOCK_MONOTONIC. The child keeps one of its own, unless the target's user stops it: then abort the attach. */
	uint64_t deadline_ns;
};

/* For a new agent in `pid`: neither can be guessed. 0 or -errno. */
int attach_control_new(struct attach_control *ret_control, pid_t pid);

/* 0 or -errno; -EBUSY when too many attaches to JVMs of the target's user hang. */
int attach_start(struct attach *attach, const struct attach_target *target, const struct attach_control *control);
/* Once fd is readable (blocks otherwise): closes fd, ends the child. */
void attach_finish(struct attach *attach, struct attach_result *ret);
/* Tells the child to end, which first removes what it placed in the target. Does not wait for it. */
void attach_abort(struct attach *attach);
/* To be called now and then: collects children that were told to end, kills those that do not. */
void attach_collect(uint64_t now_ns);
/* Before the loader ends: until all of them have, for a second or two at most. */
void attach_wait_aborted(void);

/*
 * The embedded agent library as a file for `java -agentpath:`, in a new
 * private folder. 0 or -errno; remove with attach_remove_library().
 */
int attach_place_library(char *path, size_t size);
void attach_remove_library(const char *path);

/* The agent as embedded at build time. */
extern const unsigned char attach_library[];
extern const size_t attach_library_bytes;

#endif
