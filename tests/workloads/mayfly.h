/* SPDX-License-Identifier: MIT */
/* What mayfly.c and its children share: a page behind a descriptor that they inherit. */
#ifndef WORKLOADS_MAYFLY_H
#define WORKLOADS_MAYFLY_H

#include <stdint.h>

#define MAYFLY_PAGE_FD 3

struct mayfly_page {
	uint64_t children; /* that have begun */
	uint64_t burned_ns[2]; /* in burn_long(), in burn_short() */
};

#endif
