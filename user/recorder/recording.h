/* SPDX-License-Identifier: MIT */
/*
 * One recording of a process: `duet record` in a child, which writes its samples into memory that we share, in the
 * format duet. All reports are made from that, during the recording and after it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "jvms/flight_recording.h"
#include "recorder/arguments.h"
#include "recorder/recording_child.h"
#include "recorder/report_shape.h"
#include "recorder/thread_filter.h"

struct recording {
	pid_t child; /* 0: no recording runs */
	int log; /* the child's messages; -1 = none */
	uint64_t begun_ns; /* CLOCK_MONOTONIC */
	uint64_t ended_ns;
	const struct asprof_arguments *begun; /* of the last start or resume; not owned */
	struct report_shape shape; /* of all reports */
	bool is_ending; /* the process is ending or has ended */
	struct flight_recording jdk; /* the JVM's own recording; started with jfrsync */
	struct buf jdk_why; /* why its events are missing; empty: they are not */
	struct writer_jfr jfr; /* options that JFR files have from the start command */
	struct buf settings; /* the same */
	uint64_t begun_cycles; /* clock_cycles() at begun_ns; 0: nanoseconds are the ticks of JFR files */
	struct thread_choices choices; /* of the program; they apply if the filter has no text */
	const char *source; /* writer_options.source of all reports; static text */
	bool is_report_empty; /* the last report shows stacks alone, and has none */
	bool is_thin_reported; /* for the caller: recording_is_thin() was reported to the user */
	struct recording_child waiting; /* for the next recording */
	struct vec(int) parts; /* descriptors; the last one is the current recording, those before it were resumed */
};

/* Of all parts. */
struct recording_sums {
	uint64_t samples;
	uint64_t walk_ns; /* CPU time of taking them */
};

void recording_init(struct recording *recording);
/*
 * Returns when the first sample may be taken: 0, or -errno with why it cannot be recorded. Forgets what was before. The
 * arguments must stay until the recording is released or started again.
 */
int recording_start(struct recording *recording, const struct recording_subject *subject,
		    const struct asprof_arguments *arguments, struct buf *why);
/* The same; reports will also contain what was recorded before. */
int recording_resume(struct recording *recording, const struct recording_subject *subject,
		     const struct asprof_arguments *arguments, struct buf *why);
/*
 * Prepares a recording that may be started soon, so that its start takes less time. If this fails, or the arguments are
 * others then, the start does the work.
 */
void recording_prepare(struct recording *recording, const struct recording_subject *subject,
		       const struct asprof_arguments *arguments);
/* Ends the child. What it recorded stays. */
void recording_stop(struct recording *recording);
/* Call after SIGCHLD. Returns true if the child has ended by itself because the process has ended. */
bool recording_has_ended(struct recording *recording);
/* Makes a report of all samples until now. Returns its descriptor, or -errno with one sentence in `why`. */
int recording_report(struct recording *recording, const struct asprof_arguments *arguments, struct buf *why);
int recording_sum(struct recording *recording, struct recording_sums *ret); /* returns 0 or -errno */
/* Returns true if the recording has neared its limit of memory, so that fewer samples are kept. */
bool recording_is_thin(const struct recording *recording);
uint64_t recording_bytes(const struct recording *recording); /* memory that it takes */
void recording_release(struct recording *recording);
