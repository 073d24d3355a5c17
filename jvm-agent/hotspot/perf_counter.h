/* SPDX-License-Identifier: MIT */
/* HotSpot's own counters, which jcmd PerfCounter.print shows. */
#ifndef HOTSPOT_PERF_COUNTER_H
#define HOTSPOT_PERF_COUNTER_H

#include <stdint.h>

/*
 * Returns the address of the 64 bits that hold this counter, or 0 when there is none. `memory` is the start of
 * HotSpot's counter memory (perfMemory.hpp). The counter never moves.
 */
uintptr_t perf_counter(uintptr_t memory, const char *name);
/* The same for one entry, wherever that is; 0 when no entry of this counter is there. */
uintptr_t perf_counter_of_entry(uintptr_t entry, const char *name);

#endif
