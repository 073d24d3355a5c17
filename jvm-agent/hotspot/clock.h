/* SPDX-License-Identifier: MIT */
#ifndef HOTSPOT_CLOCK_H
#define HOTSPOT_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_OF_THREAD 6 /* CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED, include/linux/posix-timers.h */

/* The clock of BPF's bpf_ktime_get_ns(). Async-signal-safe. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Returns the id of the CPU clock of a thread of this process. glibc has no function for a thread of which only the tid
 * is known.
 */
static inline clockid_t clock_of_thread(int tid)
{
	return (clockid_t)((~(unsigned int)tid << 3) | CLOCK_OF_THREAD);
}

#endif
