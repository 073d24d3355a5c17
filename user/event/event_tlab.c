/* SPDX-License-Identifier: MIT */
#include "event/events.h"

/* Shown as alloc: what BPF samples of a JVM that does not sample its allocations itself. Not in the table of events. */
const struct event event_tlab = {
	.name = "tlab",
	.help = "alloc where HotSpot's threads take new buffers, or have no room in them",
	.unit = EVENT_BYTES,
	.default_interval = 512 << 10,
	.least_interval = 1,
	.most_interval = 1 << 30,
	.program = DUET_PROGRAM_TLAB,
	.is_chosen = true,
};
