/* SPDX-License-Identifier: MIT */
/*
 * Publishes the files that a process maps, and their unwind rows, to the walk. Rows are made once for each file,
 * mappings are published once for each process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "collect/tables/file_rows.h"
#include "collect/tables/unwind_tables.h"
#include "proc/process.h"

struct native_file;
struct unwinding {
	struct unwind_tables *tables; /* not owned; NULL: nothing is published */
	/*
	 * The tables are those of one process's agent. BPF's tables are separate, and so is what they hold of this
	 * process.
	 */
	bool is_agents;
	uint32_t published_version; /* is_agents: 1 + the maps_version that the tables have; 0: none */
	struct map files; /* hash of a file's identity -> struct native_file */
	struct vec(struct native_file *) owned;
	struct vec(struct duet_unwind_mapping) mappings; /* scratch: mappings of the process being published */
	struct duet_context_sources contexts; /* scratch: where that process has the contexts of its threads */
	/* hash of a process's mapping -> struct native_file; saves time, because a process is published often */
	struct map looked_up;
	/* hash of a file's mapping -> when it was offered to BPF on behalf of a process that had ended */
	struct map offered_for_dead;
	struct payer payer; /* of the process that is being published; nobody's before */
	struct native_file *made; /* the file whose rows are being made; NULL: none */
	struct file_rows making;
	struct charge maker; /* under which they were begun */
	struct vec(pid_t) wanted; /* processes that unwinding_work() must publish */
	struct vec(pid_t) later; /* likewise, of users who have used much of their allowance */
	size_t later_taken; /* of `later`, the first ones that are in `wanted` already, at most half */
	size_t waiting; /* of `wanted`, the first ones, which wait for the rows that are being made */
	uint64_t looked_ns; /* when unwinding_step() last worked */
	uint64_t work_ns; /* CPU time spent on the tables */
};

void unwinding_init(struct unwinding *unwinding, struct unwind_tables *tables);
void unwinding_release(struct unwinding *unwinding); /* does not close the tables */
void unwinding_forget_files(struct unwinding *unwinding); /* forgets the cached files; their rows stay in the tables */

/*
 * Makes the rows of a file before a process maps it: a large file takes tens of milliseconds. BPF finds them in a
 * process whose mappings are not published yet.
 */
void unwinding_prepare(struct unwinding *unwinding, const char *path);
/*
 * Publishes process->maps, unless this version of them is already published or the user's allowance is used up. If the
 * process has ended, only offers its files to BPF, for the next process that maps them. Works until until_ns. Returns
 * 0. Returns -EAGAIN, and has published nothing, if there was not enough time to make the rows of all files.
 */
int unwinding_publish(struct unwinding *unwinding, struct process *process, uint64_t until_ns);
/* Publishes at once, for at most 2 s. Files that are not finished then are so after the process's next samples. */
void unwinding_publish_now(struct unwinding *unwinding, struct process *process);
/* Adds the process to those that unwinding_work() publishes. */
void unwinding_want(struct unwinding *unwinding, struct process *process);
static inline bool unwinding_has_work(const struct unwinding *unwinding)
{
	return unwinding->wanted.len || unwinding->later.len;
}
/*
 * Publishes wanted processes until until_ns. The rows of a large file take up to a second on a busy machine. So they
 * are made in several calls, and between these, processes that do not map the file are published.
 */
void unwinding_work(struct unwinding *unwinding, struct process_table *processes, uint64_t until_ns);
/* Call after a sample with a pc outside the published mappings: reads the mappings again, but not too often. */
void unwinding_read_maps(struct unwinding *unwinding, struct process *process);
/* unwinding_read_maps(), then unwinding_publish_now() */
void unwinding_refresh(struct unwinding *unwinding, struct process *process);
void unwinding_forget(struct unwinding *unwinding, struct process *process); /* unpublishes the process */
/* Call periodically: makes rows again that had no room, if walks have missed them since. */
void unwinding_step(struct unwinding *unwinding, struct process_table *processes, uint64_t now_ns);

/* The state of a process that belongs to collect/. */
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
