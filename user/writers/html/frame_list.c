/* SPDX-License-Identifier: MIT */
/*
 * The readers take one line after the other: the title, the unit, the number of levels, then all names in their order,
 * each without the part that it shares with the name before it, and the nodes in preorder. A name may not end the
 * element in which the lines are.
 */
#include "writers/html/frame_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "writers/shared/tree.h"

#define SHARED_MAX 94 /* most shared bytes that a printable character can say */
#define SHARED_OF_ANGLE ('<' - ' ') /* this number would be written as '<' */

/* How code ran, by numbers that the readers know; the number of a name and this one are a node's key. */
enum list_type { LIST_INTERPRETED, LIST_COMPILED, LIST_INLINED, LIST_NATIVE, LIST_CPP, LIST_KERNEL };

struct list {
	const struct tree *tree;
	const struct writer_options *options;
	FILE *out;
	uint32_t *by_name; /* labels in the order of their names */
	size_t count;
	uint32_t *numbers; /* of names, by label; from 1 */
	uint32_t *depths; /* by node */
	uint64_t *places; /* by node: where its next child begins */
};

static int compare_bytes(const struct path_label *a, const struct path_label *b)
{
	uint32_t len = a->name_len < b->name_len ? a->name_len : b->name_len;
	int order = memcmp(a->text, b->text, len);

	return order ? order : vec_order(a->name_len, b->name_len);
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct path_labels *labels = context;

	return compare_bytes(&labels->items[*(const uint32_t *)a], &labels->items[*(const uint32_t *)b]);
}

/* Only ASCII is shared: readers count characters, not bytes. */
static uint32_t shared_bytes(const struct path_label *before, const struct path_label *label)
{
	uint32_t shared = 0;

	while (before && shared < before->name_len && shared < label->name_len && shared < SHARED_MAX &&
	       before->text[shared] == label->text[shared] && (unsigned char)label->text[shared] < 0x80)
		shared++;
	return shared == SHARED_OF_ANGLE ? shared - 1 : shared;
}

/* Writes a text without "</" and "<!": these end an element, or hide its end. `quotes`: in a string of JavaScript. */
static void put_text(FILE *out, const char *text, size_t len, bool quotes)
{
	for (size_t i = 0; i < len; i++) {
		bool is_markup = text[i] == '<' && i + 1 < len && (text[i + 1] == '/' || text[i + 1] == '!');

		if (quotes && (text[i] == '\'' || text[i] == '\\'))
			fputc('\\', out);
		if (is_markup)
			fputs("\u2039", out);
		else
			fputc(text[i], out);
	}
}

static void put_name(FILE *out, const struct path_label *before, const struct path_label *label)
{
	uint32_t shared = shared_bytes(before, label);
	const char first = (char)(' ' + shared);

	fputs(",\n'", out);
	put_text(out, &first, 1, true);
	put_text(out, label->text + shared, label->name_len - shared, true);
	fputc('\'', out);
}

/* Labels that differ only in their suffix have one name. */
static void put_names(struct list *list)
{
	const struct path_labels *labels = &list->tree->labels;
	const struct path_label *before = NULL;
	uint32_t number = 0;

	fputs("const cpool = [\n'all'", list->out);
	for (size_t i = 0; i < list->count; i++) {
		const struct path_label *label = &labels->items[list->by_name[i]];

		if (!before || compare_bytes(before, label)) {
			put_name(list->out, before, label);
			number++;
		}
		list->numbers[list->by_name[i]] = number;
		before = label;
	}
	fputs("\n];\n\n", list->out);
}

static void sort_names(struct list *list)
{
	const struct path_labels *labels = &list->tree->labels;

	for (uint32_t i = 1; i < labels->len; i++)
		if (labels->items[i].used)
			list->by_name[list->count++] = i;
	qsort_r(list->by_name, list->count, sizeof(*list->by_name), compare_names, (void *)labels);
}

static enum list_type type_of(const struct tree_node *node, enum frame_kind kind)
{
	if (frame_kind_is_java(kind) && node->inlined == node->total.samples)
		return LIST_INLINED;
	if (frame_kind_is_java(kind))
		return node->interpreted == node->total.samples ? LIST_INTERPRETED : LIST_COMPILED;
	if (kind == FRAME_KERNEL)
		return LIST_KERNEL;
	return kind == FRAME_JVM ? LIST_CPP : kind == FRAME_CLASS ? LIST_INLINED : LIST_NATIVE;
}

/* The part of a node's value that this many of its samples have. */
static uint64_t part_of(uint64_t value, uint64_t samples, const struct tree_node *node)
{
	return node->total.samples ? (uint64_t)((unsigned __int128)value * samples / node->total.samples) : 0;
}

static void put_node(struct list *list, uint32_t index, uint64_t place, uint64_t last_place)
{
	const struct tree_node *node = &list->tree->nodes.items[index];
	enum list_type type = index ? type_of(node, tree_label(list->tree, index)->kind) : LIST_NATIVE;
	uint32_t name = index ? list->numbers[node->label] : 0;
	uint64_t value = tree_value(&node->total, list->options);

	fprintf(list->out, "f(%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, (uint64_t)name << 3 | type,
		list->depths[index], place - last_place, value);
	if (type == LIST_COMPILED && (node->inlined || node->interpreted))
		fprintf(list->out, ",%" PRIu64 ",0,%" PRIu64, part_of(value, node->inlined, node),
			part_of(value, node->interpreted, node));
	fputs(")\n", list->out);
}

/* Children begin behind their parent's own samples. */
static void put_nodes(struct list *list)
{
	const struct tree_node *nodes = list->tree->nodes.items;
	uint64_t last_place = 0;

	list->places[0] = tree_value(&nodes[0].self, list->options);
	put_node(list, 0, 0, 0);
	for (uint32_t node = tree_next(list->tree, 0, false); node; node = tree_next(list->tree, node, false)) {
		uint64_t *next = &list->places[nodes[node].parent], place = *next;

		put_node(list, node, place, last_place);
		last_place = place;
		list->places[node] = place + tree_value(&nodes[node].self, list->options);
		*next = place + tree_value(&nodes[node].total, list->options);
	}
	fputc('\n', list->out);
}

/* Returns the number of levels, with the root's. Parents come before their children. */
static uint32_t set_depths(struct list *list)
{
	uint32_t most = 0;

	for (size_t i = 1; i < list->tree->nodes.len; i++) {
		list->depths[i] = list->depths[list->tree->nodes.items[i].parent] + 1;
		most = list->depths[i] > most ? list->depths[i] : most;
	}
	return most + 1;
}

static void put_list(struct list *list, const char *unit)
{
	const char *title = list->options->title ? list->options->title : "Flame Graph";

	fputs("<script type=\"text/plain\" id=\"frames\">\n<h1>", list->out);
	put_text(list->out, title, strcspn(title, "\n\r"), false);
	fputs("</h1>\n", list->out);
	fprintf(list->out, "\tconst units = '%s';\nArray(%u)\n", list->options->total ? unit : "samples",
		set_depths(list));
	sort_names(list);
	put_names(list);
	put_nodes(list);
	fputs("</script>\n", list->out);
}

int frame_list_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	const char *unit = writer_unit(profile, options);
	struct tree tree;
	struct list list = {.tree = &tree, .options = options, .out = out};
	int err = tree_build(&tree, profile, options);

	if (err)
		return err;
	err = tree_sort(&tree, NULL);
	list.by_name = calloc(tree.labels.len + 1, sizeof(*list.by_name));
	list.numbers = calloc(tree.labels.len + 1, sizeof(*list.numbers));
	list.depths = calloc(tree.nodes.len, sizeof(*list.depths));
	list.places = calloc(tree.nodes.len, sizeof(*list.places));
	if (!list.by_name || !list.numbers || !list.depths || !list.places)
		err = -ENOMEM;
	if (!err)
		put_list(&list, strchr(unit, '\'') ? "" : unit);
	free(list.by_name);
	free(list.numbers);
	free(list.depths);
	free(list.places);
	tree_release(&tree);
	return err;
}
