/* SPDX-License-Identifier: MIT */
/*
 * One line a stack, root first: "a;b;c 12". Programs that read this format treat every line as a stack, so facts and
 * losses are not written.
 */
#include <errno.h>
#include <inttypes.h>

#include <string.h>

#include "writers/shared/path.h"
#include "writers/shared/tree.h"
#include "writers/writer.h"

struct path {
	struct vec(uint32_t) nodes; /* leaf first */
	bool is_cut;
	struct stack_room room;
};

/* Takes the frames from the leaf on for which there is room. */
static int path_set(struct path *path, const struct tree *tree, uint32_t leaf)
{
	uint64_t room = stack_room_next(&path->room), bytes = 0;

	vec_clear(&path->nodes);
	path->is_cut = false;
	for (uint32_t node = leaf; node && !path->is_cut; node = tree->nodes.items[node].parent) {
		bytes += strlen(tree_label(tree, node)->text) + 1;
		path->is_cut = bytes > room && (path->nodes.len || !stack_room_has_leaf(&path->room));
		if (!path->is_cut && vec_push(&path->nodes, node) < 0)
			return -ENOMEM;
	}
	stack_room_took(&path->room, bytes);
	return 0;
}

static int write_path(struct path *path, const struct tree *tree, uint32_t leaf, const struct writer_options *options,
		      FILE *out)
{
	int err = path_set(path, tree, leaf);

	if (path->is_cut) {
		fputs(path->nodes.len ? PATH_TRUNCATED ";" : PATH_TRUNCATED " ", out);
		writer_left_out(options);
	}
	for (size_t i = path->nodes.len; i-- > 0;) {
		fputs(tree_label(tree, path->nodes.items[i])->text, out);
		fputc(i ? ';' : ' ', out);
	}
	return err;
}

int collapsed_write_stacks(const struct tree *tree, const struct writer_options *options, FILE *out)
{
	struct path path = {.room = stack_room_new(tree->most_text)};
	int err = 0;

	for (uint32_t leaf = tree_next(tree, 0, false); leaf && !err; leaf = tree_next(tree, leaf, false)) {
		const struct tree_node *node = &tree->nodes.items[leaf];

		if (!node->self.samples)
			continue;
		err = write_path(&path, tree, leaf, options, out);
		fprintf(out, "%" PRIu64 "\n", tree_value(&node->self, options));
	}
	vec_release(&path.nodes);
	return err;
}

static int collapsed_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct tree tree;
	int err;

	ours.reverse = false;
	err = tree_build(&tree, profile, &ours);
	if (err < 0)
		return err;
	err = tree_sort(&tree, NULL);
	if (!err)
		err = collapsed_write_stacks(&tree, &ours, out);
	tree_release(&tree);
	return err ? err : writer_finish(out);
}

/* difffolded.pl's form, "a;b;c A B": flamegraph.pl draws it with the widths of B. */
static int write_diff_stacks(const struct tree_diff *diff, bool normalize, const struct writer_options *options,
			     FILE *out)
{
	const struct tree *tree = &diff->tree;
	uint64_t total_a = tree_value(&diff->a.items[0].total, options);
	uint64_t total_b = tree_value(&tree->nodes.items[0].total, options);
	struct path path = {.room = stack_room_new(tree->most_text)};
	int err = 0;

	normalize = normalize && total_a && total_b;
	for (uint32_t leaf = tree_next(tree, 0, false); leaf && !err; leaf = tree_next(tree, leaf, false)) {
		const struct tree_weight *a = &diff->a.items[leaf].self, *b = &tree->nodes.items[leaf].self;
		uint64_t value = tree_value(a, options);

		if (!a->samples && !b->samples)
			continue;
		err = write_path(&path, tree, leaf, options, out);
		if (normalize) /* as if A had the total of B */
			value = (uint64_t)(((unsigned __int128)value * total_b + total_a / 2) / total_a);
		fprintf(out, "%" PRIu64 " %" PRIu64 "\n", value, tree_value(b, options));
	}
	vec_release(&path.nodes);
	return err;
}

static int collapsed_write_diff(const struct writer_diff *two, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct tree_diff diff;
	int err;

	ours.reverse = false;
	err = tree_diff_build(&diff, two, &ours);
	if (err < 0)
		return err;
	err = tree_sort(&diff.tree, NULL);
	if (!err)
		err = write_diff_stacks(&diff, two->normalize, &ours, out);
	tree_diff_release(&diff);
	return err ? err : writer_finish(out);
}

const struct writer writer_collapsed = {
	.name = "collapsed",
	.lacks = "times, losses and facts; each event has its own file",
	.extensions = "collapsed,folded",
	.help = "one line a stack, root first: a;b;c 12",
	.write = collapsed_write,
	.write_diff = collapsed_write_diff,
};
