/* SPDX-License-Identifier: MIT */
/* Output formats. A writer sees the profile and a FILE, never a pid, an ELF file or BPF. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/opt.h"
#include "profile/profile.h"

/* Leading frames that stacks can be grouped by. Equal names are one frame, whatever their ids. */
enum writer_group {
	WRITER_BY_NONE,
	WRITER_BY_CONTAINER,
	WRITER_BY_PROCESS,
	WRITER_BY_THREAD,
	WRITER_BY_SERVICE,
	WRITER_BY_TRACE, /* of these three, the profile's stacks have the frames: grouping.h */
	WRITER_BY_SPAN,
	WRITER_BY_ATTRIBUTE,
	WRITER_GROUP_MAX
};
#define WRITER_GROUPS (WRITER_GROUP_MAX - 1)

/* Defaults and lower bounds of --chunksize and --chunktime; they are async-profiler's. */
#define WRITER_CHUNK_BYTES (100ull << 20)
#define WRITER_CHUNK_NS (3600ull * 1000000000)
#define WRITER_CHUNK_BYTES_MIN (256ull << 10)
#define WRITER_CHUNK_NS_MIN (5ull * 1000000000)

/* Categories of async-profiler's --ratelimit. */
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

/* What belongs to the machine or the JVM and is left out of a JFR file; the bits are async-profiler's. */
enum writer_jfr_without {
	WRITER_WITHOUT_SYSTEM = 1 << 0, /* of the operating system, the CPUs and the JVM */
	WRITER_WITHOUT_PROPERTIES = 1 << 1,
	WRITER_WITHOUT_LIBRARIES = 1 << 2,
	WRITER_WITHOUT_LOAD = 1 << 3,
	WRITER_WITHOUT_HEAP = 1 << 4,
	WRITER_WITHOUT_ALL = (1 << 5) - 1
};

/* The options of JFR files that no other format has. */
struct writer_jfr {
	uint32_t rate_limits[JFR_RATES]; /* events a second; 0 = no limit */
	unsigned int without; /* bits of enum writer_jfr_without */
	/*
	 * A descriptor of the chunks that the JVM's own recorder has written. They become part of the file, of a file
	 * that is written during a recording at its end. NULL, or -1 there: none. Not owned.
	 */
	const int *jdk_file;
	uint64_t ticks_per_second; /* of the file's times; 0 = as in jdk_file, else nanoseconds */
	uint64_t start_ticks; /* at the start of the recording; 0 = any */
	const char *settings; /* settings of the recording: "name=value\n" each; NULL = those of duet */
	bool is_plain; /* pools have async-profiler's fields alone: some readers know them by heart */
	uint32_t first_row; /* is added to the numbers of rows of pools: chunks before in the file have lower ones */
	bool no_batch; /* wall: an ExecutionSample for each period of a sleep, as of a thread that runs */
};

/* What the filters have left. */
struct writer_passed {
	uint64_t stacks, kept; /* that -I and -X were applied to */
	bool is_spanless; /* --span, --trace-id and --attr have left no sample */
};

struct writer_options {
	struct frame_style style;
	enum writer_group by[WRITER_GROUPS]; /* --by: leading frames, outermost first; WRITER_BY_NONE ends it */
	const char *by_keys[WRITER_GROUPS]; /* of WRITER_BY_ATTRIBUTE the key, which a ',' may end; not owned */
	bool threads;	    /* -t: a leading frame [name tid=N]; virtual threads: see duet(1), THREADS */
	bool processes;	    /* a leading frame [name pid=N]: several processes were profiled, and `by` is empty */
	uint32_t event;	    /* index into profile.events: a writer of one event writes the samples of this one */
	bool total;	    /* --total: show the weight of samples instead of their number */
	bool samples;	    /* --samples: the default, named by the user; not together with `total` */
	uint32_t max_depth; /* -j: deeper stacks keep the frames nearest the leaf under [truncated]; 0 = no limit */
	struct opt_strings include; /* -I: keep stacks with a matching frame */
	struct opt_strings exclude; /* -X */
	/* set by grouping.c: stacks begin with the frames of --by trace, span, attr; otherwise these are not shown */
	bool is_grouped;
	struct opt_strings spans; /* --span: only samples in a span whose tag or id matches; empty: all */
	struct opt_strings traces_of; /* --trace-id: the same for traces */
	struct opt_strings attributes; /* --attr KEY=PATTERN: the same for the value of each key that is named */
	bool regex;	    /* --regex: these are extended regular expressions; else '*' at either end */
	uint32_t skip;	    /* --skip: leave out this many frames nearest the root */
	bool classify;	    /* --classify: a leading frame for the kind of work, see category_of() */
	uint32_t grain;	    /* --grain: the samples of a stack are a multiple of it; 0 = as they are */
	const char *highlight;	    /* --highlight: what the flame graph's page searches for when it opens; or NULL */
	const char *title;	    /* --title */
	bool keeps_secrets;	    /* --no-redact, for commands: see redact_set() */
	double min_width;	    /* --minwidth, percent */
	bool reverse;		    /* --reverse: leaf at the root */
	bool inverted;		    /* --inverted: icicle instead of flame */
	uint32_t traces;	    /* text: how many stacks */
	uint32_t flat;		    /* text: how many methods */
	uint32_t col_version;	    /* col: 1 or 2 */
	bool cpu_time;		    /* jfr: CPU time is jdk.CPUTimeSample, not jdk.ExecutionSample */
	/*
	 * otlp: what async-profiler calls the source of its samples: then each stack of a thread has one value, the
	 * number of its samples or with `total` their weight, and a profile without samples is written, too. NULL: no
	 */
	const char *source;
	bool leaves;		    /* set by a writer: tree_leaf() for any number of samples */
	bool frame_list;	    /* flamegraph: the page has a list for async-profiler's tools, too */
	bool tlab;		    /* jfr: allocations are jdk.ObjectAllocationInNewTLAB, not …Sample */
	uint64_t chunk_bytes;	    /* jfr: a chunk that a recording makes ends at this size */
	uint64_t chunk_ns;	    /* jfr: or at this age */
	struct writer_jfr jfr;
	struct writer_passed *passed; /* or NULL */
	uint64_t *cut; /* counts the stacks that were cut because the file would grow out of bounds; or NULL */
	/* Appends a writer's own leading frame, which may be several tokens. Set by that writer; else NULL. */
	void (*lead)(const void *context, const struct profile_thread *thread, struct buf *out);
	const void *lead_context;
};

struct writer_stream;

/* Two profiles to compare: what B has more than A, and what it has less. */
struct writer_diff {
	struct writer_side {
		const struct profile *profile;
		const char *name; /* name of the file, for people */
		uint32_t event;	  /* index into its events */
	} a, b;
	bool normalize; /* compare parts of the totals, not the weights themselves */
};

struct writer {
	const char *name;	/* -o NAME */
	const char *extensions; /* "html,htm": file names that choose this writer when -o is absent; may be NULL */
	const char *help;
	const char *lacks; /* "times and lines": parts of a recording that the format cannot hold; NULL = none */
	size_t count_at; /* offset in struct writer_options of the uint32_t that -o NAME=N sets; 0 = none */
	bool has_notes; /* the format keeps the profile's notes */
	bool has_usages; /* the format shows the profile's usages */
	bool merges; /* it merges more than ORDERED_MAX samples: see ordered.h */
	bool has_all_events; /* one file has all events; otherwise each event has its own file, see options->event */
	/* Returns 0 or the -errno of the stream. Reports nothing. */
	int (*write)(const struct profile *profile, const struct writer_options *options, FILE *out);
	/*
	 * Writes the difference of two profiles, of their events instead of options->event. NULL: the format has no
	 * differences.
	 */
	int (*write_diff)(const struct writer_diff *diff, const struct writer_options *options, FILE *out);
	/*
	 * NULL for formats that are written at the end. stream_open() begins the file of a recording that still runs;
	 * it returns NULL when out of memory, and takes a copy of the options, not of the lists in them.
	 * stream_append() appends what was added to the profile since the last call; after each call the caller sets
	 * profile->samples.written. `is_end` marks the last call. It returns as write(). After an error it must not be
	 * called again, and the position in a regular file is behind what is whole of it.
	 */
	struct writer_stream *(*stream_open)(const struct profile *profile, const struct writer_options *options,
					     FILE *out);
	int (*stream_append)(struct writer_stream *stream, bool is_end);
	void (*stream_close)(struct writer_stream *stream);
};

/*
 * Parses "cpu:50,alloc:100" into limits by category; a ';' separates them, too. Returns 0, or -EINVAL with one sentence
 * in `why`.
 */
int jfr_rates_parse(uint32_t limits[JFR_RATES], const char *text, struct buf *why);

/* Returns NULL if the name is unknown. By path, the extension decides; an unknown one means `text`. */
const struct writer *writer_by_name(const char *name);
/* The same, also for "NAME=N", which sets the number of the format's rows in `options`. NULL if N is not valid. */
const struct writer *writer_by_word(const char *word, struct writer_options *options);
/* The first extension of the format, without a dot; its name if it has none. Not terminated after *ret_len bytes. */
const char *writer_extension(const struct writer *writer, size_t *ret_len);
const struct writer *writer_by_path(const char *path);
/* The length of the path without the extension that chooses a writer; the whole length if there is none. */
size_t writer_stem(const char *path);
/* All writers, in the order of lists. */
#define WRITERS(X)                                                                                                     \
	X(flamegraph) X(tree) X(tree_text) X(heatmap) X(collapsed) X(col) X(text) X(text_full) X(duet) X(pprof) X(jfr) \
	X(perf) X(speedscope) X(otlp) X(otlp_json) X(firefox) X(chrometrace) X(callgrind) X(flat) X(traces)
#define WRITER_DECLARE(name) extern const struct writer writer_##name;
WRITERS(WRITER_DECLARE)
extern const struct writer *const writers[]; /* ends with NULL */

/* The name of the event that is written ("" if none), and the unit of its weights: "ns", "bytes" or its name. */
const char *writer_event(const struct profile *profile, const struct writer_options *options);
const char *writer_unit(const struct profile *profile, const struct writer_options *options);
/* Counts a stack of which the writer leaves out frames. */
static inline void writer_left_out(const struct writer_options *options)
{
	if (options->cut)
		++*options->cut;
}

/* Returns the value for options->processes. */
bool writer_shows_processes(const struct profile *profile, const struct writer_options *options);
/*
 * Appends the event's part of a file name: the end of its name, with '_' for all but letters, digits, ':' and '-'. The
 * name may have the path of a file.
 */
void writer_event_part(const char *event, struct buf *ret);
/*
 * Appends the file name for an event other than the first, for writers with one file for each event: inserts
 * writer_event_part() before the extension of `file`.
 */
void writer_event_file(const char *file, const char *event, struct buf *ret);
void writer_options_default(struct writer_options *options);
/* Parses "container,attr:KEY", each word at most once; the list stays. Returns 0, or -EINVAL with --by unchanged. */
int writer_groups_parse(struct writer_options *options, const char *list);

/* Writes the lines of a sorted tree, "a;b;c 12". Returns 0 or -ENOMEM. */
struct tree;
int collapsed_write_stacks(const struct tree *tree, const struct writer_options *options, FILE *out);
/* writer.write_diff() of the reports: what has grown most comes first. */
int text_write_diff(const struct writer_diff *two, const struct writer_options *options, FILE *out);
/* After an error: forgets what is not written, and sets the position if it is not -1 and the file has one. */
void writer_rewind(FILE *out, int64_t position);
/* Appends "java 12/34 main": process, pid and tid of a thread, and its name. Not cleaned. */
void writer_thread_text(const struct profile *profile, uint32_t thread, struct buf *out);
/* Flushes the stream. Returns 0 or the -errno of the stream, which the writer returns. */
int writer_finish(FILE *out);
