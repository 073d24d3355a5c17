/* SPDX-License-Identifier: MIT */
/* What a running session says of itself, gathered in one place: for `duet status`, --metrics and the progress line. */
#ifndef STATS_H
#define STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

struct session;

/* Rows of one name lie together. */
struct stats_row {
	const char *name; /* as Prometheus wants it: unit in base units, _total for what only grows */
	const char *label; /* NULL for none */
	char value[48]; /* of the label */
	char help[112];
	double number;
};

struct stats {
	struct vec(struct stats_row) rows;
};

int stats_gather(struct stats *stats, struct session *session); /* 0 or -ENOMEM; in either case to be released */
void stats_release(struct stats *stats);
void stats_metrics(const struct stats *stats, struct buf *text); /* Prometheus' text format, 0.0.4 */
void stats_status(const struct stats *stats, struct buf *text); /* for people: one a line, no loss that was none */
uint64_t stats_lost(struct session *session); /* samples: dropped, or without the Java frames they have */

#endif
