/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_OF_THREAD 6 /* CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED, include/linux/posix-timers.h */

/* Returns 0 if the clock cannot be read. Async-signal-safe. */
static inline uint64_t clock_read(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The clock of BPF's bpf_ktime_get_ns(). */
static inline uint64_t clock_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* Returns the id of a thread's CPU clock; glibc has no function for a thread of which only the tid is known. */
static inline clockid_t clock_of_thread(int tid)
{
	return (clockid_t)((~(unsigned int)tid << 3) | CLOCK_OF_THREAD);
}
