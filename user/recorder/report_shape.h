/* SPDX-License-Identifier: MIT */
/*
 * Gives the events and stacks of a recording the shape that async-profiler's callers expect. A recording has every
 * frame down to the thread's entry, and an event for each word; --cstack, -j and the format choose what a report shows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "profile/profile.h"
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
 * told in JFR only. Returns 0, or -errno with one sentence in `why`: the writer cannot show the events, or there is no
 * memory.
 */
int report_shape(struct profile *profile, const struct report_shape *shape, const struct writer *writer,
		 struct buf *why);
