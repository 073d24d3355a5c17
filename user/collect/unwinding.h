/* SPDX-License-Identifier: MIT */
/*
 * Publishes to the walk which files a process maps and their unwind rows. Rows are made once for each file, mappings
 * are published once for each process.
 */
#ifndef COLLECT_UNWINDING_H
#define COLLECT_UNWINDING_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "collect/unwind_tables.h"
#include "proc/process.h"

struct native_file;
struct unwinding {
	struct unwind_tables *tables; /* not owned; NULL: nothing is published */
	struct map files; /* hash of a file's identity -> struct native_file */
	struct vec(struct native_file *) owned;
	struct vec(struct duet_unwind_mapping) mappings; /* scratch: mappings of the process being published */
	uint64_t looked_ns; /* when unwinding_step() last worked */
	uint64_t work_ns; /* CPU time spent on the tables */
};

void unwinding_init(struct unwinding *unwinding, struct unwind_tables *tables);
void unwinding_release(struct unwinding *unwinding); /* does not close the tables */
void unwinding_forget_files(struct unwinding *unwinding); /* forgets the cached files; their rows stay in the tables */

/* Makes the rows of a file before a process maps it: a large file takes tens of milliseconds. */
void unwinding_prepare(struct unwinding *unwinding, const char *path);
/* Publishes process->maps, unless this version of them is already published. */
void unwinding_publish(struct unwinding *unwinding, struct process *process);
/* Call after a sample with a pc outside the published mappings: reads the mappings again, but not too often. */
void unwinding_read_maps(struct unwinding *unwinding, struct process *process);
/* unwinding_read_maps(), then unwinding_publish() */
void unwinding_refresh(struct unwinding *unwinding, struct process *process);
void unwinding_forget(struct unwinding *unwinding, struct process *process); /* unpublishes the process */
/* Call periodically: brings back rows that had no room and that walks have missed since. */
void unwinding_step(struct unwinding *unwinding, struct process_table *processes, uint64_t now_ns);

#endif
