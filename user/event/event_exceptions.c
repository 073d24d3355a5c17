/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_exceptions = {
	.name = "exceptions",
	.help = "exceptions and errors that Java code or the JVM creates: where, with the class",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1000000000,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_EXCEPTIONS,
};
