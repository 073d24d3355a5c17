/* SPDX-License-Identifier: MIT */
/*
 * One HTML file that needs no other file: page, style and script from assets.S, and the profile as JSON, which
 * flamegraph/profile.js reads. Nodes are written as columns of numbers in preorder. "depth" has the difference to the
 * node before. Columns that are mostly empty are rows of {distance to the row before, values}.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/assets.h"
#include "out/json.h"
#include "out/tree.h"
#include "out/writers.h"

struct place {
	uint32_t node;
	uint32_t depth; /* 1 below the root */
};

struct page {
	const struct profile *profile;
	const struct writer_options *options;
	FILE *out;
	struct tree tree;
	struct vec(struct place) places;	      /* the nodes that are wide enough, in preorder */
	struct vec(const struct tree_label *) labels; /* by rank */
	uint64_t period; /* the weight of most samples: only differences from it are written */
};

static const struct tree_node *page_node(const struct page *page, size_t place)
{
	return &page->tree.nodes.items[page->places.items[place].node];
}

/* ---- what is shown ------------------------------------------------------- */

static int place_nodes(struct page *page)
{
	const struct tree *tree = &page->tree;
	double least = (double)tree_value(&tree->nodes.items[0].total, page->options) * page->options->min_width / 100;
	uint32_t *depths = calloc(tree->nodes.len, sizeof(*depths));
	uint32_t node = tree_next(tree, 0, false);
	int err = depths ? 0 : -ENOMEM;

	while (node && !err) {
		const struct tree_node *at = &tree->nodes.items[node];
		bool narrow = (double)tree_value(&at->total, page->options) < least;

		depths[node] = depths[at->parent] + 1;
		if (!narrow)
			err = vec_push(&page->places, (struct place){.node = node, .depth = depths[node]});
		node = tree_next(tree, node, narrow);
	}
	free(depths);
	return err;
}

static int collect_labels(struct page *page)
{
	const struct tree *tree = &page->tree;
	size_t used = 0;

	if (vec_reserve(&page->labels, tree->labels.len) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < tree->labels.len; i++) {
		if (!tree->labels.items[i].used)
			continue;
		page->labels.items[tree->labels.items[i].rank] = &tree->labels.items[i];
		used++;
	}
	page->labels.len = used;
	return 0;
}

static uint64_t usual_period(const struct profile *profile, const struct writer_options *options,
			     const struct tree_weight *all)
{
	uint64_t interval = options->event < profile->events.len ? profile->events.items[options->event].interval : 0;

	if (interval || !all->samples)
		return interval;
	return all->amount / all->samples;
}

/* ---- columns --------------------------------------------------------------- */

static void write_depths(const struct page *page)
{
	int64_t before = 0;

	fprintf(page->out, ",\n\"depth\":[");
	for (size_t i = 0; i < page->places.len; i++) {
		fprintf(page->out, "%s%" PRId64, i ? "," : "", page->places.items[i].depth - before);
		before = page->places.items[i].depth;
	}
	fprintf(page->out, "]");
}

static void write_column(const struct page *page, const char *name,
			 uint64_t (*get)(const struct page *page, size_t place))
{
	fprintf(page->out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < page->places.len; i++)
		fprintf(page->out, "%s%" PRIu64, i ? "," : "", get(page, i));
	fprintf(page->out, "]");
}

static uint64_t get_label(const struct page *page, size_t place)
{
	return tree_label(&page->tree, page->places.items[place].node)->rank;
}

static uint64_t get_samples(const struct page *page, size_t place)
{
	return page_node(page, place)->total.samples;
}

/* Writes two values a row. Rows of two zeros are left out. */
static void write_sparse(const struct page *page, const char *name,
			 void (*get)(const struct page *page, size_t place, int64_t ret_row[2]))
{
	size_t before = 0;
	bool first = true;

	fprintf(page->out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < page->places.len; i++) {
		int64_t row[2] = {0, 0};

		get(page, i, row);
		if (!row[0] && !row[1])
			continue;
		fprintf(page->out, "%s%zu,%" PRId64 ",%" PRId64, first ? "" : ",", i - before, row[0], row[1]);
		before = i;
		first = false;
	}
	fprintf(page->out, "]");
}

/* Self samples. They cannot be computed from `samples`, because children that are too narrow are not written. */
static void get_self(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_weight *self = &page_node(page, place)->self;

	ret_row[0] = (int64_t)self->samples;
	ret_row[1] = (int64_t)(self->amount - self->samples * page->period);
}

/* The difference between the weight and samples x period. */
static void get_time(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_weight *total = &page_node(page, place)->total;

	ret_row[0] = (int64_t)(total->amount - total->samples * page->period);
}

static void get_mix(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_node *node = page_node(page, place);

	if (node->inlined == node->total.samples || node->interpreted == node->total.samples)
		return;
	ret_row[0] = (int64_t)node->inlined;
	ret_row[1] = (int64_t)node->interpreted;
}

static void get_lines(const struct page *page, size_t place, int64_t ret_row[2])
{
	const struct tree_node *node = page_node(page, place);

	ret_row[0] = node->line_low;
	ret_row[1] = node->line_high - node->line_low;
}

/* Returns the kind that most samples of a Java frame have. */
static enum frame_kind node_kind(const struct page *page, size_t place)
{
	const struct tree_node *node = page_node(page, place);
	enum frame_kind kind = tree_label(&page->tree, page->places.items[place].node)->kind;
	uint64_t compiled = node->total.samples - node->inlined - node->interpreted;

	if (!frame_kind_is_java(kind) || kind == FRAME_JAVA_NATIVE)
		return kind;
	if (node->interpreted > compiled && node->interpreted >= node->inlined)
		return FRAME_INTERPRETED;
	return node->inlined > compiled ? FRAME_INLINED : FRAME_COMPILED;
}

/* Writes one letter a node, 'a' for the first kind. */
static void write_kinds(const struct page *page)
{
	fprintf(page->out, ",\n\"kind\":\"");
	for (size_t i = 0; i < page->places.len; i++)
		fputc('a' + (int)node_kind(page, i), page->out);
	fprintf(page->out, "\"");
}

/* ---- texts ----------------------------------------------------------------- */

/* Stops at the first non-ASCII byte, because the script counts UTF-16 units, not bytes. */
static uint32_t shared_prefix(const struct tree_label *a, const struct tree_label *b)
{
	uint32_t len = 0;

	while (len < a->name_len && len < b->name_len && a->text[len] == b->text[len] && !(a->text[len] & 0x80))
		len++;
	return len;
}

/* Writes the names in order, each as the length that it shares with the name before, and the rest. */
static void write_labels(const struct page *page)
{
	static const struct tree_label none = {.text = ""};
	const struct tree_label *before = &none;

	fprintf(page->out, ",\n\"labels\":[");
	for (size_t i = 0; i < page->labels.len; i++) {
		const struct tree_label *label = page->labels.items[i];
		uint32_t shared = shared_prefix(before, label);

		fprintf(page->out, "%s%u,", i ? "," : "", shared);
		json_text(page->out, label->text + shared, label->name_len - shared);
		before = label;
	}
	fprintf(page->out, "]");
}

/* Writes the list of libraries and source files, and for each label its index in that list. */
static int write_modules(const struct page *page)
{
	struct vec(uint64_t) places = {0};
	struct map known = {0};
	uint64_t count = 0;
	int err = 0;

	fprintf(page->out, ",\n\"modules\":[");
	for (size_t i = 0; i < page->labels.len && !err; i++) {
		uint32_t module = page->labels.items[i]->module;
		uint64_t place = count;

		if (!map_get(&known, module, &place)) {
			err = map_put(&known, module, count);
			fprintf(page->out, "%s", count++ ? "," : "");
			json_foreign(page->out, intern_text(&page->profile->strings, module));
		}
		if (!err)
			err = vec_push(&places, place);
	}
	fprintf(page->out, "],\n\"module\":[");
	for (size_t i = 0; i < places.len; i++)
		fprintf(page->out, "%s%" PRIu64, i ? "," : "", places.items[i]);
	fprintf(page->out, "]");
	vec_release(&places);
	map_release(&known);
	return err;
}

static void write_kind_names(const struct page *page)
{
	fprintf(page->out, ",\n\"kinds\":[");
	for (int kind = 0; kind < FRAME_KIND_MAX; kind++)
		fprintf(page->out, "%s\"%s\"", kind ? "," : "", frame_kind_name(kind));
	fprintf(page->out, "]");
}

static void write_facts(const struct page *page)
{
	const struct profile *profile = page->profile;

	fprintf(page->out, ",\n\"facts\":[");
	for (size_t i = 0; i < profile->facts.len; i++) {
		fprintf(page->out, "%s[", i ? "," : "");
		json_foreign(page->out, intern_text(&profile->strings, profile->facts.items[i].key));
		fputc(',', page->out);
		json_foreign(page->out, intern_text(&profile->strings, profile->facts.items[i].value));
		fputc(']', page->out);
	}
	fprintf(page->out, "]");
}

static void write_losses(const struct page *page)
{
	const struct profile *profile = page->profile;

	fprintf(page->out, ",\n\"losses\":[");
	for (size_t i = 0; i < profile->losses.len; i++) {
		fprintf(page->out, "%s[%" PRIu64 ",", i ? "," : "", profile->losses.items[i].count);
		json_foreign(page->out, intern_text(&profile->strings, profile->losses.items[i].text));
		fputc(']', page->out);
	}
	fprintf(page->out, "]");
}

static void write_title(const struct page *page)
{
	char title[64];

	snprintf(title, sizeof(title), "%.32s profile", writer_event(page->profile, page->options));
	json_foreign(page->out, page->options->title ? page->options->title : title);
}

/* ---- the file ---------------------------------------------------------------- */

static int write_profile(const struct page *page)
{
	const struct tree_weight *all = &page->tree.nodes.items[0].total;
	int err;

	fprintf(page->out, "{\"title\":");
	write_title(page);
	fprintf(page->out, ",\"unit\":");
	json_foreign(page->out, writer_unit(page->profile, page->options));
	fprintf(page->out, ",\"samples\":%" PRIu64 ",\"amount\":%" PRIu64 ",\"period\":%" PRIu64, all->samples,
		all->amount, page->period);
	fprintf(page->out, ",\"total\":%s,\"inverted\":%s,\"reverse\":%s", page->options->total ? "true" : "false",
		page->options->inverted ? "true" : "false", page->options->reverse ? "true" : "false");
	write_kind_names(page);
	write_facts(page);
	write_losses(page);
	write_labels(page);
	err = write_modules(page);
	write_depths(page);
	write_column(page, "label", get_label);
	write_column(page, "width", get_samples);
	write_kinds(page);
	write_sparse(page, "self", get_self);
	write_sparse(page, "time", get_time);
	write_sparse(page, "mix", get_mix);
	write_sparse(page, "lines", get_lines);
	fprintf(page->out, "}");
	return err;
}

static int write_style(const struct page *page)
{
	fwrite(asset_style, 1, asset_style_bytes, page->out);
	return 0;
}

static int write_script(const struct page *page)
{
	fwrite(asset_script, 1, asset_script_bytes, page->out);
	return 0;
}

/* In the order of the markers in the page. */
static const struct insertion {
	const char *marker;
	int (*write)(const struct page *page);
} insertions[] = {
	{"@style@", write_style},
	{"@profile@", write_profile},
	{"@script@", write_script},
};

static int write_page(const struct page *page)
{
	const char *at = asset_page, *end = asset_page + asset_page_bytes;
	int err = 0;

	for (size_t i = 0; i < sizeof(insertions) / sizeof(insertions[0]) && !err; i++) {
		const struct insertion *insertion = &insertions[i];
		size_t len = strlen(insertion->marker);
		const char *marker = memmem(at, (size_t)(end - at), insertion->marker, len);

		if (!marker)
			return -EINVAL;
		fwrite(at, 1, (size_t)(marker - at), page->out);
		err = insertion->write(page);
		at = marker + len;
	}
	fwrite(at, 1, (size_t)(end - at), page->out);
	return err ? err : writer_finish(page->out);
}

static int flamegraph_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct page page = {.profile = profile, .options = &ours, .out = out};
	int err;

	/* Frames that differ only in how the code ran are one frame: colours and tooltips show the difference. */
	ours.style.dotted = true;
	ours.style.annotate = false;
	err = tree_build(&page.tree, profile, &ours);
	if (err < 0)
		return err;
	page.period = usual_period(profile, &ours, &page.tree.nodes.items[0].total);
	err = tree_sort(&page.tree);
	if (!err)
		err = collect_labels(&page);
	if (!err)
		err = place_nodes(&page);
	if (!err)
		err = write_page(&page);
	vec_release(&page.places);
	vec_release(&page.labels);
	tree_release(&page.tree);
	return err;
}

const struct writer writer_flamegraph = {
	.name = "flamegraph",
	.extensions = "html,htm",
	.help = "flame graph in one HTML file that opens from disk",
	.write = flamegraph_write,
};
