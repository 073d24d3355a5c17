/* SPDX-License-Identifier: MIT */
#include "writers/shared/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACKS_MAX 524288 /* different stacks that are merged before they are added to the tree */

/* Samples of one thread with one stack. They are merged by index, before any text is compared. */
struct stack {
	uint32_t thread;
	uint32_t node;
	struct tree_weight weight;
};

struct builder {
	struct tree *tree;
	const struct profile *profile;
	const struct writer_options *options;
	struct path_maker path;
	struct vec(struct stack) stacks;
	struct map stack_ids; /* thread << 32 | node -> index in stacks */
	/* by node of the profile: the node of the tree, 0 = not known yet. NULL where options change the stacks */
	uint32_t *nodes;
	uint64_t carried; /* samples that --grain has taken from stacks and not yet given to one */
	uint32_t others; /* node of the stacks for which there was no memory; 0 = none */
	uint32_t others_label;
};

void tree_weight_add(struct tree_weight *sum, const struct tree_weight *weight)
{
	sum->samples += weight->samples;
	sum->amount += weight->amount;
}

uint64_t tree_value(const struct tree_weight *weight, const struct writer_options *options)
{
	return options->total ? weight->amount : weight->samples;
}

const struct path_label *tree_label(const struct tree *tree, uint32_t node)
{
	return &tree->labels.items[tree->nodes.items[node].label];
}

static void node_add(struct tree_node *node, const struct frame *frame, const struct tree_weight *weight)
{
	tree_weight_add(&node->total, weight);
	if (!frame)
		return;
	if (frame->kind == FRAME_INLINED)
		node->inlined += weight->samples;
	if (frame->kind == FRAME_INTERPRETED)
		node->interpreted += weight->samples;
	if (frame->line > 0 && (!node->line_low || frame->line < node->line_low))
		node->line_low = frame->line;
	if (frame->line > node->line_high)
		node->line_high = frame->line;
}

/* Most nodes have one child, for which the map has no entry. */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint32_t label)
{
	uint32_t first = tree->nodes.items[parent].first_child;
	uint64_t key = (uint64_t)parent << 32 | label, index = first;

	if (first && (tree->nodes.items[first].label == label || map_get(&tree->children, key, &index)))
		return (uint32_t)index;
	index = tree->nodes.len;
	/* Keep room for one more node: insert_other() must not fail. */
	if (index >= UINT32_MAX || vec_reserve(&tree->nodes, index + 2) < 0 ||
	    vec_push(&tree->nodes, (struct tree_node){.parent = parent, .label = label}) < 0 ||
	    (first && map_put(&tree->children, key, index) < 0)) {
		tree->nodes.len = index;
		return 0;
	}
	if (!first)
		tree->nodes.items[parent].first_child = (uint32_t)index;
	tree->labels.items[label].used = true;
	return (uint32_t)index;
}

/* Returns true if each step of the path is a node of the profile: none is a mark. */
static bool is_whole(const struct builder *b)
{
	return b->nodes && b->path.steps.len && b->path.steps.items[b->path.steps.len - 1].frame;
}

/* Notes the nodes of the first steps of the path, from `node` of the tree on. */
static void note_nodes(struct builder *b, uint32_t leaf, uint32_t node, size_t steps)
{
	for (size_t i = 0; i < steps; i++) {
		b->nodes[leaf] = node;
		leaf = b->profile->nodes.items[leaf].parent;
		node = b->tree->nodes.items[node].parent;
	}
}

/*
 * Returns the node of the path, which ends at this leaf of the profile. Adds the nodes of the path that are new. 0 when
 * out of memory.
 */
static uint32_t add_path(struct builder *b, uint32_t leaf)
{
	uint32_t node = 0, at = leaf;
	size_t steps = b->path.steps.len;

	if (is_whole(b)) {
		for (steps = 0; at && !b->nodes[at]; steps++)
			at = b->profile->nodes.items[at].parent;
		node = at ? b->nodes[at] : 0;
	}
	for (size_t i = steps; i-- > 0;) {
		node = tree_child(b->tree, node, b->path.steps.items[i].label);
		if (!node)
			return 0;
	}
	if (is_whole(b))
		note_nodes(b, leaf, node, steps);
	return node;
}

/* A stack for which there is no memory still counts: [too_many_stacks] gets its weight. Returns that node. */
static uint32_t insert_other(struct builder *b, const struct tree_weight *weight)
{
	struct tree *tree = b->tree;

	if (!b->others) {
		b->others = (uint32_t)tree->nodes.len;
		tree->nodes.items[tree->nodes.len++] = (struct tree_node){.label = b->others_label};
		tree->labels.items[b->others_label].used = true;
	}
	node_add(&tree->nodes.items[b->others], NULL, weight);
	tree_weight_add(&tree->nodes.items[b->others].self, weight);
	return b->others;
}

/* Returns the node of the path's leaf, of the stack that ends at this node of the profile. */
static uint32_t insert_path(struct builder *b, uint32_t stack, const struct tree_weight *weight)
{
	struct tree *tree = b->tree;
	uint32_t leaf = add_path(b, stack), node = leaf;

	node_add(&tree->nodes.items[0], NULL, weight);
	if (b->path.steps.len && !leaf)
		return insert_other(b, weight);
	tree_weight_add(&tree->nodes.items[leaf].self, weight);
	for (size_t i = 0; i < b->path.steps.len; i++, node = tree->nodes.items[node].parent)
		node_add(&tree->nodes.items[node], b->path.steps.items[i].frame, weight);
	return leaf;
}

static uint64_t stack_key(const struct tree *tree, uint32_t thread, uint32_t node)
{
	return (uint64_t)(tree->by_thread ? thread : 0) << 32 | node;
}

/*
 * --grain: makes the number of samples a multiple. What is left is added to the stacks that follow, so that sums stay.
 * Returns false for a stack that has none left.
 */
static bool coarsen(struct builder *b, struct tree_weight *weight)
{
	uint64_t grain = b->options->grain, had = weight->samples;

	if (!grain || !had)
		return true;
	b->carried += had;
	weight->samples = b->carried - b->carried % grain;
	b->carried %= grain;
	weight->amount = (uint64_t)((unsigned __int128)weight->amount * weight->samples / had);
	return weight->samples;
}

static bool is_deep(const struct profile *profile, uint32_t node, uint32_t depth)
{
	while (node && depth--)
		node = profile->nodes.items[node].parent;
	return node;
}

/* Those that have more than `above` frames, and at most `most`. */
static int insert_some(struct builder *b, uint32_t above, uint32_t most)
{
	bool keeps = (b->options->leaves || b->profile->samples.len <= TREE_LEAVES_MAX) && !b->options->grain;
	int err = 0;

	for (size_t i = 0; i < b->stacks.len && err >= 0; i++) {
		struct stack *stack = &b->stacks.items[i];
		uint32_t leaf;

		if ((above && !is_deep(b->profile, stack->node, above)) || is_deep(b->profile, stack->node, most))
			continue;
		err = path_make(&b->path, stack->thread, stack->node);
		if (err <= 0 || !coarsen(b, &stack->weight))
			continue;
		leaf = insert_path(b, stack->node, &stack->weight);
		if (keeps)
			err = map_put(&b->tree->leaves, stack_key(b->tree, stack->thread, stack->node), leaf);
	}
	return err;
}

/* Deep stacks come last: where memory is short, thousands of processes that have them leave room for others. */
static int insert_stacks(struct builder *b)
{
	static const uint32_t depths[] = {0, 100, 500, UINT32_MAX};
	int err = 0;

	for (size_t i = 1; i < sizeof(depths) / sizeof(*depths) && err >= 0; i++)
		err = insert_some(b, depths[i - 1], depths[i]);
	vec_clear(&b->stacks);
	map_release(&b->stack_ids);
	return err < 0 ? err : 0;
}

static int collect_stack(void *context, const struct profile_sample *sample)
{
	struct builder *b = context;
	struct stack stack = {.thread = b->tree->by_thread ? sample->thread : 0, .node = sample->node};
	uint64_t key = stack_key(b->tree, stack.thread, stack.node);
	uint64_t index = b->stacks.len;
	int err = 0;

	if (sample->event != b->options->event)
		return 0;
	if (!map_get(&b->stack_ids, key, &index)) {
		if (index >= STACKS_MAX)
			err = insert_stacks(b);
		index = b->stacks.len;
		if (err < 0 || vec_push(&b->stacks, stack) < 0 || map_put(&b->stack_ids, key, index) < 0)
			return -ENOMEM;
	}
	tree_weight_add(&b->stacks.items[index].weight, &(struct tree_weight){sample->count, sample->weight});
	return 0;
}

/* Returns true if the nodes of the tree are not those of the profile. */
static bool changes_stacks(const struct tree *tree, const struct writer_options *options)
{
	return tree->by_thread || options->reverse || options->skip || options->classify || options->max_depth;
}

int tree_build(struct tree *tree, const struct profile *profile, const struct writer_options *options)
{
	struct builder b = {.tree = tree, .profile = profile, .options = options};
	int err;

	memset(tree, 0, sizeof(*tree));
	tree->most_text = profile->most_text;
	tree->by_thread = options->threads || options->processes || options->lead || options->by[0] != WRITER_BY_NONE;
	err = path_labels_init(&tree->labels);
	if (!err)
		err = vec_push(&tree->nodes, (struct tree_node){0});
	if (!err)
		err = path_maker_init(&b.path, &tree->labels, profile, options);
	if (err < 0) {
		tree_release(tree);
		return err;
	}
	/* without memory for them, nodes are looked for by their parent and label */
	b.nodes = changes_stacks(tree, options) ? NULL : calloc(profile->nodes.len, sizeof(*b.nodes));
	b.others_label = path_mark(&b.path, "[too_many_stacks]");
	err = b.others_label ? 0 : -ENOMEM;
	if (!err)
		err = timeline_each(&profile->samples, collect_stack, &b);
	if (!err)
		err = insert_stacks(&b);
	if (err < 0)
		tree_release(tree);
	path_maker_release(&b.path);
	vec_release(&b.stacks);
	map_release(&b.stack_ids);
	free(b.nodes);
	return err;
}

void tree_release(struct tree *tree)
{
	if (!tree)
		return;
	path_labels_release(&tree->labels);
	vec_release(&tree->nodes);
	map_release(&tree->children);
	map_release(&tree->leaves);
}

int64_t tree_leaf(const struct tree *tree, const struct profile_sample *sample)
{
	uint64_t node;

	if (!map_get(&tree->leaves, stack_key(tree, sample->thread, sample->node), &node))
		return -ENOENT;
	return (int64_t)node;
}

static int compare_labels(const void *a, const void *b, void *arg)
{
	const struct path_label *labels = arg;

	return strcmp(labels[*(const uint32_t *)a].text, labels[*(const uint32_t *)b].text);
}

static int rank_labels(struct tree *tree)
{
	uint32_t *order = calloc(tree->labels.len, sizeof(*order));
	uint32_t used = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->labels.len; i++)
		if (tree->labels.items[i].used)
			order[used++] = i;
	qsort_r(order, used, sizeof(*order), compare_labels, tree->labels.items);
	for (uint32_t rank = 0; rank < used; rank++)
		tree->labels.items[order[rank]].rank = rank;
	free(order);
	return 0;
}

/* How nodes are sorted by value. */
struct order {
	const struct tree *tree;
	const struct writer_options *options;
};

static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct order *by = arg;
	const struct tree *tree = by->tree;
	uint32_t x = tree_label(tree, *(const uint32_t *)a)->rank;
	uint32_t y = tree_label(tree, *(const uint32_t *)b)->rank;
	uint64_t p = tree_value(&tree->nodes.items[*(const uint32_t *)a].total, by->options);
	uint64_t q = tree_value(&tree->nodes.items[*(const uint32_t *)b].total, by->options);

	return vec_order(q, p) ?: vec_order(x, y);
}

/* Lists the nodes by value; those that are equal by their labels. */
static void order_by_value(const struct tree *tree, const struct writer_options *options, uint32_t *order)
{
	struct order by = {tree, options};
	uint32_t count = (uint32_t)tree->nodes.len - 1;

	for (uint32_t i = 0; i < count; i++)
		order[i] = i + 1;
	qsort_r(order, count, sizeof(*order), compare_nodes, &by);
}

/* Lists the nodes by the ranks of their labels: counts those of each rank first. */
static int order_by_label(const struct tree *tree, uint32_t *order)
{
	uint32_t *places = calloc(tree->labels.len + 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->nodes.len; i++)
		places[tree_label(tree, i)->rank + 1]++;
	for (uint32_t rank = 0; rank < tree->labels.len; rank++)
		places[rank + 1] += places[rank];
	for (uint32_t i = 1; i < tree->nodes.len; i++)
		order[places[tree_label(tree, i)->rank]++] = i;
	free(places);
	return 0;
}

int tree_sort(struct tree *tree, const struct writer_options *by_value)
{
	uint32_t count = (uint32_t)tree->nodes.len - 1;
	uint32_t *order = calloc(tree->nodes.len, sizeof(*order));
	int err = order ? rank_labels(tree) : -ENOMEM;

	if (!err && by_value)
		order_by_value(tree, by_value, order);
	else if (!err)
		err = order_by_label(tree, order);
	for (uint32_t i = 0; !err && i <= count; i++)
		tree->nodes.items[i].first_child = 0;
	/* From the last to the first, because each is inserted before its siblings. */
	for (uint32_t i = count; !err && i-- > 0;) {
		struct tree_node *node = &tree->nodes.items[order[i]];
		struct tree_node *parent = &tree->nodes.items[node->parent];

		node->next_sibling = parent->first_child;
		parent->first_child = order[i];
	}
	free(order);
	return err;
}

uint32_t tree_next(const struct tree *tree, uint32_t node, bool skip)
{
	const struct tree_node *nodes = tree->nodes.items;

	if (!skip && nodes[node].first_child)
		return nodes[node].first_child;
	while (node && !nodes[node].next_sibling)
		node = nodes[node].parent;
	return node ? nodes[node].next_sibling : 0;
}

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

/* Adds A's nodes to the tree. Parents come first. */
static int merge(struct tree_diff *diff, const struct tree *a)
{
	uint32_t *to = calloc(a->nodes.len, sizeof(*to)); /* by A's nodes: those of the merged tree */
	int err = to ? 0 : -ENOMEM;

	for (uint32_t i = 1; !err && i < a->nodes.len; i++) {
		uint32_t label = same_label(&diff->tree, tree_label(a, i));

		to[i] = label ? tree_child(&diff->tree, to[a->nodes.items[i].parent], label) : 0;
		err = to[i] ? 0 : -ENOMEM;
	}
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
		diff->tree.most_text += a.most_text;
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
