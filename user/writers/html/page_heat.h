/* SPDX-License-Identifier: MIT */
/*
 * The samples of an event over time, for pages of more samples than page_samples.h writes: in four tables of rows, by
 * time alone, also by thread, also by stack, by both. The fewer series a table has, the shorter are its steps: the
 * picture of a day is fine, and its flame graph is one of many minutes.
 */
#ifndef WRITERS_HTML_PAGE_HEAT_H
#define WRITERS_HTML_PAGE_HEAT_H

#include "writers/html/page_samples.h"

/*
 * Writes "start" in milliseconds, and "heat": its "threads" are names, and its "tables" say {stepMs, hasThreads,
 * hasStacks, rows}. Its "rows" are the numbers of all tables as unsigned LEB128, compressed by gzip, in base64: the
 * number of series; of each its thread, its page_leaf(), as far as the table has them, and the number of its rows; then
 * a column with the steps of the rows since the row before of the series, one with the numbers of samples, and one with
 * the differences between weight and number x period, twice, less 1 if negative. Returns 0 or -ENOMEM.
 */
int page_heat_write(const struct page_samples *samples, FILE *out);

#endif
