/* SPDX-License-Identifier: MIT */
/*
 * One recording of a process: `duet record` in a child, which writes its samples into memory that we share, in the
 * format duet. All reports are made from that, during the recording and after it.
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
	pid_t child; /* 0: no recording runs */
	int log; /* the child's messages; -1 = none */
	uint64_t begun_ns; /* CLOCK_MONOTONIC */
	uint64_t ended_ns;
	struct vec(int) parts; /* descriptors; the last one is the current recording, those before it were resumed */
};

#define RECORDING_NONE {.log = -1}

/* Returns when the first sample may be taken: 0, or -errno with the reason in `why`. Drops earlier recordings. */
int recording_start(struct recording *recording, pid_t pid, const struct asprof_arguments *arguments, struct buf *why);
/* The same, but keeps earlier recordings: reports contain these too. */
int recording_resume(struct recording *recording, pid_t pid, const struct asprof_arguments *arguments, struct buf *why);
/* Ends the child. Its samples stay. */
void recording_stop(struct recording *recording);
/* Call after SIGCHLD. Returns true if the child has ended by itself because the process has ended. */
bool recording_has_ended(struct recording *recording);
/* Makes a report of all samples until now. Returns its descriptor, or -errno with one sentence in `why`. */
int recording_report(const struct recording *recording, const struct asprof_arguments *arguments, struct buf *why);
void recording_release(struct recording *recording);

#endif
