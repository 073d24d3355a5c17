/* SPDX-License-Identifier: MIT */
/*
 * Every sample with its time, in the order of adding. The newest are in memory, those before in an unlinked
 * temporary file below $TMPDIR or /var/tmp: a long recording needs disk, not memory. Where there is no room for
 * the file, all stay in memory; with `may_merge`, those of the same thread and stack as one.
 */
#ifndef PROFILE_TIMELINE_H
#define PROFILE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define TIMELINE_RECENT 65536 /* samples in memory, 2 MB */

struct profile_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t weight; /* in the unit of its event */
	uint32_t thread; /* index into profile.threads */
	uint32_t node; /* leaf of the stack */
	uint32_t count; /* 1, or how many were merged: the time is the first one's, the weight their sum */
	uint32_t event; /* index into profile.events */
};

struct timeline {
	uint64_t len; /* samples in all, merged ones once */
	struct vec(struct profile_sample) recent;
	int fd; /* of the file with those before; -1 = none yet */
	size_t merge_at; /* of recent.len, when the file is stuck */
	bool may_merge; /* the caller's: memory matters more than the time of each sample */
	bool stuck; /* the file could not be made or has no more room */
};

/* 0, or -errno to end timeline_each() with it. */
typedef int (*timeline_visitor)(void *context, const struct profile_sample *sample);

void timeline_init(struct timeline *timeline);
void timeline_release(struct timeline *timeline);
int timeline_add(struct timeline *timeline, const struct profile_sample *sample); /* 0 or -ENOMEM */
/* 0, what the visitor returned, or -errno when the file could not be read back. */
int timeline_each(const struct timeline *timeline, timeline_visitor visit, void *context);

#endif
