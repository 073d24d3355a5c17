/* SPDX-License-Identifier: MIT */
/*
 * How much of each series fell into each step of time, in rows of {series, step, samples, weight}. What a series is,
 * its key says: a thread, a stack. Steps are as short as the number of rows allows: the table of a day has
 * longer ones than that of a minute.
 */
#ifndef WRITERS_HTML_HEAT_ROWS_H
#define WRITERS_HTML_HEAT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

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

struct heat_rows {
	size_t rows_max; /* set by the caller: before rows are merged; the finished table has at most half of it */
	size_t room; /* number of rows at which they are merged next, 0: rows_max */
	size_t step; /* index in the list of lengths: see heat_rows_step_ms() */
	uint64_t from_ns, to_ns; /* the moments of the step `current`, which was added to last */
	uint32_t current;
	struct map ids; /* key -> series */
	struct vec(struct heat_series) series;
	struct vec(struct heat_row) rows;
};

/* A table of zeros with its `rows_max` is empty. */
void heat_rows_release(struct heat_rows *table);

/* Returns the number of the series, a new one if need be, or -ENOMEM. */
int64_t heat_rows_series(struct heat_rows *table, uint64_t key);

/* Adds the sample to the series, in the step of `since_ns`. Returns 0 or -ENOMEM. */
int heat_rows_add(struct heat_rows *table, uint32_t series, uint64_t since_ns, const struct profile_sample *sample);

/*
 * Orders the rows by series and then by step, merges equal ones and makes the steps as long as it takes. To be called
 * once, after the last heat_rows_add(). Returns 0 or -ENOMEM.
 */
int heat_rows_finish(struct heat_rows *table);

/* Milliseconds. The length of each table's steps divides or is divided by that of any other table. */
uint32_t heat_rows_step_ms(const struct heat_rows *table);

#endif
