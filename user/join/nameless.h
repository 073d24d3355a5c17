/* SPDX-License-Identifier: MIT */
/* Decided samples that wait for names: copies, in the order in which they were decided. */
#ifndef JOIN_NAMELESS_H
#define JOIN_NAMELESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "join/resolve.h"

struct nameless_sample {
	struct decision decision; /* its halves are owned */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	size_t bytes; /* of both halves */
};

/* Initialize with {0}. */
struct nameless {
	struct vec(struct nameless_sample) samples;
	size_t bytes;
};

void nameless_release(struct nameless *nameless);
/* Adds a copy of the decision and its halves. Returns 0 or -ENOMEM. */
int nameless_hold(struct nameless *nameless, const struct decision *decision, uint64_t now_ns);
/*
 * Removes and frees the samples for which `is_done` returns true, beginning with the oldest. `is_done` must not add
 * samples.
 */
void nameless_sift(struct nameless *nameless, bool (*is_done)(void *context, const struct nameless_sample *sample),
		   void *context);
bool nameless_holds(const struct nameless *nameless, const void *owner);
uint64_t nameless_oldest_ns(const struct nameless *nameless); /* time of the oldest sample; UINT64_MAX: there is none */

#endif
