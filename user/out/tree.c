/* SPDX-License-Identifier: MIT */
#include "out/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "out/filter.h"
#include "base/text.h"

#define STACKS_MAX 65536 /* different stacks that are merged before they are added to the tree */

/* Samples of one thread with one stack. They are merged by index, before any text is compared. */
struct stack {
	uint32_t thread;
	uint32_t node;
	struct tree_weight weight;
};

/* One frame of a path to be added to the tree. */
struct step {
	uint32_t label;
	const struct frame *frame; /* NULL for a frame that the writer adds */
};

struct builder {
	struct tree *tree;
	const struct profile *profile;
	const struct writer_options *options;
	uint32_t *frame_labels; /* by index of the frame */
	struct vec(struct stack) stacks;
	struct map stack_ids; /* thread << 32 | node -> index in stacks */
	struct vec(struct step) path;
	uint32_t others; /* node of the stacks for which there was no memory; 0 = none */
	uint32_t others_label;
	struct buf text;
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

const struct tree_label *tree_label(const struct tree *tree, uint32_t node)
{
	return &tree->labels.items[tree->nodes.items[node].label];
}

/* Returns the label of the text in `b->text`, whose name ends at `name_len`; 0 when out of memory. */
static uint32_t label_of_text(struct builder *b, size_t name_len, enum frame_kind kind, const char *module)
{
	struct tree *tree = b->tree;
	uint32_t id = b->text.failed ? 0 : intern_bytes(&tree->texts, b->text.data, b->text.len);
	struct tree_label label = {.name_len = (uint32_t)name_len, .kind = kind, .module = module};

	if (id < tree->labels.len)
		return id;
	label.text = intern_text(&tree->texts, id);
	b->text.len = name_len;
	b->text.data[name_len] = '\0';
	label.included = filter_match(&b->options->include, b->text.data);
	label.excluded = filter_match(&b->options->exclude, b->text.data);
	return vec_push(&tree->labels, label) < 0 ? 0 : id;
}

static uint32_t label_of_frame(struct builder *b, const struct frame *frame)
{
	const struct frame_style *style = &b->options->style;
	size_t name_len;

	buf_clear(&b->text);
	frame_name(&b->profile->strings, frame, style, &b->text);
	name_len = b->text.len;
	buf_add_str(&b->text, frame_suffix(frame->kind, style));
	return label_of_text(b, name_len, frame->kind, intern_text(&b->profile->strings, frame->module));
}

static uint32_t label_of_mark(struct builder *b, const char *text)
{
	buf_clear(&b->text);
	buf_add_str(&b->text, text);
	return label_of_text(b, b->text.len, FRAME_MARK, "");
}

/* "[name tid=1]" */
static uint32_t label_of_id(struct builder *b, uint32_t name, const char *what, uint32_t id, enum frame_kind kind)
{
	buf_clear(&b->text);
	buf_add_char(&b->text, '[');
	text_add_token(&b->text, intern_text(&b->profile->strings, name));
	buf_printf(&b->text, " %s=%u]", what, id);
	if (b->options->style.steady)
		frame_cut_id(&b->text, 0);
	return label_of_text(b, b->text.len, kind, "");
}

/* As label_of_id(), but a virtual thread has Java's id instead of a tid. */
static uint32_t label_of_thread(struct builder *b, uint32_t index)
{
	const struct profile_thread *thread = &b->profile->threads.items[index];
	const char *name = intern_text(&b->profile->strings, thread->name);
	uint64_t id = profile_virtual_id(b->profile, index);

	if (thread->tid != PROFILE_VIRTUAL)
		return label_of_id(b, thread->name, "tid", thread->tid, FRAME_THREAD);
	buf_clear(&b->text);
	if (!strcmp(name, PROFILE_NO_NAME)) {
		buf_add_str(&b->text, name);
	} else {
		buf_add_char(&b->text, '[');
		text_add_token(&b->text, name);
		buf_add_str(&b->text, " virtual");
		if (id && !b->options->style.steady)
			buf_printf(&b->text, "=%llu", (unsigned long long)id);
		buf_add_char(&b->text, ']');
	}
	return label_of_text(b, b->text.len, FRAME_THREAD, "");
}

static int label_frames(struct builder *b)
{
	const struct profile *profile = b->profile;

	b->frame_labels = calloc(profile->frames.len + 1, sizeof(*b->frame_labels));
	if (!b->frame_labels)
		return -ENOMEM;
	for (size_t i = 0; i < profile->frames.len; i++) {
		b->frame_labels[i] = label_of_frame(b, &profile->frames.items[i]);
		if (!b->frame_labels[i])
			return -ENOMEM;
	}
	return 0;
}

/* Returns 0 or -ENOMEM. A label of 0 means that there was no memory for it. */
static int path_push(struct builder *b, uint32_t label, const struct frame *frame)
{
	return label ? vec_push(&b->path, (struct step){.label = label, .frame = frame}) : -ENOMEM;
}

/* Pushes the frames of the stack, leaf first, with a mark for the frames that are not shown. */
static int path_push_frames(struct builder *b, uint32_t leaf)
{
	const struct profile *profile = b->profile;
	uint32_t node = leaf, depth = 0;
	int err = 0;

	if (!leaf)
		return path_push(b, label_of_mark(b, "[unknown]"), NULL);
	for (; node && !err; node = profile->nodes.items[node].parent, depth++) {
		uint32_t frame = profile->nodes.items[node].frame;

		if (b->options->max_depth && depth == b->options->max_depth)
			return path_push(b, label_of_mark(b, "[truncated]"), NULL);
		err = path_push(b, b->frame_labels[frame], &profile->frames.items[frame]);
	}
	return err;
}

/* Returns the label of a frame of --by, which is a name without an id. */
static uint32_t label_of_group(struct builder *b, const struct profile_thread *thread, enum writer_group group)
{
	static const enum frame_kind kinds[] = {
		[WRITER_BY_CONTAINER] = FRAME_CONTAINER,
		[WRITER_BY_PROCESS] = FRAME_PROCESS,
		[WRITER_BY_THREAD] = FRAME_THREAD,
	};
	uint32_t names[] = {
		[WRITER_BY_CONTAINER] = b->profile->owners.items[thread->owner].container,
		[WRITER_BY_PROCESS] = thread->process,
		[WRITER_BY_THREAD] = thread->name,
	};
	const char *name = intern_text(&b->profile->strings, names[group]);

	buf_clear(&b->text);
	text_add_token(&b->text, *name ? name : "[unknown]");
	return label_of_text(b, b->text.len, kinds[group], "");
}

static uint32_t label_of_lead(struct builder *b, const struct profile_thread *thread)
{
	buf_clear(&b->text);
	b->options->lead(b->options->lead_context, thread, &b->text);
	return label_of_text(b, b->text.len, FRAME_PROCESS, "");
}

/* Pushes the leading frames, innermost first. */
static int path_push_roots(struct builder *b, uint32_t index)
{
	const struct profile_thread *thread = &b->profile->threads.items[index];
	const enum writer_group *by = b->options->by;
	int err = 0;

	if (b->options->threads)
		err = path_push(b, label_of_thread(b, index), NULL);
	if (!err && b->options->processes)
		err = path_push(b, label_of_id(b, thread->process, "pid", thread->pid, FRAME_PROCESS), NULL);
	for (size_t i = WRITER_GROUPS; !err && i-- > 0;)
		if (by[i] != WRITER_BY_NONE)
			err = path_push(b, label_of_group(b, thread, by[i]), NULL);
	if (!err && b->options->lead)
		err = path_push(b, label_of_lead(b, thread), NULL);
	return err;
}

static void path_reverse(struct step *steps, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		struct step swap = steps[i];

		steps[i] = steps[len - 1 - i];
		steps[len - 1 - i] = swap;
	}
}

/* Sets b->path to the stack as in the tree, but leaf first. --reverse leaves process and thread at the root. */
static int path_of_stack(struct builder *b, const struct stack *stack)
{
	int err;

	vec_clear(&b->path);
	err = path_push_frames(b, stack->node);
	if (err < 0)
		return err;
	if (b->options->reverse)
		path_reverse(b->path.items, b->path.len);
	return path_push_roots(b, stack->thread);
}

static bool path_is_wanted(const struct builder *b)
{
	bool included = b->options->include.len == 0;

	for (size_t i = 0; i < b->path.len; i++) {
		const struct tree_label *label = &b->tree->labels.items[b->path.items[i].label];

		if (label->excluded)
			return false;
		included |= label->included;
	}
	return included;
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

uint32_t tree_child(struct tree *tree, uint32_t parent, uint32_t label)
{
	uint64_t key = (uint64_t)parent << 32 | label;
	uint64_t index = tree->nodes.len;

	if (map_get(&tree->children, key, &index))
		return (uint32_t)index;
	/* Keep room for one more node: insert_other() must not fail. */
	if (index >= UINT32_MAX || vec_reserve(&tree->nodes, index + 2) < 0 ||
	    vec_push(&tree->nodes, (struct tree_node){.parent = parent, .label = label}) < 0 ||
	    map_put(&tree->children, key, index) < 0) {
		tree->nodes.len = index;
		return 0;
	}
	tree->labels.items[label].used = true;
	return (uint32_t)index;
}

/* Returns the node of the path's leaf. Adds the nodes of the path that are new. 0 when out of memory. */
static uint32_t add_path(struct builder *b)
{
	uint32_t node = 0;

	for (size_t i = b->path.len; i-- > 0;) {
		node = tree_child(b->tree, node, b->path.items[i].label);
		if (!node)
			return 0;
	}
	return node;
}

/* A stack for which there is no memory still counts: its weight is shown under [too_many_stacks]. */
static void insert_other(struct builder *b, const struct tree_weight *weight)
{
	struct tree *tree = b->tree;

	if (!b->others) {
		b->others = (uint32_t)tree->nodes.len;
		tree->nodes.items[tree->nodes.len++] = (struct tree_node){.label = b->others_label};
		tree->labels.items[b->others_label].used = true;
	}
	node_add(&tree->nodes.items[b->others], NULL, weight);
	tree_weight_add(&tree->nodes.items[b->others].self, weight);
}

static void insert_path(struct builder *b, const struct tree_weight *weight)
{
	struct tree *tree = b->tree;
	uint32_t node = add_path(b);

	node_add(&tree->nodes.items[0], NULL, weight);
	if (b->path.len && !node)
		return insert_other(b, weight);
	tree_weight_add(&tree->nodes.items[node].self, weight);
	for (size_t i = 0; i < b->path.len; i++, node = tree->nodes.items[node].parent)
		node_add(&tree->nodes.items[node], b->path.items[i].frame, weight);
}

static int insert_stacks(struct builder *b)
{
	int err = 0;

	for (size_t i = 0; i < b->stacks.len && !err; i++) {
		err = path_of_stack(b, &b->stacks.items[i]);
		if (!err && path_is_wanted(b))
			insert_path(b, &b->stacks.items[i].weight);
	}
	vec_clear(&b->stacks);
	map_release(&b->stack_ids);
	return err;
}

static int collect_stack(void *context, const struct profile_sample *sample)
{
	struct builder *b = context;
	bool by_thread = b->options->threads || b->options->processes || b->options->lead ||
			 b->options->by[0] != WRITER_BY_NONE;
	struct stack stack = {.thread = by_thread ? sample->thread : 0, .node = sample->node};
	uint64_t key = (uint64_t)stack.thread << 32 | stack.node;
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

static int tree_init(struct tree *tree)
{
	int err;

	memset(tree, 0, sizeof(*tree));
	err = intern_init(&tree->texts);
	if (err < 0)
		return err;
	if (vec_push(&tree->labels, (struct tree_label){.text = "", .module = ""}) < 0 ||
	    vec_push(&tree->nodes, (struct tree_node){0}) < 0) {
		tree_release(tree);
		return -ENOMEM;
	}
	return 0;
}

int tree_build(struct tree *tree, const struct profile *profile, const struct writer_options *options)
{
	struct builder b = {.tree = tree, .profile = profile, .options = options};
	int err = tree_init(tree);

	if (err < 0)
		return err;
	buf_init(&b.text);
	b.others_label = label_of_mark(&b, "[too_many_stacks]");
	err = b.others_label ? label_frames(&b) : -ENOMEM;
	if (!err)
		err = timeline_each(&profile->samples, collect_stack, &b);
	if (!err)
		err = insert_stacks(&b);
	if (err < 0)
		tree_release(tree);
	free(b.frame_labels);
	vec_release(&b.stacks);
	map_release(&b.stack_ids);
	vec_release(&b.path);
	buf_release(&b.text);
	return err;
}

void tree_release(struct tree *tree)
{
	if (!tree)
		return;
	intern_release(&tree->texts);
	vec_release(&tree->labels);
	vec_release(&tree->nodes);
	map_release(&tree->children);
}

static int compare_labels(const void *a, const void *b, void *arg)
{
	const struct tree_label *labels = arg;

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

static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct tree *tree = arg;
	uint32_t x = tree_label(tree, *(const uint32_t *)a)->rank;
	uint32_t y = tree_label(tree, *(const uint32_t *)b)->rank;

	return (x > y) - (x < y);
}

static int link_children(struct tree *tree)
{
	uint32_t count = (uint32_t)tree->nodes.len - 1;
	uint32_t *order = calloc(tree->nodes.len, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		order[i] = i + 1;
	qsort_r(order, count, sizeof(*order), compare_nodes, tree);
	/* From the last to the first: each is put before its siblings. */
	for (uint32_t i = count; i-- > 0;) {
		struct tree_node *node = &tree->nodes.items[order[i]];
		struct tree_node *parent = &tree->nodes.items[node->parent];

		node->next_sibling = parent->first_child;
		parent->first_child = order[i];
	}
	free(order);
	return 0;
}

int tree_sort(struct tree *tree)
{
	int err = rank_labels(tree);

	return err ? err : link_children(tree);
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
