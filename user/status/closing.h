/* SPDX-License-Identifier: MIT */
/* What the user of a recording reads on stderr: its progress, its end in one line, and what to do next. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct event_spec;
struct headline;
struct report;

/* The headline of the whole recording until now. Its losses are those counted now, not the profile's. */
void closing_now(const struct report *report, uint64_t now_ns, struct headline *ret);
void closing_progress(const struct report *report);
/* The interval that would have given about 1000 samples, as short as the event and --max-overhead permit. */
uint64_t closing_interval(const struct event_spec *spec, uint64_t count, bool is_limited);
/* Samples of an event; `whole` of them weigh more than the interval, as long waits do. */
struct closing_count {
	uint64_t all, whole;
};

/* How many samples the shorter interval would have given, at most. */
uint64_t closing_given(const struct event_spec *spec, const struct closing_count *count, uint64_t shorter);
/* Prints the recording's end from its profile. `where`: its files or "". `is_shown`: the headline was shown. */
void closing_print(const struct report *report, const char *where, bool is_shown);
