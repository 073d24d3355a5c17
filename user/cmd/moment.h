/* SPDX-License-Identifier: MIT */
/* A time within a recording: the values of --from and --to. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum moment_kind { MOMENT_NONE, MOMENT_AFTER_START, MOMENT_BEFORE_END, MOMENT_OF_DAY, MOMENT_DATE };

struct moment {
	enum moment_kind kind;
	uint64_t ns; /* after the start, before the end, since midnight UTC, or since 1970 */
};

/* A parser for option rows [struct moment]: 10s, -10s, 10:00, 10:00:00, 2026-11-22T10:00:00. */
int opt_moment(void *field, const char *value, struct buf *why);
/* Returns the moment as CLOCK_REALTIME, like start_ns and end_ns; `otherwise` if the kind is MOMENT_NONE. */
uint64_t moment_ns(const struct moment *moment, uint64_t start_ns, uint64_t end_ns, uint64_t otherwise);
/* Of a MOMENT_OF_DAY: the last such time that is not after end_ns, and the first that is after `ns`. */
uint64_t moment_last_of_day(const struct moment *moment, uint64_t end_ns);
uint64_t moment_next_of_day(const struct moment *moment, uint64_t ns);
