/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_alloc = {
	.name = "alloc",
	.help = "memory that Java code takes from the heap, in bytes, with the class (before JDK 11 by BPF)",
	.unit = EVENT_BYTES,
	.default_interval = 512 << 10,
	.least_interval = 1,
	.most_interval = 1 << 30,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_ALLOC,
	.with = &event_tlab,
	.option = EVENT_INTERVAL,
	.is_in_all = true,
};
