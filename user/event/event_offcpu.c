/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

/* No signal: the thread is within a system call, which would end with EINTR. */
const struct event event_offcpu = {
	.name = "offcpu",
	.help = "time that threads spend blocked or waiting for a CPU: what they wait in",
	.unit = EVENT_NS,
	.default_interval = 10 * NS_PER_MS,
	.least_interval = 10 * NS_PER_US,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_OFFCPU,
	.is_chosen = true,
	.option = EVENT_INTERVAL,
};
