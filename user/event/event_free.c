/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_free = {
	.name = "free",
	.help = "with nativemem: when memory of its samples is freed; JFR has the addresses of both",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_FREE,
	.requires = &event_nativemem,
};
