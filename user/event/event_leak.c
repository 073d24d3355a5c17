/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_leak = {
	.name = "leak",
	.help = "the part of nativemem that is not freed when the recording or a window ends",
	.unit = EVENT_BYTES,
	.default_interval = 512 << 10,
	.least_interval = 1,
	.most_interval = 1 << 30,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_LEAK,
	.needs_tables = true,
	.may_be_all = true,
	.option = EVENT_INTERVAL,
};
