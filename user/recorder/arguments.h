/* SPDX-License-Identifier: MIT */
/*
 * The arguments that async-profiler's agent takes: words with commas, NAME or NAME=VALUE, without quotes. Scripts, IDEs
 * and frameworks send them; `asprof` makes them from its options. An unknown word causes a warning. Words that choose
 * between async-profiler's own walkers and clocks are accepted and change nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "event/options.h"
#include "writers/writer.h"

#define ASPROF_VERSION_SPOKEN "4.5" /* of the command line and of the arguments */
#define ASPROF_NOT_SET UINT64_MAX
#define ASPROF_TIME_OF_DAY (1ull << 63) /* in a time that asprof_arguments_span_ns() reads: no number of ns */

/* async-profiler's defaults */
#define ASPROF_ALLOC_BYTES 524287
#define ASPROF_DEPTH 2048
#define ASPROF_LOCK_NS 10000
#define ASPROF_WALL_NS (50 * NS_PER_MS)
#define ASPROF_PROC_NS (30 * NS_PER_SEC)

enum asprof_action {
	ASPROF_NONE,
	ASPROF_START,
	ASPROF_RESUME, /* starts, and keeps the samples collected before */
	ASPROF_STOP,
	ASPROF_DUMP, /* makes a report without stopping */
	ASPROF_CHECK, /* whether the start would succeed; nothing is recorded */
	ASPROF_STATUS,
	ASPROF_MEMINFO, /* of versions before 4: the memory that it takes */
	ASPROF_METRICS,
	ASPROF_LIST,
	ASPROF_VERSION,
};

/* An event and how often it is sampled. */
struct asprof_interval {
	bool is_wanted;
	bool is_set;
	uint64_t value; /* ns or bytes; for a counted event: one sample in this many */
};

/* Strings point into `text`. */
struct asprof_arguments {
	char *text; /* owned */
	enum asprof_action action;
	const struct writer *writer; /* the named format, or the format of the file's extension; NULL: none */
	bool as_data; /* instead of that format, the profile is written in the format duet: see recorder_socket.h */
	struct writer_options style;
	const char *file; /* NULL: none */
	const char *event; /* the main event; NULL: none was named */
	struct asprof_interval interval; /* of the main event */
	struct asprof_interval alloc, lock, nativelock, wall, nativemem;
	struct opt_strings traces; /* "CLASS.METHOD[:TIME]" */
	struct options record; /* what a word sets of a recording */
	bool all, live, quiet;
	bool no_frees; /* no samples of memory that is freed again */
	const char *filter; /* threads of wall's samples: "120-127;132"; NULL: all */
	const char *begin, *end; /* functions between whose calls samples are taken, also of ttsp; NULL: none */
	bool ttsp, nostop; /* nostop: what lies outside is not left out */
	const char *server; /* where commands come by HTTP: PORT or HOST:PORT; NULL: nowhere */
	const char *log; /* a file, "stdout", "stderr"; NULL: stdout */
	const char *log_level; /* "none": nothing is logged; NULL: the default */
	uint32_t depth, kept_depth; /* jstackdepth=N/M; 0: not set */
	const char *cstack; /* NULL: the default */
	const char *features; /* words with "+" between them; NULL: none */
	uint64_t timeout_ns, loop_ns; /* or a time of day: see asprof_arguments_span_ns(); 0: none */
	uint64_t proc_ns; /* how often the machine's processes are looked at; ASPROF_NOT_SET */
	const char *jfrsync; /* settings of the JVM's own recording; NULL: none is made */
	const char *clock; /* "tsc" or "monotonic"; NULL: not set */
	uint64_t memory_bytes; /* memlimit; 0: the default */
};

/*
 * Parses `text`, and appends a line "[WARN] …" to `warnings` for each word without effect. Returns 0; or -EINVAL,
 * with one sentence in `why` and nothing to release.
 */
int asprof_arguments_parse(struct asprof_arguments *ret, const char *text, struct buf *warnings, struct buf *why);
/* Returns a copy of the value of the last word `name` in the text of arguments, or NULL. */
char *asprof_arguments_word(const char *text, const char *name);
void asprof_arguments_release(struct asprof_arguments *arguments);

/* Returns the ns from `from` until a timeout or the end of a window: the span itself, or until its time of day. */
uint64_t asprof_arguments_span_ns(uint64_t span, time_t from);

/* Returns true if `features` has the word. */
bool asprof_arguments_has(const struct asprof_arguments *arguments, const char *feature);

/* The events that arguments ask for. */

/* Appends the list for `duet record -e`. Sets *ret_engine to the value for --engine. Returns 0, or -EINVAL with why. */
int asprof_arguments_events(const struct asprof_arguments *arguments, struct buf *ret_list, const char **ret_engine,
			    struct buf *why);
/* Returns the event that is sampled beside those with words of their own, as the caller has it; NULL: none. */
const char *asprof_arguments_main_event(const struct asprof_arguments *arguments);
/* Appends the settings that a JFR file repeats: "name=value\n" each. */
void asprof_arguments_settings(const struct asprof_arguments *arguments, struct buf *ret);
/* Returns the period after which each thread has a sample of wall-clock time. */
uint64_t asprof_arguments_wall_ns(const struct asprof_arguments *arguments);
/* Returns how often the machine's processes are looked at; 0: never. */
uint64_t asprof_arguments_proc_ns(const struct asprof_arguments *arguments);
/* Returns true if the main event is no event that is known. */
bool asprof_arguments_are_unknown(const struct asprof_arguments *arguments);
/* Returns true if it is none, but may be a function of the process: A::b. */
bool asprof_arguments_is_symbol(const struct asprof_arguments *arguments);
/* Returns what async-profiler calls the source of the main event's samples. Static text. */
const char *asprof_arguments_source(const struct asprof_arguments *arguments);
/* Returns true if the main event is counted by perf, which may refuse it or lack it on this machine. */
bool asprof_arguments_need_perf(const struct asprof_arguments *arguments);
