/* SPDX-License-Identifier: MIT */
/*
 * One recording of a process: `duet record` in a child, whose samples go into memory of ours, in the format duet. All
 * reports are made from that, during the recording and after it.
 */
#ifndef ASPROF_RECORDING_H
#define ASPROF_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "asprof/arguments.h"
#include "base/vec.h"

/* Initialize with RECORDING_NONE. */
struct recording {
	pid_t child; /* 0: none runs */
	int log; /* what the child says; -1 = none */
	uint64_t begun_ns; /* CLOCK_MONOTONIC */
	uint64_t ended_ns;
	struct vec(int) parts; /* descriptors; those before the last were resumed */
};

#define RECORDING_NONE {.log = -1}

/* Returns when the first sample may be taken: 0, or -errno with why it cannot be recorded. Forgets what was before. */
int recording_start(struct recording *recording, pid_t pid, const struct asprof_arguments *arguments, struct buf *why);
/* The same; reports will also contain what was recorded before. */
int recording_resume(struct recording *recording, pid_t pid, const struct asprof_arguments *arguments, struct buf *why);
/* Ends the child. What it recorded stays. */
void recording_stop(struct recording *recording);
/* Call when SIGCHLD has come. Returns true if the child has ended by itself: the process is gone. */
bool recording_has_ended(struct recording *recording);
/* Makes the report of what was recorded until now. Returns its descriptor, or -errno with why. */
int recording_report(const struct recording *recording, const struct asprof_arguments *arguments, struct buf *why);
void recording_release(struct recording *recording);

#endif
