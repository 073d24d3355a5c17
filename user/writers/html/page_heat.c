/* SPDX-License-Identifier: MIT */
#include "writers/html/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/varint.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "writers/gzip.h"
#include "writers/writer.h"

/*
 * How much of each series fell into each step of time, in rows of {series, step, samples, weight}. What a series is,
 * its key says: a thread, a stack. Steps are as short as the number of rows allows: the table of a day has
 * longer ones than that of a minute.
 */
struct heat_row {
	uint32_t series, step;
	uint64_t samples, weight;
};

struct heat_series {
	uint64_t key;
	uint64_t samples, weight; /* in the step that was added to last, which has no row yet */
	uint32_t step;
	uint32_t end; /* after heat_rows_finish(): one past the last of its rows */
};

/* Zeros with `rows_max` are an empty table. */
struct heat_rows {
	size_t rows_max; /* set by the caller: before rows are merged; the finished table has at most half of it */
	size_t room; /* number of rows at which they are merged next, 0: rows_max */
	size_t step; /* index in steps_ms */
	uint64_t from_ns, to_ns; /* the moments of the step `current`, which was added to last */
	uint32_t current;
	struct map ids; /* key -> series */
	struct vec(struct heat_series) series;
	struct vec(struct heat_row) rows;
};

/*
 * Milliseconds. Each step divides the next one. Each also divides a second, a minute, an hour or a day, of which a
 * column of the page is made.
 */
static const uint32_t steps_ms[] = {10,	   20,	   100,	   200,	    1000,    2000,    10000,	20000,
				    60000, 120000, 600000, 1200000, 3600000, 7200000, 21600000, 43200000};
#define STEPS (sizeof(steps_ms) / sizeof(*steps_ms))

/* Returns the number of the series, a new one if need be, or -ENOMEM. */
static int64_t heat_rows_series(struct heat_rows *table, uint64_t key)
{
	uint64_t id;

	if (map_get(&table->ids, key, &id))
		return (int64_t)id;
	id = table->series.len;
	if (vec_push(&table->series, (struct heat_series){.key = key}) < 0 || map_put(&table->ids, key, id) < 0)
		return -ENOMEM;
	return (int64_t)id;
}

static uint32_t longer_step(const struct heat_rows *table, uint32_t step, size_t to)
{
	return (uint32_t)((uint64_t)step * steps_ms[table->step] / steps_ms[to]);
}

static int compare_steps(const void *a, const void *b)
{
	const struct heat_row *x = a, *y = b;

	return vec_order(x->step, y->step);
}

/* Sets `end` of each series to where its rows end when they are in the order of series. */
static void number_ends(struct heat_rows *table)
{
	uint32_t end = 0;

	for (size_t i = 0; i < table->series.len; i++)
		table->series.items[i].end = 0;
	for (size_t i = 0; i < table->rows.len; i++)
		table->series.items[table->rows.items[i].series].end++;
	for (size_t i = 0; i < table->series.len; i++)
		end = table->series.items[i].end += end;
}

/* Orders the rows by series; those of a series stay in the order of adding. Returns 0 or -ENOMEM. */
static int order_by_series(struct heat_rows *table)
{
	struct heat_row *ordered = malloc(table->rows.len * sizeof(*ordered) + 1);

	if (!ordered)
		return -ENOMEM;
	number_ends(table);
	for (size_t i = table->rows.len; i-- > 0;) {
		const struct heat_row *row = &table->rows.items[i];

		ordered[--table->series.items[row->series].end] = *row;
	}
	free(table->rows.items);
	table->rows.items = ordered;
	table->rows.size = table->rows.len;
	return 0;
}

static void merge_rows(struct heat_rows *table)
{
	struct heat_row *rows = table->rows.items;
	size_t kept = 0;

	for (size_t i = 1; i < table->rows.len; i++) {
		if (rows[kept].series == rows[i].series && rows[kept].step == rows[i].step) {
			rows[kept].samples += rows[i].samples;
			rows[kept].weight += rows[i].weight;
		} else {
			rows[++kept] = rows[i];
		}
	}
	if (table->rows.len)
		table->rows.len = kept + 1;
	number_ends(table);
}

/* Returns the index in steps_ms of the shortest steps with which both are one. */
static size_t common_step(const struct heat_rows *table, uint32_t a, uint32_t b)
{
	size_t step = table->step;

	while (step + 1 < STEPS && longer_step(table, a, step) != longer_step(table, b, step))
		step++;
	return step;
}

/* Returns the index of the shortest steps that leave half of the room free. */
static size_t find_step(const struct heat_rows *table)
{
	size_t merged[STEPS] = {0}, left = table->rows.len, step = table->step;

	for (size_t i = 1; i < table->rows.len; i++) {
		const struct heat_row *row = &table->rows.items[i];

		if (row->series == row[-1].series)
			merged[common_step(table, row[-1].step, row->step)]++;
	}
	while (step + 1 < STEPS && left > table->rows_max / 2)
		left -= merged[++step];
	return step;
}

/* Makes a row of what the series has in its last step. */
static int close_step(struct heat_rows *table, uint32_t series)
{
	struct heat_series *one = &table->series.items[series];

	if ((one->samples || one->weight) &&
	    vec_push(&table->rows, (struct heat_row){series, one->step, one->samples, one->weight}) < 0)
		return -ENOMEM;
	one->samples = one->weight = 0;
	return 0;
}

/* Orders the rows of each series: recordings are in the order of time, but merged ones need not be. */
static void order_steps(struct heat_rows *table)
{
	struct heat_row *rows = table->rows.items;
	size_t end;

	for (size_t first = 0; first < table->rows.len; first = end) {
		bool is_ordered = true;

		for (end = first + 1; end < table->rows.len && rows[end].series == rows[first].series; end++)
			is_ordered &= rows[end - 1].step <= rows[end].step;
		if (!is_ordered)
			qsort(rows + first, end - first, sizeof(*rows), compare_steps);
	}
}

static void make_longer(struct heat_rows *table, size_t to)
{
	for (size_t i = 0; i < table->rows.len; i++)
		table->rows.items[i].step = longer_step(table, table->rows.items[i].step, to);
	table->step = to;
	table->from_ns = table->to_ns = 0;
	merge_rows(table);
}

/*
 * Orders the rows by series and then by step, merges equal ones and makes the steps as long as it takes. To be called
 * once, after the last heat_rows_add(). Returns 0 or -ENOMEM.
 */
static int heat_rows_finish(struct heat_rows *table)
{
	size_t to;

	for (uint32_t i = 0; i < table->series.len; i++)
		if (close_step(table, i) < 0)
			return -ENOMEM;
	if (order_by_series(table) < 0)
		return -ENOMEM;
	order_steps(table);
	merge_rows(table);
	to = find_step(table);
	if (to != table->step)
		make_longer(table, to);
	/* more series than rows are wanted: twice as many, so that they are not merged again for each sample */
	table->room = table->rows.len > table->rows_max / 2 ? 2 * table->rows.len : table->rows_max;
	return 0;
}

static uint32_t step_of(struct heat_rows *table, uint64_t since_ns)
{
	uint64_t step_ns = (uint64_t)steps_ms[table->step] * NS_PER_MS, step;

	if (since_ns < table->from_ns || since_ns >= table->to_ns) {
		step = since_ns / step_ns;
		table->current = step < UINT32_MAX ? (uint32_t)step : UINT32_MAX;
		table->from_ns = step * step_ns;
		table->to_ns = table->from_ns + step_ns;
	}
	return table->current;
}

/* Adds the sample to the series, in the step of `since_ns`. Returns 0 or -ENOMEM. */
static int heat_rows_add(struct heat_rows *table, uint32_t series, uint64_t since_ns,
			 const struct profile_sample *sample)
{
	uint32_t step = step_of(table, since_ns);
	struct heat_series *one = &table->series.items[series];

	if (one->step != step) {
		if (close_step(table, series) < 0)
			return -ENOMEM;
		if (table->rows.len >= (table->room ? table->room : table->rows_max)) {
			if (heat_rows_finish(table) < 0)
				return -ENOMEM;
			step = step_of(table, since_ns);
		}
		one->step = step;
	}
	one->samples += sample->count;
	one->weight += sample->weight;
	return 0;
}

/* Of all events together, before rows are merged; the page has at most half of them. */
#define ROWS_MAX 2000000
#define ROWS_MAX_ALL 4000000

enum table { BY_TIME, BY_THREAD, BY_STACK, BY_ALL, TABLES };

static const struct table_kind {
	size_t rows_max;
	bool has_threads, has_stacks;
} kinds[TABLES] = {
	[BY_TIME] = {ROWS_MAX, false, false},
	[BY_THREAD] = {ROWS_MAX, true, false},
	[BY_STACK] = {ROWS_MAX, false, true},
	[BY_ALL] = {ROWS_MAX_ALL, true, true},
};

struct heat {
	const struct page_samples *of;
	struct json *json;
	uint64_t own, all; /* number of samples of this event, and of all */
	struct heat_rows tables[TABLES]; /* keys: thread << 32 | page_leaf(), each 0 where the table has none */
	struct gzip gzip;
};

static int count_sample(void *context, const struct profile_sample *sample)
{
	struct heat *h = context;

	h->all++;
	h->own += sample->event == h->of->event;
	return 0;
}

/* Each event has as many of the rows as it has of the samples. */
static int share_rows(struct heat *h)
{
	int err = timeline_each(&h->of->profile->samples, count_sample, h);

	for (enum table number = 0; number < TABLES; number++) {
		double rows = (double)kinds[number].rows_max * (double)h->own / (double)(h->all + !h->all);

		h->tables[number].rows_max = (size_t)rows + 2;
	}
	return err;
}

static int add_row(void *context, const struct profile_sample *sample)
{
	struct heat *h = context;
	uint64_t start_ns = h->of->profile->start_ns;
	uint64_t since_ns = sample->time_ns > start_ns ? sample->time_ns - start_ns : 0;
	int64_t node = sample->event == h->of->event ? tree_leaf(h->of->tree, sample) : -ENOENT;

	for (enum table number = 0; node >= 0 && number < TABLES; number++) {
		struct heat_rows *table = &h->tables[number];
		uint64_t key = (kinds[number].has_threads ? (uint64_t)sample->thread << 32 : 0) |
			       (kinds[number].has_stacks ? page_leaf(h->of, (uint32_t)node) : 0);
		int64_t series = heat_rows_series(table, key);

		if (series < 0 || heat_rows_add(table, (uint32_t)series, since_ns, sample) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The page does without a table when one that says more has the same steps. */
static bool is_written(const struct heat *h, enum table number)
{
	for (enum table other = number + 1; other < TABLES; other++)
		if (kinds[other].has_threads >= kinds[number].has_threads &&
		    kinds[other].has_stacks >= kinds[number].has_stacks &&
		    steps_ms[h->tables[other].step] == steps_ms[h->tables[number].step])
			return false;
	return true;
}

static void put_number(struct heat *h, uint64_t number)
{
	unsigned char bytes[VARINT_BYTES];

	gzip_add(&h->gzip, bytes, varint_put(bytes, number));
}

static void put_series(struct heat *h, enum table number)
{
	const struct heat_rows *table = &h->tables[number];
	uint32_t first = 0;

	put_number(h, table->series.len);
	for (size_t i = 0; i < table->series.len; i++) {
		const struct heat_series *one = &table->series.items[i];

		if (kinds[number].has_threads)
			put_number(h, one->key >> 32);
		if (kinds[number].has_stacks)
			put_number(h, (uint32_t)one->key);
		put_number(h, one->end - first);
		first = one->end;
	}
}

static void put_rows(struct heat *h, enum table number)
{
	const struct heat_rows *table = &h->tables[number];
	const struct heat_row *rows = table->rows.items;

	put_series(h, number);
	for (size_t i = 0; i < table->rows.len; i++)
		put_number(h, rows[i].step - (i && rows[i - 1].series == rows[i].series ? rows[i - 1].step : 0));
	for (size_t i = 0; i < table->rows.len; i++)
		put_number(h, rows[i].samples);
	for (size_t i = 0; i < table->rows.len; i++) {
		int64_t rest = (int64_t)(rows[i].weight - rows[i].samples * h->of->period);

		put_number(h, rest < 0 ? 2 * (uint64_t)-rest - 1 : 2 * (uint64_t)rest);
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

static int put_data(struct heat *h)
{
	char *packed = NULL;
	size_t len;
	FILE *stream = open_memstream(&packed, &len);
	int err = stream ? gzip_open(&h->gzip, stream) : -ENOMEM;

	if (!err) {
		for (enum table number = 0; number < TABLES; number++)
			if (is_written(h, number))
				put_rows(h, number);
		gzip_close(&h->gzip);
	}
	if (stream && fclose(stream) == EOF)
		err = -ENOMEM;
	if (!err)
		write_base64((unsigned char *)packed, len, h->json->out);
	free(packed);
	return err;
}

static void put_threads(const struct heat *h)
{
	BUF(text);

	for (uint32_t i = 0; i < h->of->profile->threads.len; i++) {
		buf_clear(&text);
		writer_thread_text(h->of->profile, i, &text);
		json_foreign(h->json, text.data);
	}
}

/* The tables in the order in which put_data() writes them. */
static void put_tables(const struct heat *h)
{
	for (enum table number = 0; number < TABLES; number++)
		if (is_written(h, number))
			json_put(h->json, "{\"stepMs\":%u,\"hasThreads\":%s,\"hasStacks\":%s,\"rows\":%zu}",
				 steps_ms[h->tables[number].step], kinds[number].has_threads ? "true" : "false",
				 kinds[number].has_stacks ? "true" : "false", h->tables[number].rows.len);
}

int page_heat_write(const struct page_samples *samples, struct json *json)
{
	struct heat *h = calloc(1, sizeof(*h)); /* large: the stack may be small */
	int err;

	if (!h)
		return -ENOMEM;
	h->of = samples;
	h->json = json;
	err = share_rows(h);
	if (!err)
		err = timeline_each(&samples->profile->samples, add_row, h);
	for (enum table number = 0; !err && number < TABLES; number++)
		err = heat_rows_finish(&h->tables[number]);
	if (!err) {
		json_put(json, "\n\"start\":%" PRIu64, (uint64_t)(samples->profile->start_realtime_ns / NS_PER_MS));
		json_begin(json, "\"heat\":{\"threads\":[");
		put_threads(h);
		json_end(json, "]");
		json_begin(json, "\n\"tables\":[");
		put_tables(h);
		json_end(json, "]");
		json_begin(json, "\n\"rows\":\"");
		err = put_data(h);
		json_end(json, "\"}");
	}
	for (enum table number = 0; number < TABLES; number++) {
		map_release(&h->tables[number].ids);
		vec_release(&h->tables[number].series);
		vec_release(&h->tables[number].rows);
	}
	free(h);
	return err;
}
