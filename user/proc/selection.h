/* SPDX-License-Identifier: MIT */
/* Which processes of the host are profiled: those of a cgroup or container, and those of a name. */
#ifndef PROC_SELECTION_H
#define PROC_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proc/containers.h"
#include "proc/process.h"

struct selection {
	const char *comm; /* not owned; NULL for any */
	uint64_t cgroup_id; /* 0 for any */
	struct buf cgroup; /* path of that cgroup */
};

void selection_open(struct selection *selection, const char *comm);
void selection_release(struct selection *selection);
/*
 * Finds the cgroup by its path or by the container's id or name; NULL for any. Returns 0, or -errno with one sentence
 * in `why`.
 */
int selection_find(struct selection *selection, struct containers *containers, const char *cgroup,
		   const char *container, struct buf *why);
/* Makes the choice that BPF makes for each sample. Returns false for a process that cannot be read. */
bool selection_has(const struct selection *selection, const struct process *process);

#endif
