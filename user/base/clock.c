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
struct clock_pair clock_pair(uint64_t (*one)(void), uint64_t (*other)(void))
{
	struct clock_pair pair = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 20 && least > 1000; i++) {
		uint64_t before = other(), read = one(), took = other() - before;

		if (took < least) {
			least = took;
			pair = (struct clock_pair){.one = read, .other = before + took / 2};
		}
	}
	return pair;
}

uint64_t clock_realtime_offset_ns(void)
{
	struct clock_pair now = clock_pair(clock_realtime_ns, clock_monotonic_ns);

	return now.one - now.other;
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
