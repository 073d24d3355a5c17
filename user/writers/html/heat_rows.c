/* SPDX-License-Identifier: MIT */
#include "writers/html/heat_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

/*
 * Milliseconds. Each step divides the next one. Each also divides a second, a minute, an hour or a day, of which a
 * column of the page is made.
 */
static const uint32_t steps_ms[] = {10,	   20,	   100,	   200,	    1000,    2000,    10000,	20000,
				    60000, 120000, 600000, 1200000, 3600000, 7200000, 21600000, 43200000};
#define STEPS (sizeof(steps_ms) / sizeof(*steps_ms))

void heat_rows_release(struct heat_rows *table)
{
	map_release(&table->ids);
	vec_release(&table->series);
	vec_release(&table->rows);
}

uint32_t heat_rows_step_ms(const struct heat_rows *table)
{
	return steps_ms[table->step];
}

int64_t heat_rows_series(struct heat_rows *table, uint64_t key)
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

	return (x->step > y->step) - (x->step < y->step);
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

/* The rows of a series: recordings are in the order of time, but merged ones need not be. */
static void order_by_step(struct heat_row *rows, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (rows[i].step < rows[i - 1].step) {
			qsort(rows, count, sizeof(*rows), compare_steps);
			return;
		}
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

static void order_steps(struct heat_rows *table)
{
	struct heat_row *rows = table->rows.items;
	size_t end;

	for (size_t first = 0; first < table->rows.len; first = end) {
		for (end = first + 1; end < table->rows.len && rows[end].series == rows[first].series;)
			end++;
		order_by_step(rows + first, end - first);
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

int heat_rows_finish(struct heat_rows *table)
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

int heat_rows_add(struct heat_rows *table, uint32_t series, uint64_t since_ns, const struct profile_sample *sample)
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
