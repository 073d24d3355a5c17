/* SPDX-License-Identifier: MIT */
/* The call tree as text, callees with the largest value first. With --reverse it is the tree of backtraces. */
#include <inttypes.h>

#include "base/text.h"
#include "writers/shared/tree.h"
#include "writers/writer.h"

#define INDENT_MAX 1024 /* of deeper frames only the number is written */

struct call_tree {
	const struct profile *profile;
	const struct writer_options *options;
	FILE *out;
	struct tree tree;
};

static uint64_t value_of(const struct call_tree *t, uint32_t node)
{
	return tree_value(&t->tree.nodes.items[node].total, t->options);
}

/* Returns the next node that is shown, at *depth levels below the root; 0 at the end. */
static uint32_t next_shown(const struct call_tree *t, uint32_t node, uint32_t *depth)
{
	uint32_t from = node, next = tree_next(&t->tree, node, false), parent;

	/* --minwidth */
	while (next && (double)value_of(t, next) * 100 < (double)value_of(t, 0) * t->options->min_width)
		next = tree_next(&t->tree, next, true);
	parent = next ? t->tree.nodes.items[next].parent : 0;
	for (*depth += 1; next && from != parent; from = t->tree.nodes.items[from].parent)
		*depth -= 1;
	return next;
}

static void print_tree(const struct call_tree *t)
{
	uint64_t all = value_of(t, 0);
	uint32_t depth = 0;

	fprintf(t->out, "%s of %s: %" PRIu64 " %s\n\n", t->options->reverse ? "Backtraces" : "Call tree",
		writer_event(t->profile, t->options), all,
		t->options->total ? writer_unit(t->profile, t->options) : "samples");
	fprintf(t->out, "%12s %8s %12s %8s  depth\n", "total", "percent", "self", "percent");
	for (uint32_t node = next_shown(t, 0, &depth); node; node = next_shown(t, node, &depth)) {
		uint64_t value = value_of(t, node), self = tree_value(&t->tree.nodes.items[node].self, t->options);

		fprintf(t->out, "%12" PRIu64 " %7.2f%% %12" PRIu64 " %7.2f%%  [%2u] %*s%s\n", value,
			text_percent(value, all), self, text_percent(self, all), depth,
			(int)(depth < INDENT_MAX ? depth : INDENT_MAX) - 1, "", tree_label(&t->tree, node)->text);
	}
}

static int tree_text_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct call_tree t = {.profile = profile, .options = options, .out = out};
	int err = tree_build(&t.tree, profile, options);

	if (err < 0)
		return err;
	err = tree_sort(&t.tree, options);
	if (!err)
		print_tree(&t);
	tree_release(&t.tree);
	return err ? err : writer_finish(out);
}

const struct writer writer_tree_text = {
	.name = "tree-text",
	.extensions = "tree.txt",
	.help = "the call tree as text",
	.write = tree_text_write,
};
