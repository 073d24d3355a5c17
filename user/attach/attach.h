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
	int socket; /* connected control socket when error is 0, owned by the caller; else -1 */
	char why[256]; /* one sentence when error: what failed, on what, why, the way out */
};

struct attach {
	pid_t child;
	int fd; /* becomes readable when the child is done */
	pid_t pid; /* of the JVM */
	uint64_t timeout_ns;
};

/* The abstract name a new control socket of `pid` gets: unguessable, at most DUET_NAME_MAX bytes. */
void attach_control_name(char *name, size_t size, pid_t pid);

/* 0 or -errno. `control` is the name passed to the agent as control=NAME. */
int attach_start(struct attach *attach, const struct attach_target *target, const char *control);
/* Once fd is readable (blocks otherwise): collects the child, closes fd. */
void attach_finish(struct attach *attach, struct attach_result *ret);
/* Ends and collects the child, which first removes what it placed in the target. */
void attach_abort(struct attach *attach);

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
