/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

const struct event event_wait = {
	.name = "wait",
	.help = "time that Java threads wait to be notified: Object.wait, conditions, queues, latches, park",
	.unit = EVENT_NS,
	.default_interval = NS_PER_MS,
	.least_interval = 1,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_WAIT,
	.may_be_all = true,
	.option = EVENT_INTERVAL,
};
