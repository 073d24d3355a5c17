/* SPDX-License-Identifier: MIT */
#include "event/events.h"

const struct event event_nativemem = {
	.name = "nativemem",
	.help = "memory that native code of a JVM takes by malloc() and its family, in bytes; 0: every call",
	.unit = EVENT_BYTES,
	.default_interval = 512 << 10,
	.least_interval = 1,
	.most_interval = 1 << 30,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_NATIVEMEM,
	.needs_tables = true,
	.may_be_all = true,
	.option = EVENT_INTERVAL,
	.is_in_all = true,
};
