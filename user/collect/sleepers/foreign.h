/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process whose sleeping threads are walked from outside. The helper (proc/helper.h) reads the memory,
 * because the process can make a read hang. One process at a time. The process may change its memory at any moment, so
 * nothing that is read is trusted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "proc/helper.h"

#define FOREIGN_STACKS 240 /* most stacks read at a time */

struct foreign {
	pid_t pid;
	struct helper_answer answer; /* the stacks */
	uint64_t stacks[FOREIGN_STACKS]; /* their addresses, in the order of the answer */
	size_t stack_count;
	size_t stack; /* index of the stack that is being walked */
	size_t stack_bytes; /* bytes that were read of each of these stacks */
	size_t deepest; /* most bytes that the walk of a stack of this process has needed so far */
	struct map pages; /* address / page size -> its bytes, owned */
	size_t reads_left; /* single pages of this process that may still be read */
};

/* Reads from this process from now on, and drops what was read before. Begin with a zeroed struct. */
void foreign_open(struct foreign *foreign, pid_t pid);
void foreign_close(struct foreign *foreign);
/*
 * Reads at once the first of the stacks that begin at these addresses. Returns how many, 1 to FOREIGN_STACKS; `count`
 * is at least 1. The caller then sets foreign->stack to the index of the stack that foreign_read() searches first.
 */
size_t foreign_read_stacks(struct foreign *foreign, const uint64_t *addresses, size_t count);
/* Returns 0, or -1 if the memory cannot be read. */
int foreign_read(struct foreign *foreign, void *to, size_t bytes, uint64_t address);
