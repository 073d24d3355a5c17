/* SPDX-License-Identifier: MIT */
#include "readers/html/page_tree.h"

#include <errno.h>
#include <string.h>

#include "readers/frame_text.h"

#define DEPTH_MAX 65536

int page_tree_init(struct page_tree *tree, uint64_t samples, uint64_t amount)
{
	return vec_push(&tree->open, (struct page_level){.samples = samples, .amount = amount});
}

void page_tree_release(struct page_tree *tree)
{
	vec_release(&tree->open);
	vec_release(&tree->stack);
}

static bool is_leading(enum frame_kind kind)
{
	return kind == FRAME_THREAD || kind == FRAME_PROCESS || kind == FRAME_CONTAINER;
}

/* Returns the node of the open frames from the first leaf to the root, below the leading frames. */
static uint32_t reversed_node(struct page_tree *tree)
{
	const struct profile *profile = tree->profile;
	size_t lead = 1;

	vec_clear(&tree->stack);
	while (lead < tree->open.len && is_leading(profile->frames.items[tree->open.items[lead].frame].kind))
		lead++;
	for (size_t i = 1; i < lead; i++)
		if (vec_push(&tree->stack, tree->open.items[i].frame) < 0)
			return UINT32_MAX;
	for (size_t i = tree->open.len; i-- > lead;)
		if (vec_push(&tree->stack, tree->open.items[i].frame) < 0)
			return UINT32_MAX;
	return profile_stack(tree->profile, tree->stack.items, (uint32_t)tree->stack.len);
}

uint32_t page_tree_node(struct page_tree *tree)
{
	return tree->is_reversed ? reversed_node(tree) : tree->open.items[tree->open.len - 1].node;
}

static int close_level(struct page_tree *tree, struct buf *why)
{
	const struct page_level level = tree->open.items[tree->open.len - 1];
	struct profile_sample sample = {
		.time_ns = tree->time_ns, .weight = level.amount, .thread = tree->thread, .event = tree->event};
	int err = 0;

	tree->samples += level.samples;
	if (tree->samples > PROFILE_COUNT_MAX)
		err = buf_explain(why, -EINVAL, "more samples than duet counts");
	else if (level.samples && !tree->is_dry) {
		sample.node = page_tree_node(tree);
		err = reader_add(tree->profile, sample, level.samples);
	}
	tree->open.len--;
	return err;
}

static int close_levels(struct page_tree *tree, size_t depth, struct buf *why)
{
	int err = 0;

	while (!err && tree->open.len > depth)
		err = close_level(tree, why);
	return err;
}

int page_tree_add(struct page_tree *tree, uint32_t depth, uint32_t frame, uint64_t samples, uint64_t amount,
		  struct buf *why)
{
	struct page_level level = {.frame = frame, .samples = samples, .amount = amount};
	struct page_level *parent;
	int err;

	if (!depth || depth > tree->open.len || depth > DEPTH_MAX)
		return buf_explain(why, -EINVAL, depth > DEPTH_MAX ? "a stack is too deep" : "a frame has no caller");
	if (tree->is_reversed && depth > tree->steps_left)
		return buf_explain(why, -EINVAL,
				   "the stacks from their leaves are too many and too deep to be turned round");
	tree->steps_left -= tree->is_reversed ? depth : 0;
	err = close_levels(tree, depth, why);
	if (err < 0)
		return err;
	parent = &tree->open.items[depth - 1];
	if (samples > parent->samples)
		return buf_explain(why, -EINVAL, "a frame is wider than its caller");
	parent->samples -= samples;
	parent->amount -= amount < parent->amount ? amount : parent->amount;
	if (!tree->is_reversed)
		level.node = profile_child(tree->profile, parent->node, frame);
	if (level.node == UINT32_MAX || frame == UINT32_MAX)
		return -ENOMEM;
	return vec_push(&tree->open, level);
}

int page_tree_end(struct page_tree *tree, struct buf *why)
{
	return close_levels(tree, 0, why);
}

/* "libc.so.6`read" of this module */
static const char *without_module(const char *name, const char *module)
{
	size_t len = strlen(module);

	return len && !strncmp(name, module, len) && name[len] == '`' ? name + len + 1 : name;
}

/* Both texts are copied first: they may be of the table that grows. */
struct frame page_frame(struct profile *profile, enum frame_kind kind, const char *name, const char *module)
{
	struct frame frame = {.kind = kind, .bci = -1};
	BUF(text);
	BUF(file);

	buf_add_str(&file, module);
	buf_printf(&text, "%s%s", without_module(name, module), frame_kind_is_java(kind) ? "_[j]" : "");
	if (frame_kind_is_java(kind)) {
		frame = frame_from_text(profile, text.data, text.len);
		frame.kind = kind;
	} else {
		frame.name = intern_bytes(&profile->strings, text.data, text.len);
	}
	frame.module = intern_str(&profile->strings, file.data);
	return frame;
}
