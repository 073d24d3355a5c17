/* SPDX-License-Identifier: MIT */
/*
 * The heat map: how much was sampled at each moment, and the flame graph of the moments that the user selects. The page
 * has the same samples in four tables of rows: by event alone, also by thread, also by stack, by both. The fewer series
 * a table has, the shorter are its steps: the picture of a day is fine, and its flame graph is one of many minutes.
 * Columns of numbers are written one after the other, compressed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/varint.h"
#include "out/assets.h"
#include "out/gzip.h"
#include "out/heat_rows.h"
#include "out/json.h"
#include "out/page.h"
#include "out/path.h"
#include "out/writers.h"

/* Before rows are merged; the page has at most half of them. */
#define ROWS_MAX 2000000
#define ROWS_MAX_ALL 4000000

enum table { BY_EVENT, BY_THREAD, BY_STACK, BY_ALL, TABLES };

static const struct table_kind {
	size_t rows_max;
	bool has_threads, has_stacks;
} kinds[TABLES] = {
	[BY_EVENT] = {ROWS_MAX, false, false},
	[BY_THREAD] = {ROWS_MAX, true, false},
	[BY_STACK] = {ROWS_MAX, false, true},
	[BY_ALL] = {ROWS_MAX_ALL, true, true},
};

struct heatmap {
	const struct profile *profile;
	const struct writer_options *options;
	FILE *out;
	struct path_labels labels;
	struct path_maker path;
	uint32_t *page_nodes; /* by node of the profile */
	unsigned char *wanted; /* by node of the profile: 0 not known yet, 1 yes, 2 no */
	/* nodes of the page: parent, and label instead of a frame; [0] is the root */
	struct vec(struct stack_node) nodes;
	struct map node_ids; /* parent << 32 | label -> node of the page */
	/* keys: event; event << 32 | thread; event << 32 | node; BY_ALL: the series by thread << 32 | that by stack */
	struct heat_rows tables[TABLES];
	struct gzip gzip;
};

/* ---- stacks ---- */

static uint32_t child_of(struct heatmap *h, uint32_t parent, uint32_t label)
{
	uint64_t key = (uint64_t)parent << 32 | label, node = h->nodes.len;

	if (map_get(&h->node_ids, key, &node))
		return (uint32_t)node;
	if (vec_push(&h->nodes, (struct stack_node){.parent = parent, .frame = label}) < 0 ||
	    map_put(&h->node_ids, key, node) < 0)
		return 0;
	return (uint32_t)node;
}

/* Nodes whose frames have the same text become one. */
static int number_nodes(struct heatmap *h)
{
	const struct profile *profile = h->profile;
	uint32_t unknown = path_mark(&h->path, "[unknown]");

	h->page_nodes = calloc(profile->nodes.len, sizeof(*h->page_nodes));
	h->wanted = calloc(profile->nodes.len, 1);
	if (!unknown || !h->page_nodes || !h->wanted || vec_push(&h->nodes, (struct stack_node){0}) < 0)
		return -ENOMEM;
	for (size_t i = 1; i < profile->nodes.len; i++) {
		const struct stack_node *node = &profile->nodes.items[i];

		h->page_nodes[i] =
			child_of(h, h->page_nodes[node->parent], h->path.frame_labels.items[node->frame]);
		if (!h->page_nodes[i])
			return -ENOMEM;
	}
	/* the page's node of stacks without frames; until here it was the root */
	h->page_nodes[0] = child_of(h, 0, unknown);
	return h->page_nodes[0] ? 0 : -ENOMEM;
}

/* Applies -I and -X. Returns 1, 0 or -ENOMEM. */
static int is_wanted(struct heatmap *h, const struct profile_sample *sample)
{
	unsigned char *wanted = &h->wanted[sample->node];
	int got;

	if (!*wanted) {
		got = path_make(&h->path, sample->thread, sample->node);
		if (got < 0)
			return got;
		*wanted = got ? 1 : 2;
	}
	return *wanted == 1;
}

/* ---- rows ---- */

static int64_t add_to(struct heat_rows *table, uint64_t key, uint64_t since_ns, uint64_t value)
{
	int64_t series = heat_rows_series(table, key);

	if (series < 0 || heat_rows_add(table, (uint32_t)series, since_ns, value) < 0)
		return -ENOMEM;
	return series;
}

static int add_row(void *context, const struct profile_sample *sample)
{
	struct heatmap *h = context;
	uint64_t since = sample->time_ns > h->profile->start_ns ? sample->time_ns - h->profile->start_ns : 0;
	uint64_t value = h->options->total ? sample->weight : sample->count;
	uint64_t event = (uint64_t)sample->event << 32;
	int wanted = is_wanted(h, sample);
	int64_t thread, stack;

	if (wanted <= 0)
		return wanted;
	thread = add_to(&h->tables[BY_THREAD], event | sample->thread, since, value);
	stack = add_to(&h->tables[BY_STACK], event | h->page_nodes[sample->node], since, value);
	if (thread < 0 || stack < 0 || add_to(&h->tables[BY_EVENT], event, since, value) < 0 ||
	    add_to(&h->tables[BY_ALL], (uint64_t)thread << 32 | (uint64_t)stack, since, value) < 0)
		return -ENOMEM;
	return 0;
}

/* The page does without a table when one that says more has the same steps. */
static bool is_written(const struct heatmap *h, enum table number)
{
	for (enum table other = number + 1; other < TABLES; other++)
		if (kinds[other].has_threads >= kinds[number].has_threads &&
		    kinds[other].has_stacks >= kinds[number].has_stacks &&
		    heat_rows_step_ms(&h->tables[other]) == heat_rows_step_ms(&h->tables[number]))
			return false;
	return true;
}

/* ---- the compressed part ---- */

static void put_number(struct heatmap *h, uint64_t number)
{
	unsigned char bytes[VARINT_BYTES];

	gzip_add(&h->gzip, bytes, varint_put(bytes, number));
}

/* The labels of nodes are labels of h->path; the page has all of them as names. */
static void put_nodes(struct heatmap *h)
{
	put_number(h, h->labels.len);
	for (size_t i = 0; i < h->labels.len; i++) {
		struct buf name;

		buf_init(&name);
		text_add_line(&name, h->labels.items[i].text);
		put_number(h, name.len);
		gzip_add(&h->gzip, name.data, name.len);
		buf_release(&name);
	}
	put_number(h, h->nodes.len);
	for (size_t i = 0; i < h->nodes.len; i++)
		put_number(h, i - h->nodes.items[i].parent);
	for (size_t i = 0; i < h->nodes.len; i++)
		put_number(h, h->nodes.items[i].frame);
}

/* Event, thread and node of each series, as far as the table has them, and the number of its rows. */
static void put_series(struct heatmap *h, enum table number)
{
	const struct heat_rows *table = &h->tables[number];
	uint32_t first = 0;

	put_number(h, table->series.len);
	for (size_t i = 0; i < table->series.len; i++) {
		const struct heat_series *one = &table->series.items[i];
		uint64_t by_thread = one->key, by_stack = one->key;

		if (number == BY_ALL) {
			by_thread = h->tables[BY_THREAD].series.items[one->key >> 32].key;
			by_stack = h->tables[BY_STACK].series.items[(uint32_t)one->key].key;
		}
		put_number(h, by_thread >> 32);
		if (kinds[number].has_threads)
			put_number(h, (uint32_t)by_thread);
		if (kinds[number].has_stacks)
			put_number(h, (uint32_t)by_stack);
		put_number(h, one->end - first);
		first = one->end;
	}
}

/* Two columns: steps since the row before of the same series, and values. */
static void put_rows(struct heatmap *h, enum table number)
{
	const struct heat_rows *table = &h->tables[number];
	const struct heat_row *rows = table->rows.items;

	put_series(h, number);
	for (size_t i = 0; i < table->rows.len; i++)
		put_number(h, rows[i].step - (i && rows[i - 1].series == rows[i].series ? rows[i - 1].step : 0));
	for (size_t i = 0; i < table->rows.len; i++)
		put_number(h, rows[i].value);
}

static void write_base64(const unsigned char *bytes, size_t len, FILE *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				 (left > 2 ? bytes[i + 2] : 0);

		fputc(digits[three >> 18], out);
		fputc(digits[three >> 12 & 63], out);
		fputc(left > 1 ? digits[three >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[three & 63] : '=', out);
	}
}

static int put_data(const void *context)
{
	struct heatmap *h = (struct heatmap *)context;
	char *packed = NULL;
	size_t len;
	FILE *stream = open_memstream(&packed, &len);
	int err = stream ? gzip_open(&h->gzip, stream) : -ENOMEM;

	if (!err) {
		put_nodes(h);
		for (enum table number = 0; number < TABLES; number++)
			if (is_written(h, number))
				put_rows(h, number);
		gzip_close(&h->gzip);
	}
	if (stream && fclose(stream) == EOF)
		err = -ENOMEM;
	if (!err)
		write_base64((unsigned char *)packed, len, h->out);
	free(packed);
	return err;
}

/* ---- the page ---- */

static void put_events_head(const struct heatmap *h)
{
	fputs(",\"events\":[", h->out);
	for (uint32_t i = 0; i < h->profile->events.len; i++) {
		struct writer_options ours = *h->options;

		ours.event = i;
		fputs(i ? ",{\"name\":" : "{\"name\":", h->out);
		json_foreign(h->out, writer_event(h->profile, &ours));
		fputs(",\"unit\":", h->out);
		json_foreign(h->out, h->options->total ? writer_unit(h->profile, &ours) : "samples");
		fputs("}", h->out);
	}
	fputs("]", h->out);
}

static void put_threads(const struct heatmap *h)
{
	struct buf text;

	buf_init(&text);
	fputs(",\n\"threads\":[", h->out);
	for (uint32_t i = 0; i < h->profile->threads.len; i++) {
		buf_clear(&text);
		writer_thread_text(h->profile, i, &text);
		fputs(i ? ",\n" : "\n", h->out);
		json_foreign(h->out, text.data);
	}
	fputs("]", h->out);
	buf_release(&text);
}

/* The tables in the order in which put_data() writes them. */
static void put_tables(const struct heatmap *h)
{
	const char *comma = "";

	fputs(",\"tables\":[", h->out);
	for (enum table number = 0; number < TABLES; number++) {
		if (!is_written(h, number))
			continue;
		fprintf(h->out, "%s{\"stepMs\":%u,\"hasThreads\":%s,\"hasStacks\":%s}", comma,
			heat_rows_step_ms(&h->tables[number]), kinds[number].has_threads ? "true" : "false",
			kinds[number].has_stacks ? "true" : "false");
		comma = ",";
	}
	fputs("]", h->out);
}

static int put_head(const void *context)
{
	const struct heatmap *h = context;

	fputs("{\"title\":", h->out);
	json_foreign(h->out, h->options->title ? h->options->title : "Heat map");
	fprintf(h->out, ",\"startMs\":%" PRIu64, (uint64_t)(h->profile->start_realtime_ns / NS_PER_MS));
	put_tables(h);
	put_events_head(h);
	put_threads(h);
	fputs("}", h->out);
	return 0;
}

static int write_page(struct heatmap *h)
{
	static const struct page_insertion insertions[] = {{"@head@", put_head}, {"@data@", put_data}};
	int err = path_labels_init(&h->labels);

	if (!err)
		err = path_maker_init(&h->path, &h->labels, h->profile, h->options);
	if (!err)
		err = number_nodes(h);
	if (!err)
		err = timeline_each(&h->profile->samples, add_row, h);
	for (enum table number = 0; !err && number < TABLES; number++)
		err = heat_rows_finish(&h->tables[number]);
	if (err)
		return err;
	return page_write(asset_heatmap, asset_heatmap_bytes, insertions, 2, h, h->out);
}

/* Threads are chosen in the page, so they are not frames. */
static int heatmap_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct heatmap *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->profile = profile;
	h->options = &ours;
	h->out = out;
	for (enum table number = 0; number < TABLES; number++)
		h->tables[number].rows_max = kinds[number].rows_max;
	ours.style.dotted = true;
	ours.threads = ours.processes = ours.reverse = false;
	memset(ours.by, 0, sizeof(ours.by));
	err = write_page(h);
	path_maker_release(&h->path);
	path_labels_release(&h->labels);
	free(h->page_nodes);
	free(h->wanted);
	vec_release(&h->nodes);
	map_release(&h->node_ids);
	for (enum table number = 0; number < TABLES; number++)
		heat_rows_release(&h->tables[number]);
	free(h);
	return err;
}

const struct writer writer_heatmap = {
	.name = "heatmap",
	.extensions = "heatmap.html",
	.help = "samples over time in one HTML file; a range opens as a flame graph",
	.has_all_events = true,
	.write = heatmap_write,
};
