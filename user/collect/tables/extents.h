/* SPDX-License-Identifier: MIT */
/*
 * Allocates ranges of a flat array that BPF reads. BPF may still read a range for a moment after it was given back, so
 * it is taken again DUET_UNWIND_GRACE_NS later at the earliest. If the array is a room, each payer has a share of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "proc/room.h"

struct extent {
	uint32_t start;
	uint32_t count;
};

struct extent_given { /* a range that was given back, and when */
	struct extent extent;
	uint64_t time_ns;
};

struct extents {
	bool is_shared;
	enum room room; /* is_shared: what it counts in */
	struct vec(struct extent) free; /* sorted by start; neighbours are joined */
	struct vec(struct extent_given) given; /* not free until the grace period has passed */
};

int extents_init(struct extents *extents, uint32_t count); /* 0 or -ENOMEM */
void extents_release(struct extents *extents);
void extents_share(struct extents *extents, enum room room); /* makes the array this room */
/* False if the payer's share has no room for `count` more elements. True if nobody's has: there are too few. */
bool extents_may(const struct extents *extents, const struct payer *payer, uint32_t count);
/* True if extents_take() would find `count` elements in a row. */
bool extents_has(struct extents *extents, uint32_t count, uint64_t now_ns);
/* Returns the index of the first of `count` elements, -ENOSPC, or -EDQUOT if the payer's share is used up. */
int64_t extents_take(struct extents *extents, const struct payer *payer, uint32_t count, uint64_t now_ns);
/* Gives elements back, or loses them when out of memory. `now_ns` 0: nobody reads them, so they are free at once. */
void extents_give(struct extents *extents, const struct payer *payer, uint32_t start, uint32_t count, uint64_t now_ns);
