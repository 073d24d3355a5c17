/* SPDX-License-Identifier: MIT */
#include "writers/text/text_diff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "writers/shared/path.h"
#include "writers/shared/tree.h"
#include "writers/writer.h"

struct change {
	uint64_t a, b;
	uint32_t row; /* the node or label */
};

struct changes {
	struct vec(struct change) list;
};

static int64_t growth(const struct change *change)
{
	return (int64_t)(change->b - change->a);
}

/* The greatest growth first; equal ones in the order in which they were first seen. */
static int compare(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (growth(x) != growth(y))
		return growth(x) < growth(y) ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Leaves out what has not changed. */
static int add_changed(struct changes *to, const struct change *change)
{
	return change->a == change->b ? 0 : vec_push(&to->list, *change);
}

static void sort(struct changes *changes)
{
	if (changes->list.len)
		qsort(changes->list.items, changes->list.len, sizeof(*changes->list.items), compare);
}

static struct change change_of(const struct tree_diff *diff, uint32_t node)
{
	return (struct change){diff->a.items[node].self.amount, diff->tree.nodes.items[node].self.amount, node};
}

static int find_stacks(struct changes *ret, const struct tree_diff *diff)
{
	int err = 0;

	for (uint32_t i = 1; !err && i < diff->tree.nodes.len; i++) {
		struct change change = change_of(diff, i);

		err = add_changed(ret, &change);
	}
	sort(ret);
	return err;
}

static int find_leaves(struct changes *ret, const struct tree_diff *diff)
{
	struct change *sums = calloc(diff->tree.labels.len, sizeof(*sums));
	int err = sums ? 0 : -ENOMEM;

	for (uint32_t i = 1; !err && i < diff->tree.nodes.len; i++) {
		struct change change = change_of(diff, i), *sum = &sums[diff->tree.nodes.items[i].label];

		sum->a += change.a;
		sum->b += change.b;
	}
	for (uint32_t i = 0; !err && i < diff->tree.labels.len; i++) {
		sums[i].row = i;
		err = add_changed(ret, &sums[i]);
	}
	free(sums);
	sort(ret);
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

static void print_leaves(const struct changes *changes, const struct tree_diff *diff, uint32_t most, FILE *out)
{
	if (!changes->list.len || !most)
		return;
	fprintf(out, "\n  %12s  %12s  %12s  %s\n", "change", "from", "to", "top");
	fprintf(out, "  ------------  ------------  ------------  ---\n");
	for (size_t i = 0; i < changes->list.len && i < most; i++) {
		const struct change *change = &changes->list.items[i];

		fprintf(out, "  %+12" PRId64 "  %12" PRIu64 "  %12" PRIu64 "  %s\n", growth(change), change->a,
			change->b, diff->tree.labels.items[change->row].text);
	}
}

static void print_stack(const struct change *change, const struct tree *tree, const char *unit, struct stack_room *room,
			FILE *out)
{
	uint64_t most = stack_room_next(room), bytes = 0;
	unsigned int depth = 0;
	uint32_t i;

	fprintf(out, "\n--- %+" PRId64 " %s (%" PRIu64 ", then %" PRIu64 ")\n", growth(change), unit, change->a,
		change->b);
	for (i = change->row; i && bytes < most; i = tree->nodes.items[i].parent)
		bytes += (uint64_t)fprintf(out, "  [%2u] %s\n", depth++, tree_label(tree, i)->text);
	if (i)
		fprintf(out, "  [%2u] " PATH_TRUNCATED "\n", depth);
	stack_room_took(room, bytes);
}

static int print(const struct tree_diff *diff, const struct writer_diff *two, const struct writer_options *options,
		 FILE *out)
{
	struct stack_room room = STACK_ROOM_NEW;
	struct changes stacks = {0}, leaves = {0};
	int err = find_stacks(&stacks, diff);

	if (!err)
		err = find_leaves(&leaves, diff);
	if (!err) {
		print_head(diff, two, options, out);
		print_leaves(&leaves, diff, options->flat, out);
		for (size_t i = 0; i < stacks.list.len && i < options->traces; i++)
			print_stack(&stacks.list.items[i], &diff->tree, writer_unit(two->b.profile, options), &room,
				    out);
	}
	vec_release(&stacks.list);
	vec_release(&leaves.list);
	return err;
}

int text_diff_write(const struct writer_diff *two, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct tree_diff diff;
	int err;

	ours.style.dotted = true;
	ours.reverse = false;
	err = tree_diff_build(&diff, two, &ours);
	if (err < 0)
		return err;
	ours.event = two->b.event;
	err = print(&diff, two, &ours, out);
	tree_diff_release(&diff);
	return err ? err : writer_finish(out);
}
