/* SPDX-License-Identifier: MIT */
/* Time. BPF, agent and loader all stamp records with CLOCK_MONOTONIC. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000ull
#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
/* Returns what CLOCK_REALTIME shows at 0 of CLOCK_MONOTONIC. The value changes when the clock is set. */
uint64_t clock_realtime_offset_ns(void);
/*
 * Returns what two of these clocks show at one time, exact to less than a microsecond unless this thread never gets to
 * read three clocks without an interruption.
 */
struct clock_pair {
	uint64_t one;
	uint64_t other;
};
struct clock_pair clock_pair(uint64_t (*one)(void), uint64_t (*other)(void));
uint64_t clock_boottime_ns(void); /* since the machine was started, also while it slept: of proc(5)'s start times */
uint64_t clock_cpu_ns(void); /* returns the CPU time that this thread has used */
uint64_t clock_ns_of(const struct timespec *time);
void clock_sleep(uint64_t ns); /* less than a second; a signal may end it */
/* Returns the processor's counter that runs at one rate all the time, or 0 where none is known. */
uint64_t clock_cycles(void);
