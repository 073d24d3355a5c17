/* SPDX-License-Identifier: MIT */
/*
 * The CPU's own counters by their general names. The default intervals give some hundreds to thousands of samples a
 * second on a busy CPU.
 */
#include <linux/perf_event.h>

#include "event/events.h"

#define COUNTER(variable, the_name, the_help, the_config, interval)                                      \
	const struct event variable = {                                                                  \
		.name = the_name,                                                                        \
		.help = the_help,                                                                        \
		.unit = EVENT_COUNT,                                                                     \
		.default_interval = interval,                                                            \
		.least_interval = 1,                                                                     \
		.most_interval = 4000000000,                                                             \
		.perf = {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##the_config, .by_period = true}, \
		.may_signal = true,                                                                      \
	}

COUNTER(event_cycles, "cycles", "cycles of the CPU's clock", CPU_CYCLES, 1000000);
COUNTER(event_instructions, "instructions", "instructions that the CPU completed", INSTRUCTIONS, 1000000);
COUNTER(event_cache_references, "cache-references", "accesses to the last cache", CACHE_REFERENCES, 1000000);
COUNTER(event_cache_misses, "cache-misses", "accesses that the last cache could not serve", CACHE_MISSES, 1000);
COUNTER(event_branch_instructions, "branch-instructions", "branches", BRANCH_INSTRUCTIONS, 1000000);
COUNTER(event_branch_misses, "branch-misses", "branches that the CPU predicted wrongly", BRANCH_MISSES, 1000);
COUNTER(event_bus_cycles, "bus-cycles", "cycles of the bus", BUS_CYCLES, 1000000);
COUNTER(event_stalled_frontend, "stalled-cycles-frontend", "cycles that waited for instructions",
	STALLED_CYCLES_FRONTEND, 1000000);
COUNTER(event_stalled_backend, "stalled-cycles-backend", "cycles that waited for data or for a unit of the CPU",
	STALLED_CYCLES_BACKEND, 1000000);
COUNTER(event_ref_cycles, "ref-cycles", "cycles at the nominal frequency", REF_CPU_CYCLES, 1000000);
