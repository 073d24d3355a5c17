/* SPDX-License-Identifier: MIT */
#include "writers/text/annotation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_INSTRUCTION 16 /* bytes */

/* For each frame of the target the rows that its samples count for. */
struct place {
	uint32_t line, code; /* index + 1; 0: not of the target */
};

struct builder {
	struct annotation *annotation;
	const struct writer_options *options;
	struct vec(struct place) places; /* by frame */
	struct map ids; /* hash of a row -> index, of lines and of codes */
	struct summed *nodes; /* by node of the profile */
	uint32_t *open_lines, *open_codes; /* by row: nodes of it around the node that is looked at */
};

struct summed {
	struct tree_weight self, total; /* of the stacks that end there; and of those above it */
	uint32_t code; /* node of the code that runs: the first from the leaf that is code; 0 = none */
	uint32_t first_child, next_sibling;
	bool is_within; /* a frame of the target is in the stack */
};

/* Compares from the end: "Main" and "acme.Main" are com.acme.Main, and so are its inner classes. */
static bool is_class(const char *class_name, const char *target, size_t len)
{
	size_t class_len = strcspn(class_name, "$"), whole = strlen(class_name);

	if (memchr(target, '$', len))
		class_len = whole;
	if (class_len < len || memcmp(class_name + class_len - len, target, len))
		return false;
	return class_len == len || class_name[class_len - len - 1] == '.';
}

static bool is_target(const struct profile *profile, const struct frame *frame, const char *target)
{
	const char *class_name = profile_text(profile, frame->class_name), *name = profile_text(profile, frame->name);
	const char *dot = strrchr(target, '.');

	if (!frame_kind_is_java(frame->kind))
		return frame->kind <= FRAME_JVM && !strcmp(name, target);
	if (is_class(class_name, target, strlen(target)))
		return true;
	return dot && !strcmp(name, dot + 1) && is_class(class_name, target, (size_t)(dot - target));
}

/* No padding to hash or to compare: the weights are 0. */
static uint32_t row_of(struct builder *b, struct annotation_rows *rows, struct annotation_row row, uint64_t seed)
{
	uint64_t key = hash_bytes(&row, offsetof(struct annotation_row, self), seed), known;

	for (; map_get(&b->ids, key, &known); key++)
		if (known < rows->len && !memcmp(&rows->items[known], &row, offsetof(struct annotation_row, self)))
			return (uint32_t)known + 1;
	if (map_put(&b->ids, key, rows->len) < 0 || vec_push(rows, row) < 0)
		return 0;
	return (uint32_t)rows->len;
}

/* Returns the id of "com/acme", of the class com.acme.Main. */
static uint32_t package_of(struct annotation *annotation, uint32_t class_name)
{
	const char *name = profile_text(annotation->profile, class_name), *end = strrchr(name, '.');
	BUF(text);

	buf_add(&text, name, end ? (size_t)(end - name) : 0);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '.')
			text.data[i] = '/';
	return intern_bytes(&annotation->packages, text.data, text.len);
}

static int compare_offset(const void *item, const void *key)
{
	const struct code_line *line = item;
	int64_t offset = *(const int32_t *)key;

	return vec_order(line->offset, offset);
}

/* The instruction that has the offset; NULL if there is none. */
static const struct code_line *instruction_at(const struct code_text *code, int32_t offset)
{
	size_t count = vec_count_by(code->items, code->len, sizeof(*code->items), &offset, compare_offset);

	if (!count || (count == code->len && (uint32_t)offset - code->items[count - 1].offset >= LONGEST_INSTRUCTION))
		return NULL;
	return &code->items[count - 1];
}

/* The offset of the instruction: that of a caller is within the call. */
static int32_t start_of_instruction(const struct annotation *annotation, const struct frame *frame)
{
	const struct intern *strings = &annotation->profile->strings;
	const struct code_text *code = NULL;
	const struct code_line *line = NULL;

	if (annotation->code && frame->bci >= 0 && !frame_kind_is_java(frame->kind))
		code = annotation->code(annotation->code_context, intern_text(strings, frame->module),
					intern_text(strings, frame->name));
	if (code)
		line = instruction_at(code, frame->bci);
	return line ? (int32_t)line->offset : frame->bci;
}

/* Returns 0 or -ENOMEM. */
static int place_frame(struct builder *b, const struct frame *frame)
{
	struct annotation_row line = {.module = frame->module, .line = frame->line};
	struct annotation_row code = {.module = frame->module,
				      .class_name = frame->class_name,
				      .name = frame->name,
				      .signature = frame->signature,
				      .line = frame->line,
				      .bci = frame->bci};
	struct place place = {0};

	if (is_target(b->annotation->profile, frame, b->annotation->target)) {
		if (frame_kind_is_java(frame->kind))
			line.class_name = package_of(b->annotation, frame->class_name);
		else
			line.name = frame->name; /* functions have no lines of their own */
		code.bci = start_of_instruction(b->annotation, frame);
		place.line = row_of(b, &b->annotation->lines, line, 1);
		place.code = row_of(b, &b->annotation->codes, code, 2);
		if (!place.line || !place.code)
			return -ENOMEM;
	}
	return vec_push(&b->places, place);
}

static int place_frames(struct builder *b)
{
	const struct profile *profile = b->annotation->profile;
	int err = 0;

	for (size_t i = 0; !err && i < profile->frames.len; i++)
		err = place_frame(b, &profile->frames.items[i]);
	if (!err && !b->annotation->lines.len)
		err = -ENOENT;
	if (err)
		return err;
	b->open_lines = calloc(b->annotation->lines.len, sizeof(*b->open_lines));
	b->open_codes = calloc(b->annotation->codes.len, sizeof(*b->open_codes));
	return b->open_lines && b->open_codes ? 0 : -ENOMEM;
}

static int add_sample(void *context, const struct profile_sample *sample)
{
	struct builder *b = context;

	if (sample->event == b->options->event)
		tree_weight_add(&b->nodes[sample->node].self, &(struct tree_weight){sample->count, sample->weight});
	return 0;
}

/* What no code runs in: the class of an object, what a thread waits for. */
static bool is_code(enum frame_kind kind)
{
	return kind <= FRAME_JVM || frame_kind_is_java(kind);
}

static const struct place *place_of(const struct builder *b, uint32_t node)
{
	return &b->places.items[b->annotation->profile->nodes.items[node].frame];
}

/* The samples of a stack that ends there count for the code that runs, and for all of the target that is in it. */
static void count_self(struct builder *b, uint32_t node)
{
	struct annotation *a = b->annotation;
	const struct summed *sums = &b->nodes[node];
	const struct place *place = sums->code ? place_of(b, sums->code) : NULL;

	tree_weight_add(&a->all, &sums->self);
	if (sums->is_within)
		tree_weight_add(&a->total, &sums->self);
	if (!place || !place->line)
		return;
	tree_weight_add(&a->self, &sums->self);
	tree_weight_add(&a->lines.items[place->line - 1].self, &sums->self);
	tree_weight_add(&a->codes.items[place->code - 1].self, &sums->self);
}

/* Callers come before the frames that they call. */
static void count_selves(struct builder *b)
{
	const struct profile *profile = b->annotation->profile;
	struct summed *nodes = b->nodes;

	for (uint32_t i = 0; i < profile->nodes.len; i++) {
		uint32_t parent = profile->nodes.items[i].parent;

		if (i) {
			bool runs = is_code(profile_leaf(profile, i)->kind);

			nodes[i].code = runs ? i : nodes[parent].code;
			nodes[i].is_within = nodes[parent].is_within || place_of(b, i)->line;
		}
		count_self(b, i);
	}
}

/* From the last to the first, so that each node has all that is above it, and is the first child of its parent. */
static void sum_totals(struct builder *b)
{
	const struct profile *profile = b->annotation->profile;

	for (uint32_t i = (uint32_t)profile->nodes.len; i-- > 1;) {
		struct summed *node = &b->nodes[i], *parent = &b->nodes[profile->nodes.items[i].parent];

		tree_weight_add(&node->total, &node->self);
		tree_weight_add(&parent->total, &node->total);
		node->next_sibling = parent->first_child;
		parent->first_child = i;
	}
}

/* A row counts what is above its node nearest to the root: of recursion, only the outermost call. */
static void open_node(struct builder *b, uint32_t node)
{
	const struct place *place = place_of(b, node);
	struct annotation *a = b->annotation;

	if (!place->line)
		return;
	if (!b->open_lines[place->line - 1]++)
		tree_weight_add(&a->lines.items[place->line - 1].total, &b->nodes[node].total);
	if (!b->open_codes[place->code - 1]++)
		tree_weight_add(&a->codes.items[place->code - 1].total, &b->nodes[node].total);
}

static void close_node(struct builder *b, uint32_t node)
{
	const struct place *place = place_of(b, node);

	if (!place->line)
		return;
	b->open_lines[place->line - 1]--;
	b->open_codes[place->code - 1]--;
}

static void count_totals(struct builder *b)
{
	const struct stack_node *nodes = b->annotation->profile->nodes.items;
	uint32_t node = b->nodes[0].first_child;

	while (node) {
		open_node(b, node);
		if (b->nodes[node].first_child) {
			node = b->nodes[node].first_child;
			continue;
		}
		for (; node; node = nodes[node].parent) {
			close_node(b, node);
			if (b->nodes[node].next_sibling)
				break;
		}
		node = b->nodes[node].next_sibling;
	}
}

static int count_nodes(struct builder *b)
{
	const struct profile *profile = b->annotation->profile;
	int err;

	b->nodes = calloc(profile->nodes.len, sizeof(*b->nodes));
	err = b->nodes ? timeline_each(&profile->samples, add_sample, b) : -ENOMEM;
	if (err)
		return err;
	count_selves(b);
	sum_totals(b);
	count_totals(b);
	return 0;
}

static int compare_texts(const struct profile *profile, uint32_t a, uint32_t b)
{
	return a == b ? 0 : strcmp(profile_text(profile, a), profile_text(profile, b));
}

struct order {
	const struct profile *profile;
	bool is_code; /* of lines, class_name is the package, whose ids are in any order */
};

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct annotation_row *x = a, *y = b;
	const struct order *by = context;
	int order = compare_texts(by->profile, x->module, y->module);

	if (!order && by->is_code)
		order = compare_texts(by->profile, x->class_name, y->class_name);
	else if (!order)
		order = vec_order(x->class_name, y->class_name);
	return order ?: compare_texts(by->profile, x->name, y->name) ?:
	       compare_texts(by->profile, x->signature, y->signature) ?: vec_order(x->bci, y->bci) ?:
	       vec_order(x->line, y->line);
}

/* Rows of samples that --event left out disappear. */
static void finish_rows(const struct profile *profile, struct annotation_rows *rows, bool is_code)
{
	struct order by = {profile, is_code};
	size_t kept = 0;

	for (size_t i = 0; i < rows->len; i++)
		if (rows->items[i].total.samples)
			rows->items[kept++] = rows->items[i];
	rows->len = kept;
	if (kept)
		qsort_r(rows->items, kept, sizeof(*rows->items), compare_rows, &by);
}

int annotation_build(struct annotation *annotation, const struct profile *profile, const char *target,
		     const struct writer_options *options)
{
	struct builder b = {.annotation = annotation, .options = options};
	int err;

	annotation->profile = profile;
	annotation->target = target;
	err = intern_init(&annotation->packages);
	if (err < 0)
		return err;
	err = place_frames(&b);
	if (!err)
		err = count_nodes(&b);
	if (!err && !annotation->total.samples)
		err = -ENOENT;
	if (err < 0)
		annotation_release(annotation);
	else {
		finish_rows(profile, &annotation->lines, false);
		finish_rows(profile, &annotation->codes, true);
	}
	vec_release(&b.places);
	map_release(&b.ids);
	free(b.open_lines);
	free(b.open_codes);
	free(b.nodes);
	return err;
}

void annotation_release(struct annotation *annotation)
{
	intern_release(&annotation->packages);
	vec_release(&annotation->lines);
	vec_release(&annotation->codes);
}
