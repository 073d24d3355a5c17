/* SPDX-License-Identifier: MIT */
#include "writers/text/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"
#include "writers/shared/tree.h"

#define COMMAND_SHOWN 60 /* bytes */
#define PPM_PER_PERCENT 10000.0
#define MB (1u << 20)

/* One process. */
struct sum {
	const struct profile_usage *first, *last;
	uint64_t rows, load_ppm; /* load: sum of all rows */
	uint64_t most_ppm, most_resident;
};

struct table {
	struct map ids; /* pid and start -> index */
	struct vec(struct sum) sums;
};

static uint64_t grown(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static int add_usage(struct table *table, const struct profile_usage *usage)
{
	uint64_t key = hash_u64(usage->started_ms) ^ usage->pid, index;
	struct sum *sum;

	if (!map_get(&table->ids, key, &index)) {
		index = table->sums.len;
		if (vec_push(&table->sums, (struct sum){.first = usage}) < 0 || map_put(&table->ids, key, index) < 0)
			return -ENOMEM;
	}
	sum = &table->sums.items[index];
	sum->last = usage;
	sum->rows++;
	sum->load_ppm += usage->load_ppm;
	if (usage->load_ppm > sum->most_ppm)
		sum->most_ppm = usage->load_ppm;
	if (usage->resident_bytes > sum->most_resident)
		sum->most_resident = usage->resident_bytes;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return vec_order(y->load_ppm, x->load_ppm) ?: vec_order(y->most_resident, x->most_resident) ?:
	       vec_order(x->last->pid, y->last->pid);
}

static void print_row(const struct profile *profile, const struct sum *sum, FILE *out)
{
	const struct profile_usage *last = sum->last, *first = sum->first;
	const char *command = profile_text(profile, last->command ? last->command : last->name);
	BUF(line);

	text_add_line(&line, command);
	fprintf(out, "  %8" PRIu32 "  %5" PRIu64 "  %6.1f%%  %6.1f%%  %7" PRIu32, last->pid, sum->rows,
		(double)sum->load_ppm / (double)sum->rows / PPM_PER_PERCENT, (double)sum->most_ppm / PPM_PER_PERCENT,
		last->threads);
	fprintf(out, "  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %.*s\n", sum->most_resident / MB,
		grown(first->read_bytes, last->read_bytes) / MB, grown(first->written_bytes, last->written_bytes) / MB,
		COMMAND_SHOWN, line.data);
}

int usage_table_print(const struct profile *profile, size_t count, FILE *out)
{
	struct table table = {0};
	int err = 0;

	for (size_t i = 0; !err && i < profile->usages.len; i++)
		err = add_usage(&table, &profile->usages.items[i]);
	if (!err && table.sums.len) {
		qsort(table.sums.items, table.sums.len, sizeof(*table.sums.items), compare);
		fprintf(out, "\n--- Processes of the machine, every %g s ---\n",
			(double)profile->host.usages_ns / NS_PER_SEC);
		fprintf(out, "  %8s  %5s  %7s  %7s  %7s  %8s  %8s  %8s  %s\n", "pid", "looks", "CPU", "most", "threads",
			"MB", "MB read", "written", "command");
		for (size_t i = 0; i < table.sums.len && i < count; i++)
			print_row(profile, &table.sums.items[i], out);
	}
	map_release(&table.ids);
	vec_release(&table.sums);
	return err;
}

/* A thread that waited, and the waker that ended its waits. Both are nodes of the tree, as are the labels' texts. */
struct wait_pair {
	uint32_t sleeper; /* its node, below that of its process */
	uint32_t who; /* label */
	struct tree_weight weight;
};

struct wait_table {
	struct tree tree;
	struct map ids; /* sleeper << 32 | who -> index in list */
	struct vec(struct wait_pair) list;
	bool has_processes; /* there are samples of several processes */
};

static bool has_wakers(const struct profile *profile)
{
	for (size_t i = 0; i < profile->frames.len; i++)
		if (profile->frames.items[i].kind == FRAME_WAKER)
			return true;
	return false;
}

/* Returns the node of the thread on the path of this leaf, or 0 if the stack does not show who ended the wait. */
static uint32_t find_sleeper(const struct tree *tree, uint32_t leaf)
{
	bool is_below_waker = false;

	for (uint32_t node = leaf; node; node = tree->nodes.items[node].parent) {
		uint32_t parent = tree->nodes.items[node].parent;

		is_below_waker |= tree_label(tree, node)->kind == FRAME_WAKER;
		if (parent && !tree->nodes.items[parent].parent)
			return is_below_waker ? node : 0;
	}
	return 0;
}

static int add_wait(struct wait_table *waits, uint32_t leaf)
{
	const struct tree_node *node = &waits->tree.nodes.items[leaf];
	uint32_t sleeper = node->self.samples ? find_sleeper(&waits->tree, leaf) : 0;
	uint64_t key = (uint64_t)sleeper << 32 | node->label, index = waits->list.len;

	if (!sleeper)
		return 0;
	if (!map_get(&waits->ids, key, &index)) {
		if (vec_push(&waits->list, ((struct wait_pair){.sleeper = sleeper, .who = node->label})) < 0 ||
		    map_put(&waits->ids, key, index) < 0)
			return -ENOMEM;
	}
	tree_weight_add(&waits->list.items[index].weight, &node->self);
	return 0;
}

static int longest_first(const void *a, const void *b)
{
	const struct wait_pair *one = a, *other = b;

	return vec_order(other->weight.amount, one->weight.amount) ?: vec_order(one->sleeper, other->sleeper);
}

static void print_wait(const struct wait_table *waits, const struct wait_pair *wait, FILE *out)
{
	const struct tree *tree = &waits->tree;
	uint64_t all = tree->nodes.items[0].total.amount;

	fprintf(out, "  %12" PRIu64 "  %6.2f%%  %7" PRIu64 "  %s", wait->weight.amount,
		text_percent(wait->weight.amount, all), wait->weight.samples, tree_label(tree, wait->sleeper)->text);
	if (waits->has_processes)
		fprintf(out, " (%s)", tree_label(tree, tree->nodes.items[wait->sleeper].parent)->text);
	fprintf(out, "  <-  %s\n", tree->labels.items[wait->who].text);
}

static int collect_waits(struct wait_table *waits, const struct profile *profile, const struct writer_options *options)
{
	struct writer_options ours = *options;
	int err;

	ours.by[0] = WRITER_BY_PROCESS;
	ours.by[1] = WRITER_BY_THREAD;
	ours.by[2] = WRITER_BY_NONE;
	ours.threads = ours.processes = ours.reverse = false;
	ours.max_depth = 0;
	err = tree_build(&waits->tree, profile, &ours);
	for (uint32_t i = 1; !err && i < waits->tree.nodes.len; i++)
		err = add_wait(waits, i);
	return err;
}

int waits_print(const struct profile *profile, const struct writer_options *options, size_t count, FILE *out)
{
	struct wait_table waits = {.has_processes = writer_shows_processes(profile, options)};
	int err;

	if (!has_wakers(profile))
		return 0;
	err = collect_waits(&waits, profile, options);
	if (!err && waits.list.len) {
		qsort(waits.list.items, waits.list.len, sizeof(*waits.list.items), longest_first);
		fprintf(out, "\n  %12s  %7s  %7s  %s\n", writer_unit(profile, options), "percent", "samples",
			"who waited  <-  who ended the wait, or held the lock");
		fprintf(out, "  ------------  -------  -------  ----------------------------------\n");
		for (size_t i = 0; i < waits.list.len && i < count; i++)
			print_wait(&waits, &waits.list.items[i], out);
	}
	tree_release(&waits.tree);
	map_release(&waits.ids);
	vec_release(&waits.list);
	return err;
}
