/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "event/events.h"

/* No signal: the thread is within a system call. */
const struct event event_io = {
	.name = "io",
	.help = "time that reading, writing and sending take: of files, devices, sockets and pipes, with their name",
	.unit = EVENT_NS,
	.default_interval = NS_PER_MS,
	.least_interval = NS_PER_US,
	.most_interval = NS_PER_SEC,
	.program = DUET_PROGRAM_IO,
	.is_chosen = true,
};
