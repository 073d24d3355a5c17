/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_compilation = {
	.name = "compilation",
	.help = "methods that a JVM compiles",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1000000000,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_COMPILATION,
};
