/* SPDX-License-Identifier: MIT */
/* Who releases locks that threads wait for. --holders adds it to the events of locks; it has no samples of its own. */
#include "base/clock.h"
#include "event/events.h"

const struct event event_holders = {
	.name = "holders",
	.help = "the threads that release locks for which others wait",
	.unit = EVENT_NS,
	.default_interval = 10 * NS_PER_US,
	.least_interval = 1,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_HOLDERS,
	.is_chosen = true,
};
