/* SPDX-License-Identifier: MIT */
#include "writers/shared/tree_diff.h"

#include <errno.h>
#include <stdlib.h>

/* Returns the id in `tree` of a label of another tree; the label is added when new; 0 when out of memory. */
static uint32_t same_label(struct tree *tree, const struct path_label *label)
{
	uint32_t id = intern_str(&tree->labels.texts, label->text);
	struct path_label copy = *label;

	if (id < tree->labels.len)
		return id;
	copy.text = intern_text(&tree->labels.texts, id);
	copy.used = false;
	return vec_push(&tree->labels, copy) < 0 ? 0 : id;
}

static void add_code(struct tree_node *to, const struct tree_node *from)
{
	to->inlined += from->inlined;
	to->interpreted += from->interpreted;
	if (from->line_low && (!to->line_low || from->line_low < to->line_low))
		to->line_low = from->line_low;
	if (from->line_high > to->line_high)
		to->line_high = from->line_high;
}

/* Stores in `to` the node of the merged tree for each of A's nodes. Parents come first. */
static int merge_nodes(struct tree_diff *diff, const struct tree *a, uint32_t *to)
{
	for (uint32_t i = 1; i < a->nodes.len; i++) {
		const struct tree_node *node = &a->nodes.items[i];
		uint32_t label = same_label(&diff->tree, tree_label(a, i));

		to[i] = label ? tree_child(&diff->tree, to[node->parent], label) : 0;
		if (!to[i])
			return -ENOMEM;
	}
	return 0;
}

static int merge(struct tree_diff *diff, const struct tree *a)
{
	uint32_t *to = calloc(a->nodes.len, sizeof(*to));
	int err = to ? merge_nodes(diff, a, to) : -ENOMEM;

	if (!err)
		err = vec_reserve(&diff->a, diff->tree.nodes.len);
	for (; !err && diff->a.len < diff->tree.nodes.len; diff->a.len++)
		diff->a.items[diff->a.len] = (struct tree_side){0};
	for (uint32_t i = 0; !err && i < a->nodes.len; i++) {
		const struct tree_node *node = &a->nodes.items[i];

		tree_weight_add(&diff->a.items[to[i]].total, &node->total);
		tree_weight_add(&diff->a.items[to[i]].self, &node->self);
		add_code(&diff->tree.nodes.items[to[i]], node);
	}
	free(to);
	return err;
}

static int build_side(struct tree *tree, const struct writer_side *side, const struct writer_options *options)
{
	struct writer_options ours = *options;

	ours.event = side->event;
	ours.style.steady = true;
	return tree_build(tree, side->profile, &ours);
}

int tree_diff_build(struct tree_diff *diff, const struct writer_diff *two, const struct writer_options *options)
{
	struct tree a;
	int err;

	*diff = (struct tree_diff){0};
	err = build_side(&a, &two->a, options);
	if (err < 0)
		return err;
	err = build_side(&diff->tree, &two->b, options);
	if (!err) {
		err = merge(diff, &a);
		if (err < 0)
			tree_diff_release(diff);
	}
	tree_release(&a);
	return err;
}

void tree_diff_release(struct tree_diff *diff)
{
	tree_release(&diff->tree);
	vec_release(&diff->a);
}
