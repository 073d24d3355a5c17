/* SPDX-License-Identifier: MIT */
/* Limits for the events of a JFR file: so many a second of each category, as async-profiler's --ratelimit. */
#ifndef WRITERS_JFR_RATES_H
#define WRITERS_JFR_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum jfr_rate {
	JFR_RATE_CPU,
	JFR_RATE_ALLOC,
	JFR_RATE_LOCK,
	JFR_RATE_WALL,
	JFR_RATE_NATIVEMEM,
	JFR_RATE_NATIVELOCK,
	JFR_RATE_TRACE,
	JFR_RATE_SPAN,
	JFR_RATES
};

/* Events of a second that were not used may be used in the next one. */
struct jfr_budget {
	uint64_t second;
	uint64_t left;
	bool is_begun;
};

/*
 * Parses "cpu:50,alloc:100" into limits by category; a ';' separates them, too. Returns 0, or -EINVAL with one sentence
 * in `why`.
 */
int jfr_rates_parse(uint32_t limits[JFR_RATES], const char *text, struct buf *why);
/* Returns true if `events` more events at this time are within `limit`, which is not 0. */
bool jfr_budget_take(struct jfr_budget *budget, uint32_t limit, uint64_t time_ns, uint64_t events);

#endif
