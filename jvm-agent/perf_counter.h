/* SPDX-License-Identifier: MIT */
/* HotSpot's own counters, which jcmd PerfCounter.print shows. */
#ifndef PERF_COUNTER_H
#define PERF_COUNTER_H

#include <stdint.h>

/*
 * The address of the 64 bits that hold this counter, in the memory that begins at `memory` (perfMemory.hpp), where it
 * stays; 0 when there is none.
 */
uintptr_t perf_counter(uintptr_t memory, const char *name);

#endif
