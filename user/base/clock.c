/* SPDX-License-Identifier: MIT */
#include "base/clock.h"


uint64_t clock_ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_nsec;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return clock_ns_of(&now);
}

uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* Of several tries, the one in which the least time passed: another thread may run between two reads. */
uint64_t clock_realtime_offset_ns(void)
{
	uint64_t offset_ns = 0, least_ns = UINT64_MAX;

	for (int i = 0; i < 20 && least_ns > 1000; i++) {
		uint64_t before_ns = clock_monotonic_ns(), realtime_ns = clock_realtime_ns();
		uint64_t took_ns = clock_monotonic_ns() - before_ns;

		if (took_ns < least_ns) {
			least_ns = took_ns;
			offset_ns = realtime_ns - before_ns - took_ns / 2;
		}
	}
	return offset_ns;
}

uint64_t clock_boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

void clock_sleep(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
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
