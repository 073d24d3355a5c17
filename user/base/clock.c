/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

#define TURNS 64 /* turns of a loop between two looks at the clock */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t cycles;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(cycles));
	return cycles;
#else
	return 0;
#endif
}

bool clock_is_up(uint32_t *turns, uint64_t until_ns)
{
	return ++*turns % TURNS == 0 && clock_monotonic_ns() >= until_ns;
}
