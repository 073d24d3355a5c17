/* SPDX-License-Identifier: MIT */
/* Statistics of a running session, gathered in one place for `duet status`, --metrics and the progress line. */
#ifndef SERVE_STATS_H
#define SERVE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

struct report;

/* Rows with the same name are adjacent. */
struct stats_row {
	const char *name; /* in Prometheus' form: base units, and _total for counters */
	const char *label; /* NULL for none */
	char value[48]; /* value of the label */
	char help[112];
	double number;
};

struct stats {
	struct vec(struct stats_row) rows;
};

int stats_gather(struct stats *stats, const struct report *report); /* returns 0 or -ENOMEM; release in either case */
void stats_release(struct stats *stats);
/* A status_answer; `context` is a struct report. */
void stats_answer(void *context, bool for_people, struct buf *text);
void stats_metrics(const struct stats *stats, struct buf *text); /* Prometheus' text format 0.0.4 */
void stats_status(const struct stats *stats, struct buf *text); /* for people: one value a line, losses of 0 left out */
uint64_t stats_lost(const struct report *report); /* number of samples dropped or without all of their Java frames */

#endif
