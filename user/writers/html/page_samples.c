/* SPDX-License-Identifier: MIT */
#include "writers/html/page.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/vec.h"
#include "writers/writer.h"

struct row {
	const struct profile_sample *sample;
	uint32_t leaf; /* twice the row of the page, plus 1 if the stack ends there */
};

struct columns {
	const struct page_samples *of;
	struct json *json;
	struct vec(struct row) rows;
};

uint32_t page_leaf(const struct page_samples *of, uint32_t node)
{
	uint32_t ends_here = 1;

	while (node && !of->rows[node]) {
		node = of->tree->nodes.items[node].parent;
		ends_here = 0;
	}
	return of->rows[node] << 1 | ends_here;
}

static int collect_rows(struct columns *columns)
{
	const struct page_samples *of = columns->of;

	for (size_t i = 0; i < of->ordered->samples.len; i++) {
		const struct profile_sample *sample = &of->ordered->samples.items[i];
		int64_t node = sample->event == of->event ? tree_leaf(of->tree, sample) : -ENOENT;

		if (node >= 0 && vec_push(&columns->rows, (struct row){sample, page_leaf(of, (uint32_t)node)}) < 0)
			return -ENOMEM;
	}
	return 0;
}

static uint32_t thread_of(const struct columns *columns, size_t i)
{
	return ordered_thread(columns->of->ordered, columns->rows.items[i].sample);
}

static bool is_first_of_thread(const struct columns *columns, size_t i)
{
	return !i || thread_of(columns, i) != thread_of(columns, i - 1);
}

static void write_threads(const struct columns *columns)
{
	size_t first = 0;
	BUF(text);

	json_begin(columns->json, "\n\"threads\":[");
	for (size_t i = 1; i <= columns->rows.len; i++) {
		if (i < columns->rows.len && !is_first_of_thread(columns, i))
			continue;
		buf_clear(&text);
		writer_thread_text(columns->of->profile, thread_of(columns, first), &text);
		json_foreign(columns->json, text.data);
		json_put(columns->json, "%zu", i - first);
		first = i;
	}
	json_end(columns->json, "]");
}

/* A sample's time may be before the start: of a part of a recording, or of one that others have made. */
static uint64_t microseconds(const struct columns *columns, size_t i)
{
	uint64_t start = columns->of->profile->start_ns, time = columns->rows.items[i].sample->time_ns;

	return time > start ? (time - start) / NS_PER_US : 0;
}

static void write_times(const struct columns *columns)
{
	json_begin(columns->json, "\n\"times\":[");
	for (size_t i = 0; i < columns->rows.len; i++) {
		uint64_t before = is_first_of_thread(columns, i) ? 0 : microseconds(columns, i - 1);

		json_put(columns->json, "%" PRIu64, microseconds(columns, i) - before);
	}
	json_end(columns->json, "]");
}

static void write_weights(const struct columns *columns)
{
	size_t before = 0;

	json_begin(columns->json, "\n\"weights\":[");
	for (size_t i = 0; i < columns->rows.len; i++) {
		const struct profile_sample *sample = columns->rows.items[i].sample;
		int64_t rest = (int64_t)(sample->weight - sample->count * columns->of->period);

		if (sample->count == 1 && !rest)
			continue;
		json_put(columns->json, "%zu,%u,%" PRId64, i - before, sample->count - 1, rest);
		before = i;
	}
	json_end(columns->json, "]");
}

int page_samples_write(const struct page_samples *samples, struct json *json)
{
	struct columns columns = {.of = samples, .json = json};
	int err = collect_rows(&columns);

	if (!err) {
		json_put(json, "\n\"start\":%" PRIu64, (uint64_t)(samples->profile->start_realtime_ns / NS_PER_MS));
		write_threads(&columns);
		write_times(&columns);
		JSON_ARRAY(json, "\n\"leaves\":[", columns.rows.len, "%u", columns.rows.items[i].leaf);
		write_weights(&columns);
	}
	vec_release(&columns.rows);
	return err;
}
