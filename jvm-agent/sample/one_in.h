/* SPDX-License-Identifier: MIT */
/*
 * Picks exactly one occurrence at random from every `interval` of them, so that periodic patterns cannot bias it.
 */
#ifndef SAMPLE_ONE_IN_H
#define SAMPLE_ONE_IN_H

#include <stdbool.h>
#include <stdint.h>

struct one_in {
	uint64_t interval; /* > 0 */
	uint64_t count; /* occurrences so far; atomic */
};

/* Counts one occurrence. Returns true if it is chosen. Callable on all threads at once. */
static inline bool one_in_is_due(struct one_in *every)
{
	uint64_t interval = every->interval, place, hash;

	if (interval == 1)
		return true;
	place = __atomic_fetch_add(&every->count, 1, __ATOMIC_RELAXED);
	hash = place / interval * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ull;
	return place % interval == (hash ^ hash >> 29) % interval;
}

#endif
