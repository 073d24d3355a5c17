/* SPDX-License-Identifier: MIT */
/* Statistics of a running session, for `duet status`, --metrics and the progress line. */
#ifndef SERVE_STATS_H
#define SERVE_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct report;

/* A status_answer; `context` is a struct report. */
void stats_answer(void *context, bool for_people, struct buf *text);
uint64_t stats_lost(const struct report *report); /* number of samples dropped or without all of their Java frames */

#endif
