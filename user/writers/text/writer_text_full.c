/* SPDX-License-Identifier: MIT */
/* The whole report: facts, hottest stacks, hottest methods, marks, losses; and the difference of two profiles. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "writers/shared/path.h"
#include "writers/shared/tree.h"
#include "writers/text/tables.h"
#include "writers/writer.h"

#define USAGES_MAX 50 /* rows of the table of processes */
#define WAITS_MAX 50 /* rows of the table of wakers and sleepers */

/* The part of the report for one event. */
struct report {
	const struct profile *profile;
	struct writer_options options; /* of the event */
	const char *unit; /* of weights */
	FILE *out;
	struct tree tree;
	struct tree_weight *labels; /* self of each label, or of all stacks with the mark */
	uint32_t *order;	    /* room for every node and label */
};

/* Percent of the amount that is printed before it: samples may differ in weight. */
static double percent(const struct report *r, const struct tree_weight *weight)
{
	return text_percent(weight->amount, r->tree.nodes.items[0].total.amount);
}

/* These two: hottest first; equal ones in the order in which they were first seen. */
static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct report *r = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return vec_order(r->tree.nodes.items[y].self.amount, r->tree.nodes.items[x].self.amount) ?: vec_order(x, y);
}

static int compare_labels(const void *a, const void *b, void *arg)
{
	const struct report *r = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return vec_order(r->labels[y].amount, r->labels[x].amount) ?: vec_order(x, y);
}

static void print_line(const struct report *r, const char *text)
{
	BUF(line);

	text_add_line(&line, text);
	fprintf(r->out, "%s\n", line.data);
}

static void print_facts(const struct report *r, uint64_t samples)
{
	const struct profile *profile = r->profile;
	BUF(key);

	fprintf(r->out, "--- Execution profile ---\n");
	if (r->options.title)
		print_line(r, r->options.title);
	fprintf(r->out, "%-20s: %" PRIu64 "\n", "Total samples", samples);
	for (size_t i = 0; i < profile->facts.len; i++) {
		const struct profile_fact *fact = &profile->facts.items[i];

		buf_clear(&key);
		text_add_line(&key, profile_text(profile, fact->key));
		fprintf(r->out, "%-20s: ", key.data);
		print_line(r, profile_text(profile, fact->value));
	}
}

/* Prints the frames from the leaf on. Returns false if there was no room for all. */
static bool print_frames(const struct tree *tree, uint32_t leaf, struct stack_room *room, FILE *out)
{
	uint64_t most = stack_room_next(room), bytes = 0;
	unsigned int depth = 0;
	uint32_t i;

	for (i = leaf; i && bytes < most; i = tree->nodes.items[i].parent)
		bytes += (uint64_t)fprintf(out, "  [%2u] %s\n", depth++, tree_label(tree, i)->text);
	if (i)
		fprintf(out, "  [%2u] " PATH_TRUNCATED "\n", depth);
	stack_room_took(room, bytes);
	return !i;
}

static void print_trace(const struct report *r, uint32_t leaf, struct stack_room *room)
{
	const struct tree_node *node = &r->tree.nodes.items[leaf];

	fprintf(r->out, "\n--- %" PRIu64 " %s (%.2f%%), %" PRIu64 " sample%s\n", node->self.amount, r->unit,
		percent(r, &node->self), node->self.samples, node->self.samples == 1 ? "" : "s");
	if (!print_frames(&r->tree, leaf, room, r->out))
		writer_left_out(&r->options);
}

static void print_traces(const struct report *r)
{
	struct stack_room room = stack_room_new(r->tree.most_text);
	size_t count = 0;

	for (uint32_t i = 1; i < r->tree.nodes.len; i++)
		if (r->tree.nodes.items[i].self.samples)
			r->order[count++] = i;
	qsort_r(r->order, count, sizeof(*r->order), compare_nodes, (void *)r);
	for (size_t i = 0; i < count && i < r->options.traces; i++)
		print_trace(r, r->order[i], &room);
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

		fprintf(r->out, "  %12" PRIu64 "  %6.2f%%  %7" PRIu64 "  %s\n", weight->amount, percent(r, weight),
			weight->samples, r->tree.labels.items[r->order[i]].text);
	}
}

static void print_flat(const struct report *r)
{
	size_t count;

	for (uint32_t i = 1; i < r->tree.nodes.len; i++)
		tree_weight_add(&r->labels[r->tree.nodes.items[i].label], &r->tree.nodes.items[i].self);
	count = order_labels(r);
	if (!count || !r->options.flat)
		return;
	fprintf(r->out, "\n  %12s  %7s  %7s  %s\n", r->unit, "percent", "samples", "top");
	fprintf(r->out, "  ------------  -------  -------  ---\n");
	print_labels(r, count < r->options.flat ? count : r->options.flat);
}

/* Prints the marks, with the weight of all stacks that contain them at any depth. */
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
	fprintf(r->out, "\n  %12s  %7s  %7s  %s\n", r->unit, "percent", "samples", "incomplete stacks");
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
		print_line(r, profile_text(profile, profile->losses.items[i].text));
	}
}

static int print_event(struct report *r)
{
	const struct tree_weight *all = &r->tree.nodes.items[0].total;
	size_t rows = r->tree.nodes.len + r->tree.labels.len;
	int err = 0;

	r->labels = calloc(r->tree.labels.len, sizeof(*r->labels));
	r->order = calloc(rows, sizeof(*r->order));
	if (!r->labels || !r->order) {
		err = -ENOMEM;
		goto out;
	}
	if (r->profile->events.len > 1)
		fprintf(r->out, "\n=== %s: %" PRIu64 " %s, %" PRIu64 " sample%s ===\n",
			writer_event(r->profile, &r->options), all->amount, r->unit, all->samples,
			all->samples == 1 ? "" : "s");
	print_traces(r);
	print_flat(r);
	if (r->options.flat)
		err = waits_print(r->profile, &r->options, WAITS_MAX, r->out);
	print_marks(r);
out:
	free(r->labels);
	free(r->order);
	return err;
}

/* Writes facts, one part for each event, and losses. */
static int print_reports(struct report *reports, size_t count)
{
	const struct report *first = &reports[0];
	uint64_t samples = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++)
		samples += reports[i].tree.nodes.items[0].total.samples;
	print_facts(first, samples);
	for (size_t i = 0; !err && i < count; i++)
		err = print_event(&reports[i]);
	if (!err)
		err = usage_table_print(first->profile, USAGES_MAX, first->out);
	if (err < 0)
		return err;
	print_losses(first);
	return writer_finish(first->out);
}

static int full_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	size_t count = profile->events.len > 0 ? profile->events.len : 1;
	struct report *reports = calloc(count, sizeof(*reports));
	int err = reports ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count; i++) {
		struct report *r = &reports[i];

		*r = (struct report){.profile = profile, .options = *options, .out = out};
		r->options.style.dotted = true;
		r->options.reverse = false;
		r->options.event = (uint32_t)i;
		r->unit = writer_unit(profile, &r->options);
		err = tree_build(&r->tree, profile, &r->options);
	}
	if (!err)
		err = print_reports(reports, count);
	for (size_t i = 0; reports && i < count; i++)
		tree_release(&reports[i].tree);
	free(reports);
	return err;
}

const struct writer writer_text_full = {
	.name = "text=full",
	.extensions = "full.txt",
	.has_all_events = true,
	.has_usages = true,
	.help = "facts, 100 stacks, 200 methods and losses; with async-profiler's names this is text",
	.write = full_write,
};

/* Writes the report with only one of its lists. */
static int traces_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;

	ours.flat = 0;
	return full_write(profile, &ours, out);
}

static int flat_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;

	ours.traces = 0;
	return full_write(profile, &ours, out);
}

const struct writer writer_traces = {
	.name = "traces",
	.count_at = offsetof(struct writer_options, traces),
	.extensions = "traces",
	.has_all_events = true,
	.help = "the report without its list of methods; traces=N: N stacks",
	.write = traces_write,
};

const struct writer writer_flat = {
	.name = "flat",
	.count_at = offsetof(struct writer_options, flat),
	.extensions = "flat",
	.has_all_events = true,
	.help = "the report without its list of stacks; flat=N: N methods",
	.write = flat_write,
};

/* ---- the difference of two profiles: what has grown most comes first ---- */

struct change {
	uint64_t a, b;
	uint32_t row; /* the node or label */
};

struct changes vec(struct change);

static int64_t growth(const struct change *change)
{
	return (int64_t)(change->b - change->a);
}

/* The greatest growth first; equal ones in the order in which they were first seen. */
static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return vec_order(growth(y), growth(x)) ?: vec_order(x->row, y->row);
}

/* Lists the rows that have changed. */
static int find_changes(struct changes *ret, const struct change *rows, size_t count)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++)
		if (rows[i].a != rows[i].b)
			err = vec_push(ret, rows[i]);
	if (ret->len)
		qsort(ret->items, ret->len, sizeof(*ret->items), compare_changes);
	return err;
}

static int find_all_changes(struct changes *stacks, struct changes *leaves, const struct tree_diff *diff)
{
	const struct tree *tree = &diff->tree;
	struct change *nodes = calloc(tree->nodes.len, sizeof(*nodes));
	struct change *labels = calloc(tree->labels.len, sizeof(*labels));
	int err = nodes && labels ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < tree->labels.len; i++)
		labels[i].row = i;
	for (uint32_t i = 1; !err && i < tree->nodes.len; i++) {
		struct change *sum = &labels[tree->nodes.items[i].label];

		nodes[i] = (struct change){diff->a.items[i].self.amount, tree->nodes.items[i].self.amount, i};
		sum->a += nodes[i].a;
		sum->b += nodes[i].b;
	}
	if (!err)
		err = find_changes(stacks, nodes, tree->nodes.len);
	if (!err)
		err = find_changes(leaves, labels, tree->labels.len);
	free(nodes);
	free(labels);
	return err;
}

static void print_name(const char *label, const char *name, FILE *out)
{
	BUF(line);

	text_add_line(&line, name);
	fprintf(out, "%-20s: %s\n", label, line.data);
}

static void print_head(const struct tree_diff *diff, const struct writer_diff *two,
		       const struct writer_options *options, FILE *out)
{
	struct change all = {diff->a.items[0].total.amount, diff->tree.nodes.items[0].total.amount, 0};

	fprintf(out, "--- Changes ---\n");
	if (options->title)
		print_name("Title", options->title, out);
	print_name("From", two->a.name, out);
	print_name("To", two->b.name, out);
	fprintf(out, "%-20s: %+" PRId64 " %s (%" PRIu64 ", then %" PRIu64 ")\n", writer_event(two->b.profile, options),
		growth(&all), writer_unit(two->b.profile, options), all.a, all.b);
}

static void print_leaves(const struct changes *changes, const struct tree *tree, uint32_t most, FILE *out)
{
	if (!changes->len || !most)
		return;
	fprintf(out, "\n  %12s  %12s  %12s  %s\n", "change", "from", "to", "top");
	fprintf(out, "  ------------  ------------  ------------  ---\n");
	for (size_t i = 0; i < changes->len && i < most; i++) {
		const struct change *change = &changes->items[i];

		fprintf(out, "  %+12" PRId64 "  %12" PRIu64 "  %12" PRIu64 "  %s\n", growth(change), change->a,
			change->b, tree->labels.items[change->row].text);
	}
}

static void print_changes(const struct changes *stacks, const struct tree *tree, const char *unit, uint32_t most,
			  FILE *out)
{
	struct stack_room room = stack_room_new(tree->most_text);

	for (size_t i = 0; i < stacks->len && i < most; i++) {
		const struct change *change = &stacks->items[i];

		fprintf(out, "\n--- %+" PRId64 " %s (%" PRIu64 ", then %" PRIu64 ")\n", growth(change), unit, change->a,
			change->b);
		print_frames(tree, change->row, &room, out);
	}
}

/* The weights are compared as they are, also with two->normalize: growth is no share. */
int text_write_diff(const struct writer_diff *two, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct changes stacks = {0}, leaves = {0};
	struct tree_diff diff;
	int err;

	ours.style.dotted = true;
	ours.reverse = false;
	err = tree_diff_build(&diff, two, &ours);
	if (err < 0)
		return err;
	ours.event = two->b.event;
	err = find_all_changes(&stacks, &leaves, &diff);
	if (!err) {
		print_head(&diff, two, &ours, out);
		print_leaves(&leaves, &diff.tree, ours.flat, out);
		print_changes(&stacks, &diff.tree, writer_unit(two->b.profile, &ours), ours.traces, out);
	}
	vec_release(&stacks);
	vec_release(&leaves);
	tree_diff_release(&diff);
	return err ? err : writer_finish(out);
}
