/* SPDX-License-Identifier: MIT */
/*
 * One event in the page of a flame graph, as an object of JSON, which flamegraph/profile.js reads. Nodes are written as
 * columns of numbers in preorder. "depth" has the difference from the previous node. Columns that are mostly empty are
 * rows of {distance from the previous row, values}. For two profiles, these columns are B's, and "diff" has A's.
 */
#ifndef WRITERS_HTML_PAGE_EVENT_H
#define WRITERS_HTML_PAGE_EVENT_H

#include <stdio.h>

#include "writers/shared/ordered.h"
#include "writers/shared/tree.h"
#include "writers/shared/tree_diff.h"

struct page_parts {
	const struct profile *profile; /* of two profiles, B */
	const struct ordered *ordered; /* its samples; NULL: single samples are not written */
	const struct writer_diff *two; /* NULL: one profile */
	const struct tree_side *a; /* the weights of A, by node */
	const char *view; /* in which the page opens: "tree" or "heat"; NULL: flame graph */
};

/* Sorts the tree, and writes it as that of options->event. Returns 0 or -ENOMEM. */
int page_event_write(const struct page_parts *parts, struct tree *tree, const struct writer_options *options,
		     FILE *out);

#endif
