/* SPDX-License-Identifier: MIT */
/* How much memory this process has, and a limit that the kernel enforces. */
#pragma once

#include <stddef.h>

/* Large blocks are mapped one by one, so that the kernel gets freed ones at once. Call before allocating any. */
void memory_prepare(void);
/*
 * Limits private writable memory (RLIMIT_DATA, Linux 4.7): above the limit, allocations fail with ENOMEM. Children
 * inherit the limit. Memory already taken stays. Returns 0 or -errno.
 */
int memory_limit(size_t bytes);
size_t memory_limit_now(void);
/* Resident memory in bytes; 0 when not known. */
struct memory_resident {
	size_t own;
	size_t files; /* pages of mapped files, and kernel buffers that are mapped */
};
void memory_resident(struct memory_resident *ret);
/* Returns how many bytes of a mapping are resident, in whole pages. `at` must be the start of a page. */
size_t memory_touched(const void *at, size_t bytes);
size_t memory_data(void); /* the memory that memory_limit() limits, used or not; 0 when not known */
size_t memory_used(void); /* the allocated part of it; walks the free lists */
void memory_trim(void); /* gives free memory between blocks back to the kernel */
