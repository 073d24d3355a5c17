/* SPDX-License-Identifier: MIT */
/*
 * `duet record -- CMD`: a child that waits at a gate until the collector knows its pid, then becomes CMD. When the gate
 * is closed without a word it ends: a loader that fails leaves nothing running. A java command gets the agent as its
 * first option, so that it is profiled from its first instruction; anything else runs as it is.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/attach.h"

struct launch {
	char **argv;
	const struct attach_control *control; /* for the agent */
	pid_t pid;
	int gate; /* closing it ends a child that was not let go; caller's */
	int exec_error; /* reads errno when exec failed, nothing when it worked */
	bool is_java;
	char libjvm[PATH_MAX]; /* of a java command, where a JDK has it; else "" */
};

/*
 * Forks the waiting child. The agent library's path, "" when none was placed,
 * is the caller's to remove. 0 or -errno.
 */
int launch_start(struct launch *launch, char *library, size_t size);
/* Lets the child go: 0 when CMD runs, -errno when exec failed. */
int launch_run(struct launch *launch);

#endif
