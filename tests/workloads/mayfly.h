/* SPDX-License-Identifier: MIT */
/* What mayfly.c and its children share: a page behind a descriptor that they inherit. */
#pragma once

#include <stdint.h>

#define MAYFLY_PAGE_FD 3

struct mayfly_page {
	uint64_t children; /* children that have begun */
	uint64_t burned_ns[2]; /* time in burn_long() and in burn_short() */
};
