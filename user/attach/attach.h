/* SPDX-License-Identifier: MIT */
/*
 * Brings the agent into a running HotSpot JVM of any user and in any namespaces: HotSpot's dynamic attach (SIGQUIT,
 * /tmp/.java_pidN), a copy of the agent library where the target can read it, and a connection to the agent's control
 * socket. All of this runs in a child process, because it changes namespaces and credentials and may hang. The loader
 * only waits for one packet from the child.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "duet_agent.h"

#define ATTACH_TIMEOUT_NS (5ull * 1000000000)

enum attach_kind {
	ATTACH_RUNNING, /* the JVM already ran when duet started, or the user named it */
	ATTACH_STARTING, /* the JVM was just noticed: wait a moment first, and do not attach if it ends before that */
	ATTACH_COMMAND, /* sends `command` instead of an agent; the result's socket brings the JVM's reply */
	ATTACH_LOADED, /* the JVM has loaded the agent itself (-agentpath): only connect */
};

struct attach_target {
	pid_t pid;
	pid_t ns_pid;
	uint64_t start_ticks; /* the child compares it again, so that a process that reuses the pid is not touched */
	uid_t uid;
	gid_t gid;
	enum attach_kind kind;
	const char *const *command; /* ATTACH_COMMAND: HotSpot's command and its three arguments, none is NULL */
	uint64_t timeout_ns; /* longest time for the whole attach; then the child is killed. 0 = ATTACH_TIMEOUT_NS */
};

struct attach_result {
	int error; /* 0 or -errno */
	int socket; /* when error is 0: the connected control socket (O_NONBLOCK), owned by the caller; else -1 */
	char why[256]; /* when error is not 0, one sentence: what failed, on what, why, and what to do */
	uint64_t cpu_ns; /* CPU time that the child used */
};

/* Where an agent listens, and the secret by which it recognizes its loader. Both are strings. */
struct attach_control {
	char name[DUET_NAME_MAX + 1]; /* of an abstract socket; other users can see this name */
	char secret[DUET_SECRET_DIGITS + 1];
};

struct attach {
	pid_t child;
	int fd; /* becomes readable when the child has its result or has ended */
	int life; /* a pipe; reaches end of file when the child and everything it started have ended */
	pid_t pid; /* of the JVM */
	uid_t uid; /* the JVM's user */
	uint64_t timeout_ns;
	/* CLOCK_MONOTONIC; then call attach_abort(). The child's own is earlier, but its user can stop it. */
	uint64_t deadline_ns;
};

/* Makes a random name and secret for a new agent in `pid`; nobody can guess either. Returns 0 or -errno. */
int attach_control_new(struct attach_control *ret_control, pid_t pid);

/* Starts a child that attaches. Returns 0 or -errno: -EBUSY when too many attaches to JVMs of the same user hang. */
int attach_start(struct attach *attach, const struct attach_target *target, const struct attach_control *control);
/*
 * Reads the result, closes `fd`, and ends the child. Waits while `fd` is not readable, as signals_wait() does; after
 * the deadline it calls attach_abort().
 */
void attach_finish(struct attach *attach, struct attach_result *ret);
/* Sends SIGTERM to the child, which then removes its files from the target and ends. Does not wait for it. */
void attach_abort(struct attach *attach);

/*
 * Writes the embedded agent library to a file in a new folder of its own, for `java -agentpath:`, and stores its path.
 * Returns 0 or -errno. Remove the file with attach_remove_library().
 */
int attach_place_library(char *path, size_t size);
void attach_remove_library(const char *path);

/* The agent library, embedded at build time. */
extern const unsigned char attach_library[];
extern const size_t attach_library_bytes;
