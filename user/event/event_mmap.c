/* SPDX-License-Identifier: MIT */
#include "event/events.h"

/* No signal: the call has not begun yet. */
const struct event event_mmap = {
	.name = "mmap",
	.help = "address space that mmap, mremap and brk are asked for, by any process, whether it is touched or not",
	.unit = EVENT_BYTES,
	.default_interval = 512 << 10,
	.least_interval = 1,
	.most_interval = UINT32_MAX,
	.program = DUET_PROGRAM_MMAP,
	.is_chosen = true,
};
