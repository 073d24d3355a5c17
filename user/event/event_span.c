/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

const struct event event_span = {
	.name = "span",
	.help = "spans that the program reports (one.profiler.Span of duet-api.jar): their time, by tag",
	.unit = EVENT_NS,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_SPAN,
};
