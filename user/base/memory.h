/* SPDX-License-Identifier: MIT */
/* What this process has of memory, and a bound that the kernel keeps. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/*
 * From here on large blocks are mapped one by one, so that what is freed goes back to the kernel at once. Before
 * anything large is allocated.
 */
void memory_prepare(void);
/*
 * Private writable memory (RLIMIT_DATA, Linux 4.7): above, allocations fail with ENOMEM. Children inherit it. What is
 * taken already stays. 0 or -errno.
 */
int memory_limit(size_t bytes);
size_t memory_limit_now(void);
/* Pages in RAM, in bytes; 0: not known. */
struct memory_resident {
	size_t own;
	size_t files; /* of mapped files, and of what the kernel lends of its own */
};
void memory_resident(struct memory_resident *ret);
size_t memory_touched(const void *at, size_t bytes); /* of a mapping, from the start of a page on: what has a page */
size_t memory_data(void); /* what memory_limit() bounds, used or not. 0: not known */
size_t memory_used(void); /* of it, what is allocated; walks the free lists */
void memory_trim(void); /* gives back what is free between blocks */

#endif
