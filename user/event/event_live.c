/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_live = {
	.name = "live",
	.help = "the part of alloc that is still in use when the recording or a window ends",
	.unit = EVENT_BYTES,
	.default_interval = 512 << 10,
	.least_interval = 1,
	.most_interval = 1 << 30,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_LIVE,
	.option = EVENT_SWITCH,
	.interval_of = &event_alloc,
	.is_in_all = true,
};
