/* SPDX-License-Identifier: MIT */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "readers/html/page_tree.h"
#include "readers/json_scan.h"

/* Frames of stacks that are turned round, of an event whose tree begins at the leaves: by the bytes of its data. */
#define STEPS_FREE (4u << 20)
#define STEPS_TIMES 32

struct column vec(int64_t);

/* Columns of numbers that an event has. */
enum { DEPTH, LABEL, WIDTH, TIME, LINES, MODULE, TIMES, LEAVES, WEIGHTS, COLUMNS };
static const char *const column_names[COLUMNS] = {"depth",  "label", "width",  "time",	 "lines",
						  "module", "times", "leaves", "weights"};
/* Lists of texts: every text, or pairs with a number. */
enum { KINDS, MODULES, LABELS, THREADS, LISTS };
static const char *const list_names[LISTS] = {"kinds", "modules", "labels", "threads"};

/* One event while it is read. Texts are ids in the profile's strings. */
struct event {
	struct profile *profile;
	struct buf name, unit, kind, *why;
	struct column columns[COLUMNS], texts[LISTS], counts[LISTS];
	int64_t samples, amount, period, start_ms;
	bool is_reversed;
	size_t page_bytes;
	struct page_tree tree;
	struct map frame_ids; /* label << 8 | kind -> index in `frames` */
	struct vec(struct frame) frames; /* as the labels have them */
	struct vec(uint32_t) nodes; /* by row, for single samples */
	bool has_samples;
};

static int refuse(const struct event *e, const char *text)
{
	return buf_explain(e->why, -EINVAL, "the event %s: %s", e->name.data, text);
}

/* ---- columns ---- */

static int read_column(struct json_scan *scan, struct column *ret)
{
	int err = 0;

	for (scan_enter(scan, '['); scan_more(scan, ']') && !err;)
		err = vec_push(ret, scan_integer(scan));
	return err;
}

/*
 * Reads texts, and the numbers that stand among them. Each label begins with so many bytes of the one before as its
 * number says.
 */
static int read_list(struct json_scan *scan, struct event *e, int which)
{
	BUF(text);
	BUF(whole);
	int err = 0;

	for (scan_enter(scan, '['); scan_more(scan, ']') && !err;) {
		if (scan_peek(scan) != '"') {
			err = vec_push(&e->counts[which], scan_integer(scan));
			continue;
		}
		scan_string(scan, &text);
		if (which == LABELS) {
			size_t shared =
				e->counts[which].len ? (size_t)e->counts[which].items[e->counts[which].len - 1] : 0;

			buf_cut(&whole, shared < whole.len ? shared : whole.len);
			if (whole.len < PROFILE_TEXT_MAX)
				buf_add_str(&whole, text.data);
		}
		err = vec_push(&e->texts[which],
			       intern_str(&e->profile->strings, which == LABELS ? whole.data : text.data));
		if (text.failed || whole.failed)
			err = -ENOMEM;
	}
	return err;
}

/* Facts and losses are those of the whole recording: the first event has them. */
static void read_facts(struct json_scan *scan, struct event *e, bool is_loss)
{
	BUF(first);
	BUF(second);

	for (scan_enter(scan, '['); scan_more(scan, ']');) {
		int64_t count = 0;

		scan_enter(scan, '[');
		for (int i = 0; scan_more(scan, ']'); i++)
			if (scan_peek(scan) == '"')
				scan_string(scan, i ? &second : &first);
			else
				count = scan_integer(scan);
		if (e->profile->events.len || scan->failed)
			continue;
		if (is_loss)
			profile_add_loss(e->profile, (uint64_t)count, second.data);
		else
			profile_add_fact(e->profile, first.data, "%s", second.data);
	}
}

static int find_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* Returns false for a key that is not a single value. */
static bool read_value(struct json_scan *scan, struct event *e, const char *key)
{
	const struct {
		const char *key;
		struct buf *text;
		int64_t *number;
	} values[] = {{"event", &e->name, NULL},      {"unit", &e->unit, NULL},	    {"kind", &e->kind, NULL},
		      {"samples", NULL, &e->samples}, {"amount", NULL, &e->amount}, {"period", NULL, &e->period},
		      {"start", NULL, &e->start_ms}};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		if (strcmp(key, values[i].key) != 0)
			continue;
		if (values[i].text)
			scan_string(scan, values[i].text);
		else
			*values[i].number = scan_integer(scan);
		return true;
	}
	if (strcmp(key, "reverse") != 0)
		return false;
	e->is_reversed = scan_word(scan, "true") || (scan_skip(scan), false);
	return true;
}

static int read_key(struct json_scan *scan, struct event *e, const char *key)
{
	int column = find_name(column_names, COLUMNS, key), list = find_name(list_names, LISTS, key);

	if (column >= 0)
		return read_column(scan, &e->columns[column]);
	if (list >= 0)
		return read_list(scan, e, list);
	if (!strcmp(key, "facts") || !strcmp(key, "losses"))
		read_facts(scan, e, *key == 'l');
	else if (!read_value(scan, e, key))
		scan_skip(scan);
	return 0;
}

/* ---- frames ---- */

static enum frame_kind kind_of(const struct event *e, size_t row)
{
	size_t letter = (size_t)(unsigned char)e->kind.data[row] - 'a';
	const char *name = letter < e->texts[KINDS].len
				   ? intern_text(&e->profile->strings, (uint32_t)e->texts[KINDS].items[letter])
				   : "";

	for (int kind = 0; kind < FRAME_KIND_MAX; kind++)
		if (!strcmp(frame_kind_name(kind), name))
			return (enum frame_kind)kind;
	return FRAME_NATIVE;
}

static const char *module_of(const struct event *e, size_t label)
{
	int64_t index = label < e->columns[MODULE].len ? e->columns[MODULE].items[label] : -1;

	if (index < 0 || (size_t)index >= e->texts[MODULES].len)
		return "";
	return intern_text(&e->profile->strings, (uint32_t)e->texts[MODULES].items[index]);
}

/* Returns the index of the frame of a row, or UINT32_MAX; its label is valid. */
static uint32_t frame_of(struct event *e, size_t row, int32_t line)
{
	size_t label = (size_t)e->columns[LABEL].items[row];
	enum frame_kind kind = kind_of(e, row);
	uint64_t key = (uint64_t)label << 8 | (uint64_t)kind, known = e->frames.len;
	struct frame frame;

	if (map_get(&e->frame_ids, key, &known)) {
		frame = e->frames.items[known];
	} else {
		frame = page_frame(e->profile, kind,
				   intern_text(&e->profile->strings, (uint32_t)e->texts[LABELS].items[label]),
				   module_of(e, label));
		if (map_put(&e->frame_ids, key, known) < 0 || vec_push(&e->frames, frame) < 0)
			return UINT32_MAX;
	}
	if (line && !frame.line)
		frame.line = line;
	return profile_frame(e->profile, &frame);
}

/* Returns count x period + rest, from 0 to PROFILE_COUNT_MAX. */
static uint64_t weight_of(const struct event *e, int64_t count, int64_t rest)
{
	__int128 weight = (__int128)count * e->period + rest;

	return weight < 0 ? 0 : weight > (__int128)PROFILE_COUNT_MAX ? PROFILE_COUNT_MAX : (uint64_t)weight;
}

/* A column of rows {distance from the row before, two values}. */
struct sparse {
	const struct column *column;
	size_t at;
	int64_t row; /* of the next values */
};

static void sparse_begin(struct sparse *sparse, const struct column *values)
{
	*sparse = (struct sparse){.column = values, .row = values->len ? values->items[0] : -1};
}

/* Sets the values of this row, 0 if it has none. Rows are asked for in ascending order. */
static void sparse_take(struct sparse *sparse, int64_t row, int64_t ret[2])
{
	ret[0] = ret[1] = 0;
	if (row != sparse->row || sparse->at + 2 >= sparse->column->len)
		return;
	ret[0] = sparse->column->items[sparse->at + 1];
	ret[1] = sparse->column->items[sparse->at + 2];
	sparse->at += 3;
	sparse->row = -1;
	if (sparse->at < sparse->column->len && sparse->column->items[sparse->at] > 0)
		sparse->row = row + sparse->column->items[sparse->at];
}

static bool is_row(const struct event *e, size_t row)
{
	return e->columns[LABEL].items[row] >= 0 && (size_t)e->columns[LABEL].items[row] < e->texts[LABELS].len &&
	       e->columns[WIDTH].items[row] >= 0;
}

static int add_row(struct event *e, size_t row, int64_t depth, uint64_t amount, int32_t line)
{
	uint32_t frame = frame_of(e, row, line);
	int err;

	err = page_tree_add(&e->tree, (uint32_t)depth, frame, (uint64_t)e->columns[WIDTH].items[row], amount, e->why);
	if (!err && e->has_samples) {
		uint32_t node = page_tree_node(&e->tree);

		err = node == UINT32_MAX ? -ENOMEM : vec_push(&e->nodes, node);
	}
	return err;
}

static int add_rows(struct event *e)
{
	struct sparse times, lines;
	int64_t depth = 0, time[2], line[2];
	int err = 0;

	sparse_begin(&times, &e->columns[TIME]);
	sparse_begin(&lines, &e->columns[LINES]);
	for (size_t row = 0; !err && row < e->columns[DEPTH].len; row++) {
		int64_t change = e->columns[DEPTH].items[row];

		sparse_take(&times, (int64_t)row, time);
		sparse_take(&lines, (int64_t)row, line);
		if (!is_row(e, row) || change > 1 || change < -UINT16_MAX - 1 || (depth += change) < 1)
			return refuse(e, "a frame is not whole");
		err = add_row(e, row, depth, weight_of(e, e->columns[WIDTH].items[row], time[0]),
			      !line[1] && line[0] > 0 && line[0] < INT32_MAX ? (int32_t)line[0] : 0);
	}
	return err;
}

/* ---- single samples ---- */

/* "java 12/34 main", as writer_thread_text() writes it */
static uint32_t thread_of(struct event *e, const char *text)
{
	const char *digits = text, *end;
	unsigned long pid, tid = PROFILE_VIRTUAL;
	char process[256];

	for (;; digits++) {
		digits = strchr(digits, ' ');
		if (!digits)
			return profile_thread(e->profile, 0, 0, text, "", 0);
		if (!isdigit((unsigned char)digits[1]))
			continue;
		pid = strtoul(digits + 1, (char **)&end, 10);
		if (*end == '/' && isdigit((unsigned char)end[1]))
			tid = strtoul(end + 1, (char **)&end, 10);
		if (*end == ' ')
			break;
		tid = PROFILE_VIRTUAL;
	}
	snprintf(process, sizeof(process), "%.*s", (int)(digits - text), text);
	return profile_thread(e->profile, (uint32_t)pid, (uint32_t)tid, end + 1, process, 0);
}

struct samples {
	struct event *event;
	struct sparse weights;
	size_t thread; /* index in the list */
	int64_t left; /* samples of this thread that follow */
	uint64_t all; /* weight of the samples so far */
	uint64_t time_us;
	uint32_t row; /* in profile.threads */
};

/* Goes on to the thread of the next sample. */
static int next_thread(struct samples *s)
{
	const struct event *e = s->event;

	while (!s->left) {
		if (s->thread >= e->texts[THREADS].len || s->thread >= e->counts[THREADS].len)
			return refuse(e, "a sample has no thread");
		s->left = e->counts[THREADS].items[s->thread];
		s->row = thread_of(s->event,
				   intern_text(&e->profile->strings, (uint32_t)e->texts[THREADS].items[s->thread++]));
		s->time_us = 0;
		if (s->left < 0)
			return refuse(e, "a thread has less than no samples");
		if (s->row == UINT32_MAX)
			return -ENOMEM;
	}
	s->left--;
	return 0;
}

static int add_sample(struct samples *s, size_t i)
{
	struct event *e = s->event;
	int64_t leaf = e->columns[LEAVES].items[i] / 2 - 1, weight[2];
	int err = next_thread(s);

	if (err < 0)
		return err;
	sparse_take(&s->weights, (int64_t)i, weight);
	if (leaf < -1 || leaf >= (int64_t)e->nodes.len || e->columns[TIMES].items[i] < 0 || weight[0] < 0 ||
	    weight[0] >= UINT32_MAX)
		return refuse(e, "a sample is not whole");
	s->all += weight_of(e, weight[0] + 1, weight[1]);
	if (s->all > PROFILE_COUNT_MAX)
		return refuse(e, "its samples weigh more than duet counts");
	s->time_us += (uint64_t)e->columns[TIMES].items[i];
	return profile_add(e->profile, &(struct profile_sample){
					       .time_ns = (uint64_t)e->start_ms * NS_PER_MS + s->time_us * NS_PER_US,
					       .weight = weight_of(e, weight[0] + 1, weight[1]),
					       .thread = s->row,
					       .node = leaf < 0 ? 0 : e->nodes.items[leaf],
					       .count = (uint32_t)weight[0] + 1,
					       .event = e->tree.event,
				       });
}

static int add_samples(struct event *e)
{
	struct samples s = {.event = e};
	int err = 0;

	sparse_begin(&s.weights, &e->columns[WEIGHTS]);
	for (size_t i = 0; !err && i < e->columns[LEAVES].len; i++) {
		err = add_sample(&s, i);
		if (!err && (uint64_t)e->start_ms * NS_PER_MS + s.time_us * NS_PER_US > e->profile->end_ns)
			e->profile->end_ns = (uint64_t)e->start_ms * NS_PER_MS + s.time_us * NS_PER_US;
	}
	return err;
}

/* ---- an event ---- */

static enum profile_unit unit_of(const struct event *e)
{
	return !strcmp(e->unit.data, "ns")	? PROFILE_NS
	       : !strcmp(e->unit.data, "bytes") ? PROFILE_BYTES
						: PROFILE_COUNT;
}

/* Single samples replace those of the tree, which has no times: it is built into nothing but nodes then. */
static int build(struct event *e)
{
	size_t rows = e->columns[DEPTH].len;
	int err;

	if (!rows && !e->name.len)
		return 0; /* of a recording without events */
	if (e->columns[LABEL].len != rows || e->columns[WIDTH].len != rows || e->kind.len != rows)
		return refuse(e, "its columns have different lengths");
	if (e->samples < 0 || e->amount < 0 || e->period < 0 || e->start_ms < 0 || e->start_ms > INT64_MAX / 4000000)
		return refuse(e, "a number is negative");
	e->has_samples = e->columns[LEAVES].len && e->columns[TIMES].len == e->columns[LEAVES].len;
	e->tree.profile = e->profile;
	e->tree.is_reversed = e->is_reversed;
	e->tree.steps_left = STEPS_FREE + STEPS_TIMES * e->page_bytes;
	e->tree.is_dry = e->has_samples;
	e->tree.thread = profile_thread(e->profile, 0, 0, "", "", 0);
	e->tree.event = profile_event(e->profile, e->name.data, unit_of(e), (uint64_t)e->period);
	if (e->tree.event == UINT32_MAX || e->tree.thread == UINT32_MAX)
		return e->profile->events.len >= PROFILE_EVENTS_MAX ? refuse(e, "one event too many") : -ENOMEM;
	if (e->has_samples)
		e->profile->start_ns = e->profile->start_realtime_ns = (uint64_t)e->start_ms * NS_PER_MS;
	err = page_tree_init(&e->tree, (uint64_t)e->samples, (uint64_t)e->amount);
	if (!err)
		err = add_rows(e);
	if (!err)
		err = page_tree_end(&e->tree, e->why);
	return !err && e->has_samples ? add_samples(e) : err;
}

static void event_release(struct event *e)
{
	for (int i = 0; i < COLUMNS; i++)
		vec_release(&e->columns[i]);
	for (int i = 0; i < LISTS; i++) {
		vec_release(&e->texts[i]);
		vec_release(&e->counts[i]);
	}
	page_tree_release(&e->tree);
	map_release(&e->frame_ids);
	vec_release(&e->frames);
	vec_release(&e->nodes);
	buf_release(&e->name);
	buf_release(&e->unit);
	buf_release(&e->kind);
}

static int read_event(struct json_scan *scan, struct profile *profile, struct buf *key, struct buf *why)
{
	struct event e = {.profile = profile, .name = BUF_NONE, .unit = BUF_NONE, .kind = BUF_NONE, .why = why};
	const char *start = scan->at;
	int err = 0;

	for (scan_enter(scan, '{'); scan_more(scan, '}') && !err;) {
		scan_key(scan, key);
		err = scan->failed ? 0 : read_key(scan, &e, key->data);
	}
	e.page_bytes = (size_t)(scan->at - start);
	if (!err && !scan->failed)
		err = build(&e);
	event_release(&e);
	return err;
}

int html_duet_read(struct profile *profile, const char *json, size_t len, struct buf *why)
{
	struct json_scan scan = {.start = json, .at = json, .end = json + len};
	BUF(key);
	int err = 0;

	profile->processes = PROFILE_NEVER;
	for (scan_enter(&scan, '['); scan_more(&scan, ']') && !err;)
		err = read_event(&scan, profile, &key, why);
	if (err || !scan.failed)
		return err;
	return buf_explain(why, -EINVAL, "the page's data are not as duet writes them, at byte %zu of them",
			   (size_t)(scan.at - scan.start));
}
