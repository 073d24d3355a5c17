/* SPDX-License-Identifier: MIT */
/*
 * Deep stacks whole again: the frames that arrived before their sample, DUET_RECORD_FRAMES, go back to their place in
 * it. A sample that lacks any of them stays as it came, without its middle.
 */
#ifndef JOIN_PARTS_H
#define JOIN_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "duet_record.h"

#define PARTS_MAX 512 /* stacks at once, one for each CPU or handler; above, the oldest goes */

struct parts_stack {
	uint32_t tid;
	uint64_t time_ns; /* of its sample */
	struct vec(uint64_t) addresses; /* from frame DUET_LEAF_FRAMES on */
	struct vec(uint32_t) ids;
};

/* Begins as {0}. */
struct parts {
	struct vec(struct parts_stack) stacks; /* whose sample has not come yet */
	struct duet_sample *whole; /* the last one that was put together */
	size_t whole_bytes;
};

/* The record has passed record_check(). */
void parts_add(struct parts *parts, const struct duet_frames_record *record);
/* The sample with all its frames, which lasts until the next call; or `sample` itself. */
const struct duet_sample *parts_join(struct parts *parts, const struct duet_sample *sample);
void parts_release(struct parts *parts);

#endif
