/* SPDX-License-Identifier: MIT */
/*
 * Makes samples of the frames of a flame graph in preorder. What a frame has that its children do not have is a sample:
 * its own, and those of frames that were too narrow to be drawn.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "profile/profile.h"

struct page_level {
	uint32_t frame, node;
	uint64_t samples, amount; /* not yet given to a child */
};

struct page_tree {
	struct profile *profile; /* not owned */
	uint32_t event, thread;
	uint64_t time_ns;
	bool is_dry; /* adds no samples: only nodes are wanted */
	bool is_reversed; /* the graph has the leaves at its root, below leading frames */
	uint64_t steps_left; /* how many frames reversed stacks may have from here on */
	uint64_t samples; /* that were added */
	struct vec(struct page_level) open; /* root first; [0] is the root, which is no frame */
	struct vec(uint32_t) stack;
};

/* `all` is what the root has. Returns 0 or -ENOMEM; call page_tree_release() in both cases. */
int page_tree_init(struct page_tree *tree, uint64_t samples, uint64_t amount);
/* Adds a frame, the first at depth 1. Returns 0, or -errno with one sentence in `why`. */
int page_tree_add(struct page_tree *tree, uint32_t depth, uint32_t frame, uint64_t samples, uint64_t amount,
		  struct buf *why);
/* Adds what is left of the open frames. Returns as page_tree_add(). */
int page_tree_end(struct page_tree *tree, struct buf *why);
/* The node of the stack of the frame that was added last; UINT32_MAX when out of memory. */
uint32_t page_tree_node(struct page_tree *tree);
void page_tree_release(struct page_tree *tree);

/* Makes the frame of a name of this kind, as a page has it: java.lang.String.length, with its module or "". */
struct frame page_frame(struct profile *profile, enum frame_kind kind, const char *name, const char *module);

/* duet's own flame graphs: the page has its events as JSON (writers/html/writer_flamegraph.c). */

/* What stands before the JSON. */
#define HTML_DUET_BEGIN "<script type=\"application/json\" id=\"profiles\">"

/*
 * Reads all events of the page's JSON: with their times and threads where it has single samples. Of two profiles that
 * are compared, it reads the second. Returns 0, or -errno with one sentence in `why`.
 */
int html_duet_read(struct profile *profile, const char *json, size_t len, struct buf *why);
