/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_user = {
	.name = "userevent",
	.help = "events of the program's own, which it reports by asprof_emit_jfr_event(): how many, by type and data",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_USER,
};
