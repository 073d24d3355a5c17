/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

const struct event event_safepoint = {
	.name = "safepoint",
	.help = "time in which Java threads stand still, in ns, apart from the time until they do",
	.unit = EVENT_NS,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_SAFEPOINT,
	.may_be_all = true,
};
