/* SPDX-License-Identifier: MIT */
/* The state of a process that belongs to collect/. */
#ifndef COLLECT_RECORDS_COLLECTED_H
#define COLLECT_RECORDS_COLLECTED_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/process.h"

struct collected {
	uint32_t published_version; /* 1 + the maps_version whose unwind tables BPF has; 0 = none */
	bool awaits_rows; /* the process is in unwinding.wanted */
	bool is_sampled;
};
_Static_assert(sizeof(struct collected) <= PROCESS_STATE_BYTES(PROCESS_OF_COLLECT, PROCESS_OF_JVMS), "too large");

static inline struct collected *collected_of(struct process *process)
{
	return process_state(process, PROCESS_OF_COLLECT);
}

#endif
