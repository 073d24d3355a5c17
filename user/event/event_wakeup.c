/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

const struct event event_wakeup = {
	.name = "wakeup",
	.help = "time off CPU, as offcpu, each sleep with the stack of the thread or interrupt that ended it: --wakers",
	.unit = EVENT_NS,
	.default_interval = 10 * NS_PER_MS,
	.least_interval = 10 * NS_PER_US,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_OFFCPU,
	.is_chosen = true,
	.has_wakers = true,
};
