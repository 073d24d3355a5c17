/* SPDX-License-Identifier: MIT */
/*
 * The format of callgrind, for KCachegrind and callgrind_annotate: the cost of each function itself, and the cost of
 * each of its calls with everything below. A recursive call within the same call is not added again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "writers/shared/tree.h"
#include "writers/writer.h"

#define NAMES_MAX (256u << 20) /* bytes */

struct call {
	uint32_t caller, callee; /* labels; the caller 0 is the root */
	struct tree_weight cost;
	uint32_t open; /* nodes of this call around the node that is looked at */
};

struct callgrind {
	const struct profile *profile;
	FILE *out;
	struct tree tree;
	struct tree_weight *self; /* by label */
	struct vec(struct call) calls;
	struct map call_ids; /* caller << 32 | callee -> index */
	struct vec(uint32_t) open; /* calls around the node that is looked at */
	uint64_t names_bytes; /* written so far */
	bool *is_named; /* by label: the file has the name */
};

static uint32_t label_of(const struct callgrind *c, uint32_t node)
{
	return node ? c->tree.nodes.items[node].label : 0;
}

/* The node is left: calls that end there are no longer open. */
static void close_call(struct callgrind *c)
{
	c->calls.items[c->open.items[--c->open.len]].open--;
}

/* The call's cost counts unless the same caller calls the same function nearer to the root: that call is open. */
static int open_call(struct callgrind *c, uint32_t node)
{
	const struct tree_node *row = &c->tree.nodes.items[node];
	struct call call = {.caller = label_of(c, row->parent), .callee = row->label};
	uint64_t key = (uint64_t)call.caller << 32 | call.callee, index = c->calls.len;

	if (!map_get(&c->call_ids, key, &index) &&
	    (map_put(&c->call_ids, key, index) < 0 || vec_push(&c->calls, call) < 0))
		return -ENOMEM;
	if (!c->calls.items[index].open++)
		tree_weight_add(&c->calls.items[index].cost, &row->total);
	return vec_push(&c->open, (uint32_t)index);
}

/* In preorder: a node's depth is the number of calls that are open around it. */
static int add_calls(struct callgrind *c)
{
	const struct tree_node *nodes = c->tree.nodes.items;
	uint32_t before = 0;
	int err = tree_sort(&c->tree, NULL);

	for (uint32_t node = tree_next(&c->tree, 0, false); node && !err; node = tree_next(&c->tree, node, false)) {
		for (; before != nodes[node].parent; before = nodes[before].parent)
			close_call(c);
		err = open_call(c, node);
		before = node;
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return vec_order(x->caller, y->caller) ?: vec_order(x->callee, y->callee);
}

static int collect(struct callgrind *c)
{
	int err;

	c->self = calloc(c->tree.labels.len + 1, sizeof(*c->self));
	c->is_named = calloc(c->tree.labels.len + 1, sizeof(*c->is_named));
	if (!c->self || !c->is_named)
		return -ENOMEM;
	for (uint32_t node = 1; node < c->tree.nodes.len; node++)
		tree_weight_add(&c->self[label_of(c, node)], &c->tree.nodes.items[node].self);
	err = add_calls(c);
	if (!err && c->calls.len)
		qsort(c->calls.items, c->calls.len, sizeof(*c->calls.items), compare);
	return err;
}

/*
 * A function's file is where its code comes from. Its number in the file makes the name unique; when the names of calls
 * have taken NAMES_MAX, it stands for the name.
 */
static void put_function(struct callgrind *c, const char *prefix, uint32_t label)
{
	const struct path_label *row = &c->tree.labels.items[label];
	int bytes = 0;
	BUF(module);

	if (c->names_bytes > NAMES_MAX && c->is_named[label]) {
		fprintf(c->out, "%sfn=(%u)\n", prefix, label);
		return;
	}
	text_add_line(&module, *row->module ? row->module : "???");
	bytes += fprintf(c->out, "%sob=%s\n", prefix, module.data);
	bytes += fprintf(c->out, "%sfn=(%u) %s\n", prefix, label, row->text);
	c->is_named[label] = true;
	c->names_bytes += bytes > 0 ? (unsigned int)bytes : 0;
}

static void put_cost(const struct callgrind *c, const struct tree_weight *cost)
{
	fprintf(c->out, "0 %" PRIu64 " %" PRIu64 "\n", cost->amount, cost->samples);
}

static void put_functions(struct callgrind *c)
{
	size_t call = 0;

	for (; call < c->calls.len && !c->calls.items[call].caller; call++)
		; /* from outside */
	for (uint32_t label = 1; label < c->tree.labels.len; label++) {
		if (!c->tree.labels.items[label].used)
			continue;
		fputc('\n', c->out);
		put_function(c, "", label);
		put_cost(c, &c->self[label]);
		for (; call < c->calls.len && c->calls.items[call].caller == label; call++) {
			put_function(c, "c", c->calls.items[call].callee);
			fprintf(c->out, "calls=%" PRIu64 " 0\n", c->calls.items[call].cost.samples);
			put_cost(c, &c->calls.items[call].cost);
		}
	}
}

static int put_all(struct callgrind *c, const struct writer_options *options)
{
	const struct tree_weight *all = &c->tree.nodes.items[0].total;
	const char *event = writer_event(c->profile, options);

	fprintf(c->out, "# callgrind format\nversion: 1\ncreator: duet\npositions: line\n");
	fprintf(c->out, "event: weight : %s, in %s\nevent: samples : samples of %s\n", event,
		writer_unit(c->profile, options), event);
	fprintf(c->out, "events: weight samples\nsummary: %" PRIu64 " %" PRIu64 "\n", all->amount, all->samples);
	put_functions(c);
	fprintf(c->out, "\ntotals: %" PRIu64 " %" PRIu64 "\n", all->amount, all->samples);
	return writer_finish(c->out);
}

static int callgrind_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct callgrind c = {.profile = profile, .out = out};
	struct writer_options ours = *options;
	int err;

	ours.reverse = false;
	err = tree_build(&c.tree, profile, &ours);
	if (err < 0)
		return err;
	err = collect(&c);
	if (!err)
		err = put_all(&c, &ours);
	tree_release(&c.tree);
	free(c.self);
	free(c.is_named);
	vec_release(&c.calls);
	vec_release(&c.open);
	map_release(&c.call_ids);
	return err;
}

const struct writer writer_callgrind = {
	.name = "callgrind",
	.lacks = "threads, times, losses and whole stacks",
	.extensions = "callgrind",
	.help = "for KCachegrind and callgrind_annotate: functions and calls",
	.write = callgrind_write,
};
