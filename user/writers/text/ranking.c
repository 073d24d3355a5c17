/* SPDX-License-Identifier: MIT */
#include "writers/text/ranking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IDLE "[idle]" /* the root of stacks of threads that wait all the time */

/* Whose code a frame is; the highest is what the user wrote. */
enum code { NO_CODE, OF_KERNEL, OF_LIBRARY, OF_JVM, OF_JDK, OF_PROGRAM };

/* What is known of the stack that ends at a node. */
struct place {
	uint32_t first; /* node of the frame nearest the leaf that is code; 0 = none */
	uint32_t own; /* the same of the highest enum code */
	uint32_t leaf; /* label of what was waited for or allocated; 0 = none */
	bool is_idle;
	bool is_of_waker; /* frames of the thread that ended the wait */
};

bool ranking_is_leading(enum frame_kind kind)
{
	return kind == FRAME_THREAD || kind == FRAME_PROCESS || kind == FRAME_CONTAINER || kind == FRAME_CPU ||
	       kind == FRAME_SPAN;
}

static bool begins_with_any(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(text, *beginnings, strlen(*beginnings)))
			return true;
	return false;
}

/* The tools of the JDK, such as javac, are programs. Names have dots or, without --dot, slashes. */
static bool is_of_jdk(const char *name)
{
	static const char *const packages[] = {"java.",	 "javax.",	  "jdk.internal.", "sun.", "java/",
					       "javax/", "jdk/internal/", "sun/",	   NULL};

	return begins_with_any(name, packages);
}

static bool is_library(const char *module)
{
	static const char *const libraries[] = {"lib", "ld-", "[vdso]", NULL};

	return !*module || begins_with_any(module, libraries);
}

static enum code code_of(const struct path_label *label)
{
	switch (label->kind) {
	case FRAME_KERNEL:
	case FRAME_MARK:
		return OF_KERNEL;
	case FRAME_NATIVE:
		return is_library(label->module) ? OF_LIBRARY : OF_PROGRAM;
	case FRAME_JVM:
		return OF_JVM;
	case FRAME_COMPILED:
	case FRAME_INLINED:
	case FRAME_INTERPRETED:
	case FRAME_JAVA_NATIVE:
		return is_of_jdk(label->text) ? OF_JDK : OF_PROGRAM;
	default:
		return NO_CODE;
	}
}

static void find_place(const struct tree *tree, struct place *places, uint32_t node)
{
	const struct path_label *label = tree_label(tree, node);
	const struct place *above = &places[tree->nodes.items[node].parent];
	struct place *place = &places[node];
	enum code code = code_of(label);

	*place = *above;
	place->is_idle |= label->kind == FRAME_STATE && !strcmp(label->text, IDLE);
	place->is_of_waker |= label->kind == FRAME_WAKER;
	if (place->is_of_waker)
		return;
	place->leaf = label->kind == FRAME_STATE || label->kind == FRAME_CLASS ? tree->nodes.items[node].label : 0;
	if (!code)
		return;
	place->first = node;
	if (!above->own || code >= code_of(tree_label(tree, above->own)))
		place->own = node;
}

/* The node for which a stack counts that ends at this place: a class that is not of a lock was allocated. */
static uint32_t shown_node(const struct tree *tree, const struct place *place, bool is_time)
{
	bool waits = place->leaf && (is_time || tree->labels.items[place->leaf].kind == FRAME_STATE);

	return waits || place->is_of_waker ? place->own : place->first;
}

static int most_first(const void *a, const void *b)
{
	const struct ranking_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Moves the rows with a weight to the front, the most first. Returns their number. */
static size_t rank(struct ranking_row *rows, size_t count)
{
	size_t kept = 0;

	for (size_t i = 1; i < count; i++)
		if (rows[i].self)
			rows[kept++] = rows[i];
	qsort(rows, kept, sizeof(*rows), most_first);
	return kept;
}

/* Adds what each stack weighs to its method, to the stack as it is shown, and to its leaf. */
static void add_selves(struct ranking *r, const struct place *places, bool is_time)
{
	for (uint32_t i = 1; i < r->tree->nodes.len; i++) {
		uint64_t amount = r->tree->nodes.items[i].self.amount;
		uint32_t shown = shown_node(r->tree, &places[i], is_time);

		if (places[i].is_idle) {
			r->idle += amount;
			continue;
		}
		r->all += amount;
		r->leaves[places[i].leaf].self += amount;
		r->stacks[shown].self += amount;
		r->methods[shown ? r->tree->nodes.items[shown].label : 0].self += amount;
	}
}

/* Of a method that calls itself, the outermost frame counts. `open`: by label, how many frames of the path have it. */
static void add_totals(struct ranking *r, const struct place *places, uint32_t *open)
{
	const struct tree_node *nodes = r->tree->nodes.items;
	uint32_t at = 0;

	for (uint32_t node = tree_next(r->tree, 0, false); node;) {
		bool skips = places[node].is_idle || places[node].is_of_waker;

		for (; at != nodes[node].parent; at = nodes[at].parent)
			open[nodes[at].label]--;
		if (!open[nodes[node].label]++ && !skips)
			r->methods[nodes[node].label].total += nodes[node].total.amount;
		at = node;
		node = tree_next(r->tree, node, skips);
	}
}

static int open_rows(struct ranking *r)
{
	size_t labels = r->tree->labels.len, nodes = r->tree->nodes.len;

	r->methods = calloc(labels, sizeof(*r->methods));
	r->leaves = calloc(labels, sizeof(*r->leaves));
	r->stacks = calloc(nodes, sizeof(*r->stacks));
	if (!r->methods || !r->leaves || !r->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < labels; i++)
		r->methods[i].id = r->leaves[i].id = i;
	for (uint32_t i = 0; i < nodes; i++)
		r->stacks[i].id = i;
	return 0;
}

int ranking_make(struct ranking *ranking, struct tree *tree, bool is_time)
{
	struct place *places = calloc(tree->nodes.len, sizeof(*places));
	uint32_t *open = calloc(tree->labels.len, sizeof(*open));
	int err;

	*ranking = (struct ranking){.tree = tree};
	err = places && open ? open_rows(ranking) : -ENOMEM;
	if (!err)
		err = tree_sort(tree);
	if (err) {
		ranking_release(ranking);
		goto out;
	}
	for (uint32_t i = 1; i < tree->nodes.len; i++)
		find_place(tree, places, i);
	add_selves(ranking, places, is_time);
	add_totals(ranking, places, open);
	ranking->method_count = rank(ranking->methods, tree->labels.len);
	ranking->leaf_count = rank(ranking->leaves, tree->labels.len);
	ranking->stack_count = rank(ranking->stacks, tree->nodes.len);
out:
	free(places);
	free(open);
	return err;
}

void ranking_release(struct ranking *ranking)
{
	free(ranking->methods);
	free(ranking->leaves);
	free(ranking->stacks);
	*ranking = (struct ranking){0};
}

int64_t ranking_of_kind(const struct tree *tree, enum frame_kind kind, struct ranking_row **ret_rows)
{
	struct ranking_row *rows = calloc(tree->labels.len, sizeof(*rows));
	struct place *places = calloc(tree->nodes.len, sizeof(*places));
	uint32_t *heads = calloc(tree->nodes.len, sizeof(*heads)); /* by node: label of this kind above it */
	int64_t count = -ENOMEM;

	if (!rows || !places || !heads)
		goto out;
	for (uint32_t i = 1; i < tree->nodes.len; i++) {
		uint32_t label = tree->nodes.items[i].label;

		find_place(tree, places, i);
		heads[i] = tree_label(tree, i)->kind == kind ? label : heads[tree->nodes.items[i].parent];
		rows[heads[i]].id = heads[i];
		if (!places[i].is_idle)
			rows[heads[i]].self += tree->nodes.items[i].self.amount;
	}
	count = (int64_t)rank(rows, tree->labels.len);
	*ret_rows = rows;
	rows = NULL;
out:
	free(rows);
	free(places);
	free(heads);
	return count;
}
