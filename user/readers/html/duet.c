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
#include "base/text.h"
#include "readers/html/page_tree.h"
#include "readers/reader.h"

/*
 * Reads JSON from memory, value by value, without a tree of it:
 *
 *	scan_enter(&scan, '[');
 *	while (scan_more(&scan, ']'))
 *		number = scan_integer(&scan);
 *
 * After the first error nothing is read any more: loops end, and numbers are 0. The caller tests `failed` at the end.
 */
struct json_scan {
	const char *start, *at, *end;
	bool is_first; /* of the innermost list or object */
	bool failed; /* the text is not JSON of the expected form; `at` is the place */
};

#define DEPTH_MAX 64

static void fail(struct json_scan *scan)
{
	scan->failed = true;
}

/* The first character of the next value; 0 at the end. */
static char scan_peek(struct json_scan *scan)
{
	while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) && *scan->at)
		scan->at++;
	return scan->at < scan->end && !scan->failed ? *scan->at : '\0';
}

static bool take(struct json_scan *scan, char c)
{
	if (scan_peek(scan) != c || !c)
		return false;
	scan->at++;
	return true;
}

static void scan_enter(struct json_scan *scan, char open)
{
	if (!take(scan, open))
		fail(scan);
	scan->is_first = true;
}

/* True if a value, or a key, follows. */
static bool scan_more(struct json_scan *scan, char close)
{
	bool is_first = scan->is_first;

	scan->is_first = false;
	if (take(scan, close))
		return false;
	if (!scan_peek(scan) || (!is_first && !take(scan, ',')))
		fail(scan);
	return !scan->failed;
}

static uint32_t hex(struct json_scan *scan)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++, scan->at++) {
		char c = scan->at < scan->end ? *scan->at : '\0';

		if (!isxdigit((unsigned char)c)) {
			fail(scan);
			return 0;
		}
		value = value << 4 | (uint32_t)(isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

/* The character behind "\u", which may be two of UTF-16; a lone half becomes '?'. */
static uint32_t escaped_character(struct json_scan *scan)
{
	uint32_t high = hex(scan), low;

	if ((high & 0xfc00) != 0xd800)
		return (high & 0xfc00) == 0xdc00 || !high ? '?' : high;
	if (scan->end - scan->at < 6 || scan->at[0] != '\\' || scan->at[1] != 'u')
		return '?';
	scan->at += 2;
	low = hex(scan);
	return (low & 0xfc00) == 0xdc00 ? 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff)) : '?';
}

static void take_escape(struct json_scan *scan, struct buf *text)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	char c = scan->at < scan->end ? *scan->at++ : '\0';
	const char *found = c ? strchr(from, c) : NULL;

	if (c == 'u')
		text_add_utf8(text, escaped_character(scan));
	else if (found)
		buf_add_char(text, to[found - from]);
	else if (c == '"' || c == '\\' || c == '/')
		buf_add_char(text, c);
	else
		fail(scan);
}

/* Sets `text` to the next string. Its characters may be any but NUL, which becomes '?'. */
static void scan_string(struct json_scan *scan, struct buf *text)
{
	buf_clear(text);
	if (!take(scan, '"'))
		fail(scan);
	while (!scan->failed && scan->at < scan->end && *scan->at != '"') {
		const char *run = scan->at;

		while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\\' && *scan->at)
			scan->at++;
		buf_add(text, run, (size_t)(scan->at - run));
		if (scan->at == scan->end || *scan->at == '"')
			break;
		if (*scan->at++)
			take_escape(scan, text);
		else
			buf_add_char(text, '?');
	}
	if (scan->failed || scan->at == scan->end)
		return fail(scan);
	scan->at++;
}

static void scan_key(struct json_scan *scan, struct buf *text)
{
	scan_string(scan, text);
	if (!take(scan, ':'))
		fail(scan);
}

static int64_t scan_integer(struct json_scan *scan)
{
	uint64_t value = 0;
	bool is_negative = take(scan, '-');

	if (!isdigit((unsigned char)scan_peek(scan)))
		fail(scan);
	for (; scan->at < scan->end && isdigit((unsigned char)*scan->at); scan->at++) {
		if (value > (uint64_t)INT64_MAX / 10 - 1)
			fail(scan);
		value = scan->failed ? 0 : value * 10 + (uint64_t)(*scan->at - '0');
	}
	if (scan->at < scan->end && strchr(".eE", *scan->at) && *scan->at)
		fail(scan);
	return scan->failed ? 0 : is_negative ? -(int64_t)value : (int64_t)value;
}

/* Takes "true", "false" or "null" if it is this word. */
static bool scan_word(struct json_scan *scan, const char *word)
{
	size_t len = strlen(word);

	if (scan_peek(scan) != *word || (size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len))
		return false;
	scan->at += len;
	return true;
}

static void skip_string(struct json_scan *scan)
{
	for (scan->at++; scan->at < scan->end && *scan->at != '"'; scan->at++)
		scan->at += *scan->at == '\\' && scan->at + 1 < scan->end;
	scan->at += scan->at < scan->end;
}

/* Lists and objects are counted, not checked: what is skipped may be anything. */
static void scan_skip(struct json_scan *scan)
{
	int depth = 0;

	do {
		char c = scan_peek(scan);

		if (!c || depth > DEPTH_MAX)
			return fail(scan);
		if (c == '"') {
			skip_string(scan);
			continue;
		}
		if (!depth && strchr(",]}:", c))
			return fail(scan);
		depth += c == '[' || c == '{';
		depth -= c == ']' || c == '}';
		scan->at++;
		if (!strchr("[]{},:", c))
			while (scan->at < scan->end && !strchr("[]{},:\" \t\r\n", *scan->at))
				scan->at++;
	} while (depth);
}

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
	struct page_tree tree;
	struct map frames; /* label << 8 | kind, of frames without a line -> index */
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
	uint64_t key = (uint64_t)label << 8 | (uint64_t)kind, known;
	struct frame frame;
	uint32_t index;

	if (!line && map_get(&e->frames, key, &known))
		return (uint32_t)known;
	frame = page_frame(e->profile, kind, intern_text(&e->profile->strings, (uint32_t)e->texts[LABELS].items[label]),
			   module_of(e, label));
	if (line && !frame.line)
		frame.line = line;
	index = profile_frame(e->profile, &frame);
	if (!line && index != UINT32_MAX && map_put(&e->frames, key, index) < 0)
		return UINT32_MAX;
	return index;
}

/* Returns count x period + rest, from 0 to READER_SUM_MAX. */
static uint64_t weight_of(const struct event *e, int64_t count, int64_t rest)
{
	__int128 weight = (__int128)count * e->period + rest;

	return weight < 0 ? 0 : weight > (__int128)READER_SUM_MAX ? READER_SUM_MAX : (uint64_t)weight;
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
	if (s->all > READER_SUM_MAX)
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
	map_release(&e->frames);
	vec_release(&e->nodes);
	buf_release(&e->name);
	buf_release(&e->unit);
	buf_release(&e->kind);
}

static int read_event(struct json_scan *scan, struct profile *profile, struct buf *key, struct buf *why)
{
	struct event e = {.profile = profile, .name = BUF_NONE, .unit = BUF_NONE, .kind = BUF_NONE, .why = why};
	int err = 0;

	for (scan_enter(scan, '{'); scan_more(scan, '}') && !err;) {
		scan_key(scan, key);
		err = scan->failed ? 0 : read_key(scan, &e, key->data);
	}
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
