/* SPDX-License-Identifier: MIT */
/*
 * Single samples in the page of a flame graph, from which the page draws the graph of some threads or of a range of
 * time.
 */
#ifndef WRITERS_HTML_PAGE_SAMPLES_H
#define WRITERS_HTML_PAGE_SAMPLES_H

#include <stdint.h>
#include <stdio.h>

#include "writers/shared/ordered.h"
#include "writers/shared/tree.h"

struct page_samples {
	const struct profile *profile;
	const struct ordered *ordered; /* of the whole profile; page_heat.h does without */
	const struct tree *tree; /* of one event, with tree_leaf() */
	uint32_t event;
	const uint32_t *rows; /* by node of the tree: row of the page; 0: the root, or not in the page */
	uint64_t period; /* the weight that most samples have */
};

/*
 * Twice the row of the page that shows this node of the tree, plus 1 if it is the node's own: a node that is too narrow
 * for the page is left out with all below, and its nearest caller shows its samples.
 */
uint32_t page_leaf(const struct page_samples *of, uint32_t node);

/*
 * Writes columns of JSON, each after a comma. "threads" has {name, number of samples} for each thread. Samples follow
 * each other by thread and time: "times" has the microseconds since the thread's sample before, or since the start of
 * the recording. "leaves" has twice the row where the stack ends, plus 1 if it ends there and not in a row below that
 * the page has not. "weights" has rows {distance to the sample of the row before, number of merged samples - 1,
 * difference between weight and number x period}; rows of two zeros are left out. Returns 0 or -ENOMEM.
 */
int page_samples_write(const struct page_samples *samples, FILE *out);

#endif
