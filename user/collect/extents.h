/* SPDX-License-Identifier: MIT */
/*
 * Who owns which part of a flat array that BPF reads. What is given back may still be read for a moment: it is taken
 * again DUET_UNWIND_GRACE_NS later at the earliest.
 */
#ifndef COLLECT_EXTENTS_H
#define COLLECT_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct extent {
	uint32_t start;
	uint32_t count;
};

struct extent_given { /* back, at a time */
	struct extent extent;
	uint64_t time_ns;
};

struct extents {
	struct vec(struct extent) free; /* by start, never adjacent */
	struct vec(struct extent_given) given;
};

int extents_init(struct extents *extents, uint32_t count); /* 0 or -ENOMEM */
void extents_release(struct extents *extents);
/* Would extents_take() find `count` elements? */
bool extents_has(struct extents *extents, uint32_t count, uint64_t now_ns);
/* Index of the first of `count` elements, or -ENOSPC. */
int64_t extents_take(struct extents *extents, uint32_t count, uint64_t now_ns);
/* Out of memory, they are never taken again. */
void extents_give(struct extents *extents, uint32_t start, uint32_t count, uint64_t now_ns);

#endif
