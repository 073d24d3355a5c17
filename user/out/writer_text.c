/* SPDX-License-Identifier: MIT */
/* The report people read in a terminal: how it was taken, hottest stacks, hottest methods, marks, losses. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "out/tree.h"
#include "out/writers.h"
#include "base/text.h"

struct report {
	const struct profile *profile;
	const struct writer_options *options;
	FILE *out;
	struct tree tree;
	struct tree_weight *labels; /* self of each label, or of all stacks with the mark */
	uint32_t *order;	    /* room for every node and label */
};

static double percent(const struct report *r, const struct tree_weight *weight)
{
	uint64_t all = tree_value(&r->tree.nodes.items[0].total, r->options);

	return all ? 100.0 * (double)tree_value(weight, r->options) / (double)all : 0;
}

/* Hottest first; equal ones in the order they were met. */
static int compare(const struct report *r, const struct tree_weight *a, const struct tree_weight *b, uint32_t x,
		   uint32_t y)
{
	uint64_t left = tree_value(a, r->options), right = tree_value(b, r->options);

	return left != right ? (left < right) - (left > right) : (x > y) - (x < y);
}

static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct report *r = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return compare(r, &r->tree.nodes.items[x].self, &r->tree.nodes.items[y].self, x, y);
}

static int compare_labels(const void *a, const void *b, void *arg)
{
	const struct report *r = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return compare(r, &r->labels[x], &r->labels[y], x, y);
}

static void print_line(const struct report *r, const char *text)
{
	struct buf line;

	buf_init(&line);
	text_add_line(&line, text);
	fprintf(r->out, "%s\n", line.data);
	buf_release(&line);
}

static void print_facts(const struct report *r)
{
	const struct profile *profile = r->profile;

	fprintf(r->out, "--- Execution profile ---\n");
	if (r->options->title)
		print_line(r, r->options->title);
	fprintf(r->out, "%-20s: %" PRIu64 "\n", "Total samples", r->tree.nodes.items[0].total.samples);
	for (size_t i = 0; i < profile->facts.len; i++) {
		const struct profile_fact *fact = &profile->facts.items[i];

		fprintf(r->out, "%-20s: ", intern_text(&profile->strings, fact->key));
		print_line(r, intern_text(&profile->strings, fact->value));
	}
}

static void print_trace(const struct report *r, uint32_t leaf)
{
	const struct tree *tree = &r->tree;
	const struct tree_node *node = &tree->nodes.items[leaf];
	unsigned int depth = 0;

	fprintf(r->out, "\n--- %" PRIu64 " ns (%.2f%%), %" PRIu64 " sample%s\n", node->self.ns, percent(r, &node->self),
		node->self.samples, node->self.samples == 1 ? "" : "s");
	for (uint32_t i = leaf; i; i = tree->nodes.items[i].parent)
		fprintf(r->out, "  [%2u] %s\n", depth++, tree_label(tree, i)->text);
}

static void print_traces(const struct report *r)
{
	size_t count = 0;

	for (uint32_t i = 1; i < r->tree.nodes.len; i++)
		if (r->tree.nodes.items[i].self.samples)
			r->order[count++] = i;
	qsort_r(r->order, count, sizeof(*r->order), compare_nodes, (void *)r);
	for (size_t i = 0; i < count && i < r->options->traces; i++)
		print_trace(r, r->order[i]);
}

static size_t order_labels(const struct report *r)
{
	size_t count = 0;

	for (uint32_t i = 1; i < r->tree.labels.len; i++)
		if (r->labels[i].samples)
			r->order[count++] = i;
	qsort_r(r->order, count, sizeof(*r->order), compare_labels, (void *)r);
	return count;
}

static void print_labels(const struct report *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct tree_weight *weight = &r->labels[r->order[i]];

		fprintf(r->out, "  %12" PRIu64 "  %6.2f%%  %7" PRIu64 "  %s\n", weight->ns, percent(r, weight),
			weight->samples, r->tree.labels.items[r->order[i]].text);
	}
}

static void print_flat(const struct report *r)
{
	size_t count;

	for (uint32_t i = 1; i < r->tree.nodes.len; i++)
		tree_weight_add(&r->labels[r->tree.nodes.items[i].label], &r->tree.nodes.items[i].self);
	count = order_labels(r);
	if (!count || !r->options->flat)
		return;
	fprintf(r->out, "\n  %12s  %7s  %7s  %s\n", "ns", "percent", "samples", "top");
	fprintf(r->out, "  ------------  -------  -------  ---\n");
	print_labels(r, count < r->options->flat ? count : r->options->flat);
}

/* Stacks with something that duet has to say, wherever it stands in them. */
static void print_marks(const struct report *r)
{
	size_t count;

	for (uint32_t i = 0; i < r->tree.labels.len; i++)
		r->labels[i] = (struct tree_weight){0};
	for (uint32_t i = 1; i < r->tree.nodes.len; i++)
		if (tree_label(&r->tree, i)->kind == FRAME_MARK)
			tree_weight_add(&r->labels[r->tree.nodes.items[i].label], &r->tree.nodes.items[i].total);
	count = order_labels(r);
	if (!count)
		return;
	fprintf(r->out, "\n  %12s  %7s  %7s  %s\n", "ns", "percent", "samples", "incomplete stacks");
	fprintf(r->out, "  ------------  -------  -------  -----------------\n");
	print_labels(r, count);
}

static void print_losses(const struct report *r)
{
	const struct profile *profile = r->profile;

	fprintf(r->out, "\n--- Lost ---\n");
	if (!profile->losses.len)
		fprintf(r->out, "nothing was lost\n");
	for (size_t i = 0; i < profile->losses.len; i++) {
		fprintf(r->out, "%12" PRIu64 "  ", profile->losses.items[i].count);
		print_line(r, intern_text(&profile->strings, profile->losses.items[i].text));
	}
}

static int print_report(struct report *r)
{
	size_t rows = r->tree.nodes.len + r->tree.labels.len;
	int err = 0;

	r->labels = calloc(r->tree.labels.len, sizeof(*r->labels));
	r->order = calloc(rows, sizeof(*r->order));
	if (!r->labels || !r->order) {
		err = -ENOMEM;
		goto out;
	}
	print_facts(r);
	print_traces(r);
	print_flat(r);
	print_marks(r);
	print_losses(r);
	err = writer_finish(r->out);
out:
	free(r->labels);
	free(r->order);
	return err;
}

static int text_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct report report = {.profile = profile, .options = &ours, .out = out};
	int err;

	ours.style.dotted = true;
	ours.reverse = false;
	err = tree_build(&report.tree, profile, &ours);
	if (err < 0)
		return err;
	err = print_report(&report);
	tree_release(&report.tree);
	return err;
}

const struct writer writer_text = {
	.name = "text",
	.extensions = "txt",
	.help = "hottest stacks, hottest methods and losses, to read in a terminal",
	.write = text_write,
};
