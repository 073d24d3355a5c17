/* SPDX-License-Identifier: MIT */
/*
 * The flat arrays of duet_unwind.h as the loader fills them: rows of files, shared by all processes that map them, and
 * mappings of processes. Bounded: when they are full, what no living process maps makes room; what then does not fit is
 * noted, and the walk follows frame pointers there. When BPF comes across such a file, what it has not used for longest
 * makes room too. For BPF, or for the agent of one process, which tells of no use.
 */
#ifndef COLLECT_UNWIND_TABLES_H
#define COLLECT_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "duet_unwind.h"
#include "unwind/unwind_rows.h"

struct unwind_tables;
struct unwind_tables_map { /* of BPF */
	int fd;
	uint32_t entries;
	uint64_t offset; /* in a file with several */
};
struct unwind_tables_maps {
	struct unwind_tables_map rows;
	struct unwind_tables_map pages;
	struct unwind_tables_map modules; /* at most DUET_UNWIND_MAX_MODULES */
	struct unwind_tables_map mappings;
	struct unwind_tables_map processes;
};

int unwind_tables_open(struct unwind_tables **ret, const struct unwind_tables_maps *maps); /* 0 or -errno */
/* For one process: a sealed memfd of about so many bytes, struct duet_unwind_file. 0 or -errno. */
int unwind_tables_open_file(struct unwind_tables **ret, size_t bytes);
uint64_t unwind_tables_file_bytes(size_t bytes); /* that the memfd then has */
int unwind_tables_fd(const struct unwind_tables *tables); /* to send with START; stays owned by the tables */
void unwind_tables_close_fd(struct unwind_tables *tables); /* after sending */
uint64_t unwind_tables_bytes(const struct unwind_tables *tables); /* of the memfd */
size_t unwind_tables_touched(const struct unwind_tables *tables); /* bytes of RAM that are mapped for good */
void unwind_tables_close(struct unwind_tables *tables);

/*
 * `key` says which file it is, for the caller to choose. The module's index, good until the next
 * unwind_tables_publish() and as long as a process maps it, or -ENOENT. It may be one that was only noted.
 */
int unwind_tables_find(struct unwind_tables *tables, uint64_t key);
/* Would a file of so many be taken? What nobody maps makes room if need be. */
bool unwind_tables_have_room(struct unwind_tables *tables, uint32_t rows, uint32_t pages);
/* Its rows are copied. The module's index, good as long, or -ENOSPC and -ENOMEM. */
int unwind_tables_add(struct unwind_tables *tables, uint64_t key, const struct unwind_rows *rows);
/* The same for a file of so many that had no room: BPF tells whether it is used. The one that it has if it has one. */
int unwind_tables_note(struct unwind_tables *tables, uint64_t key, uint32_t rows, uint32_t pages);

/*
 * To be called now and then: sees what BPF has used since. A process that maps a file whose rows were missed, one
 * at a time, or 0: it is to be published again, and the file added where unwind_tables_bring_back() says so.
 */
pid_t unwind_tables_look(struct unwind_tables *tables, uint64_t now_ns);
/* Were its rows missed, and is there room for them now? Takes DUET_UNWIND_GRACE_NS when others make it. */
bool unwind_tables_bring_back(struct unwind_tables *tables, int module);

/*
 * The process's mappings, sorted, from now on instead of those before. 0, -E2BIG and -ENOSPC (it keeps the old ones)
 * or another -errno.
 */
int unwind_tables_publish(struct unwind_tables *tables, pid_t pid, uint64_t start_ticks,
			  const struct duet_unwind_mapping *mappings, size_t count);
void unwind_tables_forget(struct unwind_tables *tables, pid_t pid);

#endif
