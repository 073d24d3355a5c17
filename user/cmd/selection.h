/* SPDX-License-Identifier: MIT */
/* The options that choose a part of a recording: --from, --to, --event, and a word for each kind of event. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/opt.h"
#include "profile/profile.h"

/* A time within a recording: the values of --from and --to. */

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

/* As the bits of `words`, in the order of the table in selection.c. */
enum selection_word {
	SELECT_CPU,
	SELECT_CPU_TIME,
	SELECT_WALL,
	SELECT_ALLOC,
	SELECT_LIVE,
	SELECT_LOCK,
	SELECT_NATIVEMEM,
	SELECT_NATIVELOCK,
	SELECT_LEAK,
	SELECT_TRACE,
	SELECT_EXECUTION,
	SELECT_WORDS
};

struct selection {
	const char *event; /* --event; NULL: not given */
	bool words[SELECT_WORDS];
	struct moment from, to;
	uint64_t latency_ns; /* --latency; 0: not given */
	const char *tag; /* --tag; NULL: not given */
	const char *states; /* --state; NULL: not given */
	double tail; /* --tail, percent of the time of the recording; 0: not given */
};

/* clang-format off */
#define SELECT_ROW(type, word, index, help) \
	{0, word, NULL, help, opt_flag, .offset = offsetof(type, selection.words[index])}
/* Rows for a struct `type` with `struct selection selection`. */
#define SELECTION_ROWS(type) \
	{0, "from", "TIME", "only samples from this time on: 10s (after the start), -10s (before the end), or UTC", \
		opt_moment, .offset = offsetof(type, selection.from), .is_short = true}, \
	{0, "to", "TIME", "only samples before this time: 20s, 10:00, 10:00:00, 2026-11-22T10:00:00", opt_moment, \
		.offset = offsetof(type, selection.to), .is_short = true}, \
	{'e', "event", "EVENT", "only samples of this event", opt_string, .offset = offsetof(type, selection.event), \
		.is_short = true}, \
	SELECT_ROW(type, "cpu", SELECT_CPU, "only CPU time"), \
	SELECT_ROW(type, "cpu-time", SELECT_CPU_TIME, "only jdk.CPUTimeSample of JFR"), \
	SELECT_ROW(type, "wall", SELECT_WALL, "only the wall clock"), \
	SELECT_ROW(type, "alloc", SELECT_ALLOC, "only allocations"), \
	SELECT_ROW(type, "live", SELECT_LIVE, "only allocations that were still alive"), \
	SELECT_ROW(type, "lock", SELECT_LOCK, "only waits for Java's locks"), \
	SELECT_ROW(type, "nativemem", SELECT_NATIVEMEM, "only native allocations"), \
	SELECT_ROW(type, "nativelock", SELECT_NATIVELOCK, "only waits for native locks"), \
	SELECT_ROW(type, "leak", SELECT_LEAK, "only native allocations that were not freed"), \
	SELECT_ROW(type, "trace", SELECT_TRACE, "only calls of traced methods"), \
	SELECT_ROW(type, "execution", SELECT_EXECUTION, "only CPU time and the wall clock, together"), \
	{0, "latency", "TIME", "only samples within spans and traced calls of this length or longer", opt_interval, \
		.offset = offsetof(type, selection.latency_ns)}, \
	{0, "tag", "TEXT", "only samples within spans with this tag", opt_string, \
		.offset = offsetof(type, selection.tag)}, \
	{0, "state", "LIST", "only threads that were runnable, sleeping, default (CPU time); with commas", opt_string, \
		.offset = offsetof(type, selection.states)}, \
	{0, "tail", "PERCENT", "of --leak, without what was allocated in this last part of the time", \
		opt_percent, .offset = offsetof(type, selection.tail)}
/* clang-format on */

/*
 * Tests that at most one event is chosen (--nativemem --leak is --leak). Returns 0, or -EINVAL after reporting the
 * error.
 */
int selection_check(struct selection *selection);
/*
 * Replaces `profile` by the part that the options select. A file that does not say what was sampled has all events.
 * Returns 0, or -errno after reporting the error; then the profile is as it was.
 */
int selection_cut(struct profile *profile, const struct selection *selection);
/* True for a file that does not say what was sampled: its one event stands for any. */
bool selection_is_unknown(const struct profile *profile);
