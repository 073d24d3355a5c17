/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_class_load = {
	.name = "class-load",
	.help = "classes that a JVM loads: where, with the class",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1000000000,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_CLASS_LOAD,
};
