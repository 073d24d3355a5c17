/* SPDX-License-Identifier: MIT */
/*
 * One line a stack, root first: "a;b;c 12". Programs that read this format treat every line as a stack, so facts and
 * losses are not written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "out/tree.h"
#include "out/writers.h"

struct path {
	struct vec(uint32_t) nodes; /* leaf first */
};

static int path_set(struct path *path, const struct tree *tree, uint32_t leaf)
{
	vec_clear(&path->nodes);
	for (uint32_t node = leaf; node; node = tree->nodes.items[node].parent)
		if (vec_push(&path->nodes, node) < 0)
			return -ENOMEM;
	return 0;
}

int collapsed_write_stacks(const struct tree *tree, const struct writer_options *options, FILE *out)
{
	struct path path = {0};
	int err = 0;

	for (uint32_t leaf = tree_next(tree, 0, false); leaf && !err; leaf = tree_next(tree, leaf, false)) {
		const struct tree_node *node = &tree->nodes.items[leaf];

		if (!node->self.samples)
			continue;
		err = path_set(&path, tree, leaf);
		for (size_t i = path.nodes.len; i-- > 0;)
			fprintf(out, "%s%s", tree_label(tree, path.nodes.items[i])->text, i ? ";" : " ");
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
	err = tree_sort(&tree);
	if (!err)
		err = collapsed_write_stacks(&tree, &ours, out);
	tree_release(&tree);
	return err ? err : writer_finish(out);
}

const struct writer writer_collapsed = {
	.name = "collapsed",
	.extensions = "collapsed,folded",
	.help = "one line a stack, root first: a;b;c 12",
	.write = collapsed_write,
};
