/* SPDX-License-Identifier: MIT */
/*
 * The call tree that writers print. Samples of one event whose frames have the same text in the chosen style share a
 * node. Filters, -j, -t and --reverse are already applied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "writers/shared/path.h"
#include "writers/writer.h"

/* Number of samples, and their weight in the unit of the event. */
struct tree_weight {
	uint64_t samples;
	uint64_t amount;
};

struct tree_node {
	uint32_t parent;
	uint32_t label;
	uint32_t first_child; /* of the order after tree_sort(), of those added before it; 0 = none */
	uint32_t next_sibling;
	struct tree_weight total; /* with all nodes below */
	struct tree_weight self;  /* stacks that end at this node */
	/* Samples by how the code ran; the rest of total.samples was compiled. */
	uint64_t inlined;
	uint64_t interpreted;
	/* Lowest and highest source line seen, 0 = unknown. */
	int32_t line_low;
	int32_t line_high;
};

#define TREE_LEAVES_MAX 131072 /* most samples of a profile for tree_leaf(), but with options->leaves */

/* Node 0 is the root, without a label; children come after their parents. */
struct tree {
	struct path_labels labels;
	struct vec(struct tree_node) nodes;
	struct map children; /* parent << 32 | label -> node; not the first that was added to each parent */
	struct map leaves; /* thread << 32 | node of the profile -> node; empty for too many samples */
	uint64_t most_text; /* of its profiles */
	bool by_thread; /* leading frames depend on the thread; else the thread in `leaves` is 0 */
};

/* Returns 0, or -errno: then there is nothing to release. The profile must outlive the tree. */
int tree_build(struct tree *tree, const struct profile *profile, const struct writer_options *options);
/* The child of `parent` with this label, added when new; 0 when out of memory. Not after tree_sort(). */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint32_t label);
/* The node where this sample's stack ends; -ENOENT if a filter left it out, or the profile has too many samples. */
int64_t tree_leaf(const struct tree *tree, const struct profile_sample *sample);
void tree_release(struct tree *tree);

/*
 * Ranks the labels, and links the children of each node in the order of their texts; with options, those of the largest
 * tree_value() first. Returns 0 or -ENOMEM.
 */
int tree_sort(struct tree *tree, const struct writer_options *by_value);
/* Returns the next node in preorder of a sorted tree; 0 at the end. `skip` leaves out the nodes below `node`. */
uint32_t tree_next(const struct tree *tree, uint32_t node, bool skip);

/* Returns the value that is ranked and printed: the number of samples, or with --total their weight. */
uint64_t tree_value(const struct tree_weight *weight, const struct writer_options *options);
void tree_weight_add(struct tree_weight *sum, const struct tree_weight *weight);
const struct path_label *tree_label(const struct tree *tree, uint32_t node);

/*
 * One call tree made from two profiles. Frames with the same text in the chosen style are the same frame; the numbers
 * that a run gives to hidden classes do not matter.
 */
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
