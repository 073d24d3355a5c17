/* SPDX-License-Identifier: MIT */
/*
 * Samples that come in several records.
 *
 * Deep stacks: the middle frames of such a stack arrive before their sample, in DUET_RECORD_FRAMES
 * records. If one of these records is missing, the sample stays as it arrived, without its middle.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "duet_record.h"
#include "proc/allowance.h"

/* most stacks held at once, one for each CPU or handler; the oldest one is dropped for a new one */
#define DEEP_STACKS_MAX 512

struct deep_stack {
	uint32_t tid;
	uint64_t time_ns; /* of its sample */
	struct vec(uint64_t) addresses; /* from frame DUET_LEAF_FRAMES on */
	struct vec(uint32_t) ids;
};

/* Initialize with {0}. */
struct deep_stacks {
	struct vec(struct deep_stack) pending; /* stacks whose sample has not arrived yet */
	struct duet_sample *whole; /* the last sample that was put together */
	size_t whole_bytes;
};

/* Adds the frames of a record that has passed record_check(). When out of memory, the sample stays without them. */
void deep_stacks_add(struct deep_stacks *stacks, const struct duet_frames_record *record);
/* Returns the sample with all its frames, owned by `stacks` and valid until the next call; or `sample` itself. */
const struct duet_sample *deep_stacks_join(struct deep_stacks *stacks, const struct duet_sample *sample);
void deep_stacks_release(struct deep_stacks *stacks);

/*
 * Stacks that BPF had to take before it knew their weight (DUET_ROLE_EARLY): of sleeps where no hook runs before the
 * thread continues, and of requests to io_uring. They wait here for the record that has the weight.
 */
#define EARLY_BYTES_MAX (16u << 20) /* of all stacks that wait */
#define EARLY_KEEP_NS (60ull * 1000000000) /* of a thread that has ended, nothing comes any more */

/* Initialize with {0}. */
struct early {
	struct map by_id; /* duet_sample.waker -> struct early_kept, owned */
	uint64_t swept_ns;
	struct duet_sample *taken; /* of the last early_take(); owned */
};

/* Keeps a copy of a payer's sample that has passed record_check(). Without room it is missed by early_take(). */
void early_add(struct early *early, const struct payer *payer, const struct duet_sample *sample);
/*
 * Returns the sample with the weight and the attributes of the record, owned by `early` and valid until the next call.
 * NULL if it was not kept, or without memory. The record has passed record_check().
 */
const struct duet_sample *early_take(struct early *early, const struct duet_slept_record *record);
void early_release(struct early *early);
