/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

const struct event event_gc = {
	.name = "gc",
	.help = "pauses of the garbage collector, in ns: the stack of the thread that collects",
	.unit = EVENT_NS,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_GC,
	.needs_tables = true,
	.may_be_all = true,
};
