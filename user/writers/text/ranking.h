/* SPDX-License-Identifier: MIT */
/*
 * What takes most, for people: methods with their self and total, stacks, and what was waited for or allocated.
 *
 * A sample that waited counts for the first frame of the program's own code, because most threads wait in the same few
 * functions of the kernel and the C library. What threads do that wait all the time, below [idle], is left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "writers/shared/tree.h"

struct ranking {
	const struct tree *tree;
	struct ranking_row {
		uint32_t id; /* label of a method or leaf; of a stack, the node of the innermost frame that is shown */
		uint64_t self, total; /* in the event's unit */
	} * methods, *stacks, *leaves; /* the most first */
	size_t method_count, stack_count, leaf_count;
	uint64_t all, idle; /* all that is ranked; what was left out */
};

/* Ranks a tree, and sorts it: tree_sort(). `is_time`: weights are ns. Returns 0, or -ENOMEM: then nothing is held. */
int ranking_make(struct ranking *ranking, struct tree *tree, bool is_time);
void ranking_release(struct ranking *ranking);
/*
 * Ranks the leading frames of this kind, such as FRAME_THREAD, without what is idle. Returns how many there are, in
 * *ret_rows, which the caller frees; or -ENOMEM.
 */
int64_t ranking_of_kind(const struct tree *tree, enum frame_kind kind, struct ranking_row **ret_rows);
/* True for a frame of a stack's root that is not code: its thread, process … */
bool ranking_is_leading(enum frame_kind kind);
