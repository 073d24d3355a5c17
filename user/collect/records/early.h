/* SPDX-License-Identifier: MIT */
/*
 * Stacks that BPF had to take before it knew their weight (DUET_ROLE_EARLY): of sleeps where no hook runs before the
 * thread continues, and of requests to io_uring. They wait here for the record that has the weight.
 */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "duet_record.h"

#define EARLY_BYTES_MAX (16u << 20) /* of all stacks that wait */
#define EARLY_KEEP_NS (60ull * 1000000000) /* of a thread that has ended, nothing comes any more */

/* Initialize with {0}. */
struct early {
	struct map by_id; /* duet_sample.waker -> struct duet_sample, owned */
	size_t bytes;
	uint64_t swept_ns;
	struct duet_sample *taken; /* of the last early_take(); owned */
};

/* Keeps a copy of a sample that has passed record_check(). Without memory it is missed by early_take(). */
void early_add(struct early *early, const struct duet_sample *sample);
/*
 * Returns the sample with the weight and the attributes of the record, owned by `early` and valid until the next call.
 * NULL if it was not kept, or without memory. The record has passed record_check().
 */
const struct duet_sample *early_take(struct early *early, const struct duet_slept_record *record);
void early_release(struct early *early);
