/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

const struct event event_lock = {
	.name = "lock",
	.help = "time that Java threads wait for locks, synchronized or of java.util.concurrent, with their class",
	.unit = EVENT_NS,
	.default_interval = 10 * NS_PER_US,
	.least_interval = 1,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_LOCK,
	.has_holders = true,
	.may_be_all = true,
	.option = EVENT_INTERVAL,
	.is_in_all = true,
};
