/* SPDX-License-Identifier: MIT */
/*
 * Walks sleeping threads from outside, with the arithmetic, the unwind rows and the JVMs' layouts that BPF uses. BPF
 * cannot read the memory of a thread that does not run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "duet_record.h"
#include "proc/helper.h"

struct duet_bpf;
struct sleeper_walker;

/* Maps BPF's tables. Returns NULL when out of memory. Close it soon: the tables count as our memory while mapped. */
struct sleeper_walker *sleeper_walker_open(const struct duet_bpf *bpf, uint32_t user_depth);
void sleeper_walker_close(struct sleeper_walker *walker);

/* A thread that was walked, in its last sleep that was. */
struct sleeper_walked {
	uint64_t switches; /* of the thread when it was shown */
	struct payer payer; /* its user's */
	bool is_reported; /* BPF reported its sleep at the current edge; false after the walk */
	struct duet_sample sample; /* with the user frames */
};

/*
 * Walks threads of one process until the charge's slice is over. Returns how many, at least one. For each thread,
 * passes to `keep` what was walked, which `keep` owns then and frees; NULL when out of memory. A stack that cannot be
 * read has no user frames but the leaf.
 */
typedef void (*sleeper_keep)(void *context, const struct duet_sleeper *sleeper, struct sleeper_walked *walked);
size_t sleeper_walk(struct sleeper_walker *walker, const struct charge *charge,
		    const struct duet_sleeper *const *sleepers, size_t count, sleeper_keep keep, void *context);

/*
 * The memory of a process whose sleeping threads are walked from outside. The helper (proc/helper.h) reads the memory,
 * because the process can make a read hang. One process at a time. The process may change its memory at any moment, so
 * nothing that is read is trusted.
 */

#define FOREIGN_STACKS 240 /* most stacks read at a time */

struct foreign {
	const struct charge *charge; /* not owned */
	struct helper_answer answer; /* the stacks */
	uint64_t stacks[FOREIGN_STACKS]; /* their addresses, in the order of the answer */
	size_t stack_count;
	size_t stack; /* index of the stack that is being walked */
	size_t stack_bytes; /* bytes that were read of each of these stacks */
	size_t deepest; /* most bytes that the walk of a stack of this process has needed so far */
	struct map pages; /* address / page size -> its bytes, owned */
	uint64_t next_page; /* after the last one that was read: a deep stack needs it next */
	size_t reads_left; /* single pages of this process that may still be read */
};

/* Reads from this process from now on, and drops what was read before. Begin with a zeroed struct. */
void foreign_open(struct foreign *foreign, const struct charge *charge);
void foreign_close(struct foreign *foreign);
/*
 * Reads at once the first of the stacks that begin at these addresses. Returns how many, 1 to FOREIGN_STACKS; `count`
 * is at least 1. The caller then sets foreign->stack to the index of the stack that foreign_read() searches first.
 */
size_t foreign_read_stacks(struct foreign *foreign, const uint64_t *addresses, size_t count);
/* Returns 0, or -1 if the memory cannot be read. */
int foreign_read(struct foreign *foreign, void *to, size_t bytes, uint64_t address);
