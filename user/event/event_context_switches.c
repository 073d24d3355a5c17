/* SPDX-License-Identifier: MIT */
#include <linux/perf_event.h>

#include "event/events.h"

/* No signal: it would wake a thread that goes to sleep, and its system call would end with EINTR. */
const struct event event_context_switches = {
	.name = "context-switches",
	.help = "threads that left a CPU, to wait or for another thread: their stacks",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1000000000,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES},
};
