/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

const struct event event_nativelock = {
	.name = "nativelock",
	.help = "time that threads of a JVM wait for mutexes and read-write locks of native code",
	.unit = EVENT_NS,
	.default_interval = 10 * NS_PER_US,
	.least_interval = 1,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_NONE,
	.agent = DUET_AGENT_EVENT_NATIVELOCK,
	.needs_tables = true,
	.has_holders = true,
	.may_be_all = true,
	.option = EVENT_INTERVAL,
	.is_in_all = true,
};
