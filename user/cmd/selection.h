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

/* clang-format off */
/*
 * Words that choose an event. X(type, index, word, help, also, names...): the first of the names that the recording
 * has, and `also`, which is counted with it.
 */
#define SELECTION_WORDS(X, type) \
	X(type, SELECT_CPU, "cpu", "only CPU time", NULL, \
	  "cpu", "ctimer", "itimer", "cpu-clock", "task-clock", "cycles") \
	X(type, SELECT_CPU_TIME, "cpu-time", "only jdk.CPUTimeSample of JFR", NULL, "cpu-time") \
	X(type, SELECT_WALL, "wall", "only the wall clock", NULL, "wall") \
	X(type, SELECT_ALLOC, "alloc", "only allocations", NULL, "alloc") \
	X(type, SELECT_LIVE, "live", "only allocations that were still alive", NULL, "live", "old-object") \
	X(type, SELECT_LOCK, "lock", "only waits for Java's locks", "park", "lock", "park") /* two types of JFR */ \
	X(type, SELECT_NATIVEMEM, "nativemem", "only native allocations", NULL, "nativemem") \
	X(type, SELECT_NATIVELOCK, "nativelock", "only waits for native locks", NULL, "nativelock") \
	X(type, SELECT_LEAK, "leak", "only native allocations that were not freed", NULL, "leak") \
	X(type, SELECT_TRACE, "trace", "only calls of traced methods", NULL, "trace") \
	X(type, SELECT_EXECUTION, "execution", "only CPU time and the wall clock, together", "wall", \
	  "cpu", "ctimer", "itimer", "cpu-clock", "task-clock", "wall")
/* clang-format on */

#define SELECTION_INDEX(type, index, ...) index,
enum selection_word { SELECTION_WORDS(SELECTION_INDEX, ) SELECT_WORDS };

struct selection {
	const char *event; /* --event; NULL: not given */
	bool words[SELECT_WORDS];
	struct moment from, to;
	uint64_t latency_ns; /* --latency; 0: not given */
	const char *tag; /* --tag; NULL: not given */
	const char *states; /* --state; NULL: not given */
	bool may_be_empty; /* a word for an event that the recording lacks selects no samples, and is not refused */
	double tail; /* --tail, percent of the time of the recording; 0: not given */
};

/* clang-format off */
#define SELECT_ROW(type, index, word, help, ...) \
	{0, word, NULL, help, opt_flag, .offset = offsetof(type, selection.words[index])},
/* Rows for a struct `type` with `struct selection selection`. */
#define SELECTION_ROWS(type) \
	{0, "from", "TIME", "only samples from this time on: 10s (after the start), -10s (before the end), or UTC", \
		opt_moment, .offset = offsetof(type, selection.from), .is_short = true}, \
	{0, "to", "TIME", "only samples before this time: 20s, 10:00, 10:00:00, 2026-11-22T10:00:00", opt_moment, \
		.offset = offsetof(type, selection.to), .is_short = true}, \
	{'e', "event", "EVENT", "only samples of this event", opt_string, .offset = offsetof(type, selection.event), \
		.is_short = true}, \
	SELECTION_WORDS(SELECT_ROW, type) \
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
