/* SPDX-License-Identifier: MIT */
/*
 * The data of the page of a flame graph, which flamegraph/profile.js reads. Each event is an object of JSON. Nodes are
 * written as columns of numbers in preorder. "depth" has the difference from the previous node. Columns that are mostly
 * empty are rows of {distance from the previous row, values}. For two profiles, these columns are B's, and "diff" has
 * A's.
 */
#pragma once

#include <stdint.h>

#include "writers/json.h"
#include "writers/shared/ordered.h"
#include "writers/shared/tree.h"

struct page_parts {
	const struct profile *profile; /* of two profiles, B */
	const struct ordered *ordered; /* its samples; NULL: single samples are not written */
	const struct writer_diff *two; /* NULL: one profile */
	const struct tree_side *a; /* the weights of A, by node */
	const char *view; /* in which the page opens: "tree" or "heat"; NULL: flame graph */
};

/* Sorts the tree, and writes it as that of options->event. Returns 0 or -ENOMEM. */
int page_event_write(const struct page_parts *parts, struct tree *tree, const struct writer_options *options,
		     struct json *json);

/* ---- single samples, from which the page draws the graph of some threads or of a range of time ---- */

struct page_samples {
	const struct profile *profile;
	const struct ordered *ordered; /* of the whole profile; page_heat_write() does without */
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
int page_samples_write(const struct page_samples *samples, struct json *json);

/*
 * ---- the samples of an event over time, for pages of more samples: page_heat.c ----
 *
 * They are four tables of rows, by time alone, also by thread, also by stack, by both. The fewer series a table has,
 * the shorter are its steps: the picture of a day is fine, and its flame graph is one of many minutes.
 */

/*
 * Writes "start" in milliseconds, and "heat": its "threads" are names, and its "tables" say {stepMs, hasThreads,
 * hasStacks, rows}. Its "rows" are the numbers of all tables as unsigned LEB128, compressed by gzip, in base64: the
 * number of series; of each its thread, its page_leaf(), as far as the table has them, and the number of its rows; then
 * a column with the steps of the rows since the row before of the series, one with the numbers of samples, and one with
 * the differences between weight and number x period, twice, less 1 if negative. Returns 0 or -ENOMEM.
 */
int page_heat_write(const struct page_samples *samples, struct json *json);
