/* SPDX-License-Identifier: MIT */
/* Which processes of the host are profiled: those of a cgroup or container, and those of a name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proc/containers.h"
#include "proc/process.h"

struct selection {
	const char *comm; /* not owned; NULL for any */
	uint64_t cgroup_id; /* 0 for any */
	struct buf cgroup; /* path of that cgroup */
	size_t found; /* processes that it had when selection_count() looked */
};

void selection_open(struct selection *selection, const char *comm);
void selection_release(struct selection *selection);
/* Finds the cgroup by path, or container id or name; NULL: any. Returns 0, or -errno with a sentence in `why`. */
int selection_find(struct selection *selection, struct containers *containers, const char *cgroup,
		   const char *container, struct buf *why);
/* Makes the choice that BPF makes for each sample. Returns false for a process that cannot be read. */
bool selection_has(const struct selection *selection, const struct process *process);
/* Counts those of the table that it has. If there are none, appends that as a sentence, with a name that is near. */
void selection_count(struct selection *selection, const struct process_table *processes, struct buf *none);
