/* SPDX-License-Identifier: MIT */
/*
 * Gives the events and stacks of a recording the shape that async-profiler's callers expect. A recording has every
 * frame down to the thread's entry, and an event for each word; --cstack, -j and the format choose what a report shows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "recorder/arguments.h"
#include "writers/writer.h"

enum stack_shape {
	STACK_VM, /* Java from its first frame on, and native frames at the leaf only; threads without Java have all */
	STACK_VMX, /* all frames */
	STACK_FP, /* as STACK_VM, but nothing is known of how Java code ran */
	STACK_NO, /* the same without native frames */
};

struct report_shape {
	enum stack_shape stacks;
	uint32_t most_frames; /* of deeper stacks, those next to the leaf are kept; 0: all */
	uint64_t wall_ns; /* period of wall-clock time */
	uint32_t kept_frames; /* number of those under [truncated]; 0: most_frames, without a mark */
};

/* Returns the shape of a value of --cstack. Unknown ones are STACK_VM. */
enum stack_shape stack_shape_of(const char *cstack);

/*
 * Changes the samples of the profile, and its events: all traced methods are one, and memory that is freed again is
 * told in JFR only. Returns 0, or -errno with one sentence in `why`.
 */
int report_shape(struct profile *profile, const struct report_shape *shape, const struct writer *writer,
		 struct buf *why);

/* ---- async-profiler's filter: of wall's samples, those of some threads only: report_samples.c ---- */

#define THREAD_CHOICES_MAX 65536

/* A program has added a thread to the filter, or has removed it. */
struct thread_choice {
	uint64_t realtime_ns;
	uint32_t tid;
	bool is_added;
};

struct thread_choices {
	struct vec(struct thread_choice) all; /* oldest first */
};

/* "120-127;132": thread ids and ranges of them; "" has those that the program has added. */
bool thread_filter_is_valid(const char *text);
/* Adds "+TID" or "-TID" with the time of the call. Returns 0 or -errno: -EINVAL for another text, -ENOSPC. */
int thread_filter_choose(struct thread_choices *choices, const char *text);
/*
 * Drops the samples of the event wall of other threads, or from times at which their thread was not added. The times of
 * the profile are CLOCK_REALTIME. Returns 0 or -errno.
 */
int thread_filter_apply(struct profile *profile, const char *text, const struct thread_choices *choices);

/*
 * ---- report_samples.c ----
 *
 * Recordings between the calls of two functions (begin=, end=, ttsp): the calls are events of the recording, and the
 * report leaves out what lies outside.
 */

/* Appends the event for `duet record -e` that is hit when this function of the process is called. */
void begin_end_event(const char *function, struct buf *ret_event);
/*
 * Replaces the events of the marks by an event "window", whose samples are the times between them. Without `windows`,
 * there is none. `begun`: the arguments with which the recording was started. Returns 0 or -errno.
 */
int begin_end_apply(struct profile *profile, const struct asprof_arguments *begun, bool windows);
