/* SPDX-License-Identifier: MIT */
/*
 * Sampling by bytes: samples are due at random bytes, whose mean distance is the interval. So the samples do not depend
 * on the order in which memory is taken. Async-signal-safe.
 */
#ifndef BYTE_CLOCK_H
#define BYTE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Threads that take memory at the same time rarely have the same countdown. */
#define BYTE_CLOCK_COUNTDOWNS 64

struct byte_clock {
	uint64_t interval; /* 1: every call is sampled, and weighs its size */
	struct byte_countdown {
		int64_t left; /* bytes until the next sample; atomic */
		uint64_t random; /* state of the generator; atomic */
	} countdowns[BYTE_CLOCK_COUNTDOWNS] __attribute__((aligned(64)));
};

void byte_clock_start(struct byte_clock *clock, uint64_t interval, uint64_t seed);
/* Counts `size` > 0 bytes that the calling thread has taken. Returns true if they are to be sampled. */
bool byte_clock_is_due(struct byte_clock *clock, uint64_t size);
/*
 * Returns how many bytes a sampled piece of memory of this size accounts for. A piece is sampled with a probability of
 * 1 - exp(-size / interval), so that the sum over all samples is right on average.
 */
uint64_t byte_clock_weight(uint64_t size, uint64_t interval);

#endif
