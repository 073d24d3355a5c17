/* SPDX-License-Identifier: MIT */
/* Sampling by bytes, random ones: in whatever order memory is taken, the mean is the interval. Async-signal-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BYTE_CLOCK_THREADS 512
#define BYTE_CLOCK_SHARED 64

/* Bytes until the next sample. A thread's own has no locked instructions, which would take longer than all else. */
struct byte_countdown {
	uintptr_t owner; /* the thread's pointer; 0: free; atomic */
	int64_t left; /* > 0, and in a shared one also less; atomic */
	uint64_t random; /* state of the generator; atomic */
} __attribute__((aligned(64)));

struct byte_clock {
	uint64_t interval; /* 1: every call is sampled, and weighs its size */
	uint64_t seed;
	struct byte_countdown own[BYTE_CLOCK_THREADS]; /* by a hash of the thread's pointer; never given up */
	struct byte_countdown shared[BYTE_CLOCK_SHARED]; /* for threads whose place another thread owns */
};

void byte_clock_start(struct byte_clock *clock, uint64_t interval, uint64_t seed);

static inline struct byte_countdown *byte_clock_own(struct byte_clock *clock, uintptr_t thread)
{
	return &clock->own[(thread * 0x9e3779b97f4a7c15ull >> 32) % BYTE_CLOCK_THREADS];
}

/* Counts the thread's `size` > 0 bytes if they are not to be sampled. False: did not; call byte_clock_is_due(). */
static inline bool byte_clock_passes(struct byte_clock *clock, uint64_t size)
{
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
	struct byte_countdown *own = byte_clock_own(clock, thread);
	uint64_t left = (uint64_t)__atomic_load_n(&own->left, __ATOMIC_RELAXED);

	if (__atomic_load_n(&own->owner, __ATOMIC_RELAXED) != thread || size >= left)
		return false;
	__atomic_store_n(&own->left, (int64_t)(left - size), __ATOMIC_RELAXED);
	return true;
}

/* Counts the bytes. Returns true if they are to be sampled. */
bool byte_clock_is_due(struct byte_clock *clock, uint64_t size);
/*
 * Returns how many bytes a sampled piece of memory of this size accounts for. A piece is sampled with a probability of
 * 1 - exp(-size / interval), so that the sum over all samples is right on average.
 */
uint64_t byte_clock_weight(uint64_t size, uint64_t interval);
