/* SPDX-License-Identifier: MIT */
/* Time: CLOCK_MONOTONIC is what BPF, agent and loader stamp records with. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_SEC 1000000000ull
#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
uint64_t clock_cpu_ns(void); /* that this thread has had of a CPU */

#endif
