/* SPDX-License-Identifier: MIT */
#include <linux/perf_event.h>

#include "base/clock.h"
#include "event/events.h"

/* Only its ticks cause signals, and ticks interrupt threads that run. */
const struct event event_wall = {
	.name = "wall",
	.help = "all time of every thread, on a CPU (as cpu) and off it (as offcpu)",
	.unit = EVENT_NS,
	.default_interval = 10 * NS_PER_MS,
	.least_interval = 10 * NS_PER_US,
	.most_interval = NS_PER_SEC,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .is_clock = true},
	.with = &event_offcpu,
	.may_signal = true,
	.option = EVENT_INTERVAL,
	.is_in_all = true,
};
