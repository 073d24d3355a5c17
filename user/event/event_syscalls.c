/* SPDX-License-Identifier: MIT */
#include "event/events.h"

/* No signal: the call has not begun yet, and would end with EINTR. */
const struct event event_syscalls = {
	.name = "syscalls",
	.help = "system calls: the stacks that make them",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1000000000,
	.program = DUET_PROGRAM_SYSCALLS,
};
