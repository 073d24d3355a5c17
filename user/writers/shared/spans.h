/* SPDX-License-Identifier: MIT */
/*
 * Which span of the program a sample was taken in: the one with the event "span" that the same thread reported, around
 * the sample's time. Of several, the one that began last.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "profile/profile.h"

struct span_time {
	uint64_t thread; /* pid << 32 | tid */
	uint64_t begin_ns; /* it lasts until the next one of the thread begins */
	uint64_t end_ns; /* its last ns; not used after spans_open() */
	uint32_t tag; /* string of the profile; 0: it has none */
	bool is_span; /* false: between spans */
};

struct spans {
	const struct profile *profile; /* not owned */
	uint32_t event; /* index of the event span; UINT32_MAX: there is none */
	struct vec(struct span_time) times; /* of each thread one after the other; none overlaps another */
};

int spans_open(struct spans *spans, const struct profile *profile); /* 0 or -errno; release in any case */
void spans_release(struct spans *spans);
/* Returns the tag, "" for a span without one; NULL: the sample is in no span, or is one. Valid as the profile. */
const char *spans_tag(const struct spans *spans, const struct profile_sample *sample);
/* Appends what the sample worked for: the tag; else the id of the thread's span; else nothing. */
void spans_name(const struct spans *spans, const struct profile_sample *sample, struct buf *out);
