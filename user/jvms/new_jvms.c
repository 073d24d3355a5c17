/* SPDX-License-Identifier: MIT */
#include "jvms/new_jvms.h"

#include "base/clock.h"
#include "duet_jvm.h"

static bool is_libjvm(const struct mapping_note *note)
{
	return note->kind == MAPPING_NOTE_MAPPED && duet_is_libjvm(note->mapping.path);
}

struct process *new_jvms_next(const struct mapping_log *log, uint64_t *seen, struct process_table *processes)
{
	const struct mapping_note *note;

	while ((note = mapping_log_next(log, seen))) {
		struct process *process = is_libjvm(note) ? process_get(processes, note->pid, 0) : NULL;

		if (!process || process->exited)
			continue;
		process_refresh_maps(process, clock_monotonic_ns(), 1);
		return process;
	}
	return NULL;
}
