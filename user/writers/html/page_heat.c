/* SPDX-License-Identifier: MIT */
#include "writers/html/page_heat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/varint.h"
#include "writers/gzip.h"
#include "writers/html/heat_rows.h"
#include "writers/json.h"
#include "writers/writers.h"

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
	FILE *out;
	uint64_t own, all; /* number of samples of this event, and of all */
	struct heat_rows tables[TABLES]; /* keys: thread << 32 | page_leaf(), each 0 where the table has none */
	struct gzip gzip;
};

/* ---- rows ---- */

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
		    heat_rows_step_ms(&h->tables[other]) == heat_rows_step_ms(&h->tables[number]))
			return false;
	return true;
}

/* ---- the compressed part ---- */

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
		write_base64((unsigned char *)packed, len, h->out);
	free(packed);
	return err;
}

/* ---- the rest ---- */

static void put_threads(const struct heat *h)
{
	struct buf text;

	buf_init(&text);
	for (uint32_t i = 0; i < h->of->profile->threads.len; i++) {
		buf_clear(&text);
		writer_thread_text(h->of->profile, i, &text);
		fputs(i ? "," : "", h->out);
		json_foreign(h->out, text.data);
	}
	buf_release(&text);
}

/* The tables in the order in which put_data() writes them. */
static void put_tables(const struct heat *h)
{
	const char *comma = "";

	for (enum table number = 0; number < TABLES; number++) {
		if (!is_written(h, number))
			continue;
		fprintf(h->out, "%s{\"stepMs\":%u,\"hasThreads\":%s,\"hasStacks\":%s,\"rows\":%zu}", comma,
			heat_rows_step_ms(&h->tables[number]), kinds[number].has_threads ? "true" : "false",
			kinds[number].has_stacks ? "true" : "false", h->tables[number].rows.len);
		comma = ",";
	}
}

int page_heat_write(const struct page_samples *samples, FILE *out)
{
	struct heat *h = calloc(1, sizeof(*h)); /* large: the stack may be small */
	int err;

	if (!h)
		return -ENOMEM;
	h->of = samples;
	h->out = out;
	err = share_rows(h);
	if (!err)
		err = timeline_each(&samples->profile->samples, add_row, h);
	for (enum table number = 0; !err && number < TABLES; number++)
		err = heat_rows_finish(&h->tables[number]);
	if (!err) {
		fprintf(out, ",\n\"start\":%" PRIu64 ",\"heat\":{\"threads\":[",
			(uint64_t)(samples->profile->start_realtime_ns / NS_PER_MS));
		put_threads(h);
		fputs("],\n\"tables\":[", out);
		put_tables(h);
		fputs("],\n\"rows\":\"", out);
		err = put_data(h);
		fputs("\"}", out);
	}
	for (enum table number = 0; number < TABLES; number++)
		heat_rows_release(&h->tables[number]);
	free(h);
	return err;
}
