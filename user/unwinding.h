/* SPDX-License-Identifier: MIT */
/* Which files a process maps, and their unwind rows, for BPF's walk: made once a file, published once a process. */
#ifndef UNWINDING_H
#define UNWINDING_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "collect/unwind_tables.h"
#include "proc/process.h"

struct native_file;
struct unwinding {
	struct unwind_tables *tables; /* the collector's; NULL: nothing is published */
	struct map files; /* hash of a file's identity -> struct native_file */
	struct vec(struct native_file *) owned;
	struct vec(struct duet_unwind_mapping) mappings; /* of the process under way */
	uint64_t looked_ns; /* which files' rows are used */
	uint64_t files_refused; /* for want of room, at first at least */
	uint64_t processes_refused;
	uint64_t work_ns; /* CPU time that tables took */
};

void unwinding_init(struct unwinding *unwinding, struct unwind_tables *tables);
void unwinding_release(struct unwinding *unwinding);
void unwinding_forget_files(struct unwinding *unwinding); /* what is kept of them; their rows stay in the tables */

/* The rows of a file that a process is going to map: a large one takes tens of milliseconds. */
void unwinding_prepare(struct unwinding *unwinding, const char *path);
/* The process's mappings as it has them in `maps`, if they are others than those published. */
void unwinding_publish(struct unwinding *unwinding, struct process *process);
/* After a sample with a pc in none of the published mappings: reads them again, not more often than makes sense. */
void unwinding_read_maps(struct unwinding *unwinding, struct process *process);
void unwinding_refresh(struct unwinding *unwinding, struct process *process); /* and publishes them */
void unwinding_forget(struct unwinding *unwinding, struct process *process);
/* From time to time: rows that had no room are brought back when they are missed. */
void unwinding_step(struct unwinding *unwinding, struct process_table *processes, uint64_t now_ns);

#endif
