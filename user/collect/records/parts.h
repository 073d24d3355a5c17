/* SPDX-License-Identifier: MIT */
/*
 * Puts deep stacks together. The middle frames of such a stack arrive before their sample, in DUET_RECORD_FRAMES
 * records. If one of these records is missing, the sample stays as it arrived, without its middle.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "duet_record.h"

/* most stacks held at once, one for each CPU or handler; the oldest one is dropped for a new one */
#define PARTS_MAX 512

struct parts_stack {
	uint32_t tid;
	uint64_t time_ns; /* of its sample */
	struct vec(uint64_t) addresses; /* from frame DUET_LEAF_FRAMES on */
	struct vec(uint32_t) ids;
};

/* Initialize with {0}. */
struct parts {
	struct vec(struct parts_stack) stacks; /* stacks whose sample has not arrived yet */
	struct duet_sample *whole; /* the last sample that was put together */
	size_t whole_bytes;
};

/* Adds the frames of a record that has passed record_check(). When out of memory, the sample stays without them. */
void parts_add(struct parts *parts, const struct duet_frames_record *record);
/* Returns the sample with all its frames, owned by `parts` and valid until the next call; or `sample` itself. */
const struct duet_sample *parts_join(struct parts *parts, const struct duet_sample *sample);
void parts_release(struct parts *parts);
