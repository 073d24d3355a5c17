/* SPDX-License-Identifier: MIT */
/*
 * The loader's side of the flat arrays of duet_unwind.h. They hold the rows of files, shared by all processes that map
 * a file, and the mappings of processes. The arrays belong to BPF, or to the agent of one process.
 *
 * The arrays are bounded. When they are full, files that no living process maps are dropped. A file that still does not
 * fit is only noted, and the walk follows frame pointers in it. When BPF meets such a file, the files that it has not
 * used for the longest time are evicted too. An agent does not report which files it uses, so nothing is evicted for
 * it. Each user has a share of BPF's arrays: what one adds for his processes is his, also if others use it too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "duet_unwind.h"
#include "proc/allowance.h"
#include "unwind/unwind_rows.h"

struct unwind_tables;
struct unwind_tables_map { /* a BPF map, or one array of an agent's file */
	int fd;
	uint32_t entries;
	uint64_t offset; /* of the array in the file; 0 for a BPF map */
};
struct unwind_tables_maps {
	struct unwind_tables_map rows;
	struct unwind_tables_map pages;
	struct unwind_tables_map modules; /* at most DUET_UNWIND_MAX_MODULES */
	struct unwind_tables_map mappings;
	struct unwind_tables_map processes;
	struct unwind_tables_map contexts;
	struct unwind_tables_map files; /* 0 entries: BPF does not ask the kernel for mappings */
};

/* For BPF. The maps' descriptors stay the caller's and must stay open. 0 or -errno. */
int unwind_tables_open(struct unwind_tables **ret, const struct unwind_tables_maps *maps);
/* For the agent of one process: makes a sealed memfd (struct duet_unwind_file) of about `bytes`. 0 or -errno. */
int unwind_tables_open_file(struct unwind_tables **ret, size_t bytes);
uint64_t unwind_tables_file_bytes(size_t bytes); /* the exact size of that memfd */
int unwind_tables_fd(const struct unwind_tables *tables); /* to send with START, read-only; owned by the tables */
void unwind_tables_close_fd(struct unwind_tables *tables); /* call after sending */
uint64_t unwind_tables_bytes(const struct unwind_tables *tables); /* size of the memfd; 0 for BPF's tables */
size_t unwind_tables_touched(const struct unwind_tables *tables); /* bytes of RAM in arrays that stay mapped */
void unwind_tables_close(struct unwind_tables *tables);

/* What is added, noted and published from now on is this payer's; at first nobody's. */
void unwind_tables_set_payer(struct unwind_tables *tables, const struct payer *payer);

/*
 * Returns the index of the module with this key, or -ENOENT. The caller chooses the key, which identifies a file. The
 * index is valid until the next unwind_tables_publish(), and after that for as long as a published process maps the
 * file. The file may be one that was only noted.
 */
int unwind_tables_find(struct unwind_tables *tables, uint64_t key);
/*
 * Returns true if so many rows and pages fit, into the payer's share, too. Drops files that no living process maps
 * if necessary. May sleep.
 */
bool unwind_tables_have_room(struct unwind_tables *tables, uint32_t rows, uint32_t pages);
/* Copies a file's rows. Returns the module's index, valid as above, or -errno: -ENOSPC when it does not fit. */
int unwind_tables_add(struct unwind_tables *tables, uint64_t key, const struct unwind_rows *rows);
/*
 * Notes a file with this many rows and pages that does not fit, so that BPF reports whether it meets the file. Returns
 * the index of the new module, or of the one that already has this key, valid as above; or -ENOSPC or -ENOMEM.
 */
int unwind_tables_note(struct unwind_tables *tables, uint64_t key, uint32_t rows, uint32_t pages);

/*
 * Call periodically: reads which files BPF has used since the last call. Returns the pid of one process that maps a
 * noted file which BPF met, or 0. Publish that process again, and add the file if unwind_tables_bring_back() says so.
 */
pid_t unwind_tables_look(struct unwind_tables *tables, uint64_t now_ns);
/*
 * True if BPF met this noted file and its rows fit now; then call unwind_tables_add(). Evicts unused files if it must,
 * and then sleeps for DUET_UNWIND_GRACE_NS. An agent's file need not have been met, and nothing is evicted for it.
 */
bool unwind_tables_bring_back(struct unwind_tables *tables, int module);

bool unwind_tables_takes_offers(const struct unwind_tables *tables);
/*
 * Lets BPF use the rows of `mapping` wherever this file is mapped at this page, also in processes that are not
 * published yet. Does nothing for an agent. A failure is ignored: the process is published in any case.
 */
void unwind_tables_offer(struct unwind_tables *tables, const struct duet_mapped_file *file,
			 const struct duet_unwind_mapping *mapping);

/*
 * Replaces the mappings of a process; they are copied and must be sorted. Returns 0, -E2BIG for more than
 * DUET_UNWIND_PROCESS_MAPPINGS, -ENOSPC, or another -errno. After -E2BIG and -ENOSPC the old mappings are in force.
 */
int unwind_tables_publish(struct unwind_tables *tables, pid_t pid, uint64_t start_ticks,
			  const struct duet_unwind_mapping *mappings, size_t count);
/* Publishes where the process has the contexts of its threads; with the first NOWHERE, it has none. */
void unwind_tables_set_contexts(struct unwind_tables *tables, pid_t pid, const struct duet_context_sources *sources);
void unwind_tables_forget(struct unwind_tables *tables, pid_t pid); /* call when the process has ended */
