/* SPDX-License-Identifier: MIT */
/*
 * The heat map: how much was sampled at each moment, and the flame graph of the moments that the user selects. A row of
 * the page holds the samples of one stack of one thread in one step of time. Steps are as short as the number of rows
 * allows: the file of a day has longer ones than that of a minute. Columns of numbers are written one after the other,
 * compressed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/varint.h"
#include "out/assets.h"
#include "out/gzip.h"
#include "out/json.h"
#include "out/page.h"
#include "out/path.h"
#include "out/writers.h"

#define ROWS_MAX 4000000 /* before rows are merged; the page has at most half of it */

/*
 * Milliseconds. Each step divides the next one. Each also divides a second, a minute, an hour or a day, which is then a
 * column of the page.
 */
static const uint32_t steps_ms[] = {10,	   20,	   100,	   200,	    1000,    2000,    10000,   20000,
				    60000, 120000, 600000, 1200000, 3600000, 7200000, 21600000, 43200000};
#define STEPS (sizeof(steps_ms) / sizeof(*steps_ms))

struct row {
	uint32_t step, event, thread, node;
	uint64_t value;
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
	struct vec(struct row) rows;
	bool is_unordered; /* some row is of an earlier step than the one before it */
	struct map recent; /* stack_key() -> index in rows, of the step of the last row */
	size_t step; /* index in steps_ms */
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

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static int compare_events(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return compare_rows(a, b);
}

/* Rows of a recording are in the order of time, so that those of each step are sorted on their own. */
static void sort_rows(struct heatmap *h)
{
	struct row *rows = h->rows.items;
	size_t end;

	for (size_t first = 0; first < h->rows.len; first = end) {
		for (end = first + 1; end < h->rows.len && (h->is_unordered || rows[end].step == rows[first].step);)
			end++;
		qsort(rows + first, end - first, sizeof(*rows), compare_rows);
	}
	h->is_unordered = false;
}

/* Sorts the rows and merges equal ones. */
static void merge_rows(struct heatmap *h)
{
	struct row *rows = h->rows.items;
	size_t kept = 0;

	map_release(&h->recent);
	sort_rows(h);
	for (size_t i = 1; i < h->rows.len; i++) {
		if (compare_rows(&rows[kept], &rows[i]))
			rows[++kept] = rows[i];
		else
			rows[kept].value += rows[i].value;
	}
	if (h->rows.len)
		h->rows.len = kept + 1;
}

static uint32_t longer_step(const struct heatmap *h, uint32_t step, size_t to)
{
	return (uint32_t)((uint64_t)step * steps_ms[h->step] / steps_ms[to]);
}

/* Returns the index in steps_ms of the shortest steps with which both are one. */
static size_t common_step(const struct heatmap *h, uint32_t a, uint32_t b)
{
	size_t step = h->step;

	while (step + 1 < STEPS && longer_step(h, a, step) != longer_step(h, b, step))
		step++;
	return step;
}

static uint64_t stack_key(const struct row *row)
{
	return hash_bytes(&row->event, offsetof(struct row, value) - offsetof(struct row, event), 0);
}

/* Sets *ret to the index of the shortest steps that leave half of the room free. Returns 0 or -ENOMEM. */
static int find_step(const struct heatmap *h, size_t *ret)
{
	struct map last = {0}; /* stack_key() -> step of its last row */
	size_t merged[STEPS] = {0}, left = h->rows.len;
	int err = 0;

	for (size_t i = 0; !err && i < h->rows.len; i++) {
		const struct row *row = &h->rows.items[i];
		uint64_t key = stack_key(row), before;

		if (map_get(&last, key, &before))
			merged[common_step(h, (uint32_t)before, row->step)]++;
		err = map_put(&last, key, row->step);
	}
	map_release(&last);
	*ret = h->step;
	while (*ret + 1 < STEPS && left > ROWS_MAX / 2)
		left -= merged[++*ret];
	return err;
}

/*
 * Makes the steps as long as it takes to free half of the room, and merges rows. In the order of time, no two rows are
 * equal before that: see put_row(). Returns 0 or -ENOMEM.
 */
static int make_room(struct heatmap *h)
{
	size_t to;
	int err;

	if (h->is_unordered)
		merge_rows(h);
	if (h->rows.len <= ROWS_MAX / 2)
		return 0;
	err = find_step(h, &to);
	if (err)
		return err;
	for (size_t i = 0; i < h->rows.len; i++)
		h->rows.items[i].step = longer_step(h, h->rows.items[i].step, to);
	h->step = to;
	merge_rows(h);
	return 0;
}

/* Adds the row, or its value to an equal one. Rows that are equal to much older ones are merged later. */
static int put_row(struct heatmap *h, const struct row *row)
{
	uint64_t key = stack_key(row), at;
	uint32_t last = h->rows.len ? h->rows.items[h->rows.len - 1].step : 0;

	if (row->step != last)
		map_release(&h->recent);
	h->is_unordered |= row->step < last;
	if (map_get(&h->recent, key, &at) && !compare_rows(&h->rows.items[at], row)) {
		h->rows.items[at].value += row->value;
		return 0;
	}
	at = h->rows.len;
	return vec_push(&h->rows, *row) < 0 ? -ENOMEM : map_put(&h->recent, key, at);
}

static int add_row(void *context, const struct profile_sample *sample)
{
	struct heatmap *h = context;
	uint64_t since = sample->time_ns > h->profile->start_ns ? sample->time_ns - h->profile->start_ns : 0;
	struct row row = {
		.event = sample->event,
		.thread = sample->thread,
		.node = h->page_nodes[sample->node],
		.value = h->options->total ? sample->weight : sample->count,
	};
	int wanted = is_wanted(h, sample), err = 0;
	uint64_t step;

	if (wanted <= 0)
		return wanted;
	if (h->rows.len >= ROWS_MAX)
		err = make_room(h);
	step = since / ((uint64_t)steps_ms[h->step] * NS_PER_MS);
	row.step = step < UINT32_MAX ? (uint32_t)step : UINT32_MAX;
	return err ? err : put_row(h, &row);
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

/* Writes four columns: steps since the previous row, thread, node, value. */
static void put_rows(struct heatmap *h, size_t first, size_t end)
{
	const struct row *rows = h->rows.items;

	put_number(h, end - first);
	for (size_t i = first; i < end; i++)
		put_number(h, rows[i].step - (i > first ? rows[i - 1].step : 0));
	for (size_t i = first; i < end; i++)
		put_number(h, rows[i].thread);
	for (size_t i = first; i < end; i++)
		put_number(h, rows[i].node);
	for (size_t i = first; i < end; i++)
		put_number(h, rows[i].value);
}

static void put_events(struct heatmap *h)
{
	size_t first = 0, end;

	for (uint32_t event = 0; event < h->profile->events.len; event++, first = end) {
		for (end = first; end < h->rows.len && h->rows.items[end].event == event; end++)
			;
		put_rows(h, first, end);
	}
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
		put_events(h);
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

static int put_head(const void *context)
{
	const struct heatmap *h = context;

	fputs("{\"title\":", h->out);
	json_foreign(h->out, h->options->title ? h->options->title : "Heat map");
	fprintf(h->out, ",\"startMs\":%" PRIu64 ",\"stepMs\":%u", (uint64_t)(h->profile->start_realtime_ns / NS_PER_MS),
		steps_ms[h->step]);
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
	if (err)
		return err;
	err = make_room(h);
	if (err)
		return err;
	merge_rows(h);
	if (h->profile->events.len > 1 && h->rows.len)
		qsort(h->rows.items, h->rows.len, sizeof(*h->rows.items), compare_events);
	return page_write(asset_heatmap, asset_heatmap_bytes, insertions, 2, h, h->out);
}

/* Threads are chosen in the page, so they are not frames. */
static int heatmap_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = *options;
	struct heatmap h = {.profile = profile, .options = &ours, .out = out};
	int err;

	ours.style.dotted = true;
	ours.threads = ours.processes = ours.reverse = false;
	memset(ours.by, 0, sizeof(ours.by));
	err = write_page(&h);
	path_maker_release(&h.path);
	path_labels_release(&h.labels);
	free(h.page_nodes);
	free(h.wanted);
	vec_release(&h.nodes);
	map_release(&h.node_ids);
	vec_release(&h.rows);
	map_release(&h.recent);
	return err;
}

const struct writer writer_heatmap = {
	.name = "heatmap",
	.extensions = "heatmap.html",
	.help = "samples over time in one HTML file; a range opens as a flame graph",
	.has_all_events = true,
	.write = heatmap_write,
};
