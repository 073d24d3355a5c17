/* SPDX-License-Identifier: MIT */
#include "event/events.h"

/* No signal: the thread is within a system call. */
const struct event event_io_bytes = {
	.name = "io-bytes",
	.help = "bytes that are read, written or sent",
	.unit = EVENT_BYTES,
	.default_interval = 64 << 10,
	.least_interval = 1,
	.most_interval = UINT32_MAX,
	.program = DUET_PROGRAM_IO_BYTES,
	.is_chosen = true,
};
