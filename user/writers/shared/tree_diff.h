/* SPDX-License-Identifier: MIT */
/*
 * One call tree made from two profiles. Frames with the same text in the chosen style are the same frame; the numbers
 * that a run gives to hidden classes do not matter.
 */
#ifndef WRITERS_SHARED_TREE_DIFF_H
#define WRITERS_SHARED_TREE_DIFF_H

#include "writers/shared/tree.h"
#include "writers/writer.h"

struct tree_side {
	struct tree_weight total;
	struct tree_weight self;
};

struct tree_diff {
	/* The nodes of both. Weights are those of B; kinds, source lines and how the code ran are of both. */
	struct tree tree;
	struct vec(struct tree_side) a; /* the weights of A, by node */
};

/* 0 or -errno (there is nothing to release then). The profiles must outlive the tree. It is not sorted. */
int tree_diff_build(struct tree_diff *diff, const struct writer_diff *two, const struct writer_options *options);
void tree_diff_release(struct tree_diff *diff);

#endif
