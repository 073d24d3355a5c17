/* SPDX-License-Identifier: MIT */
/* A JFR file that is being written: shared by writer_jfr.c, which writes the samples, about.c and forms.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "writers/jfr/bytes.h"
#include "writers/jfr/file.h"
#include "writers/jfr/metadata.h"
#include "writers/jfr/pools.h"
#include "writers/writer.h"

/* How the samples of an event are written. */
enum form {
	EXECUTION,
	CPU_TIME,
	WALL,
	ALLOCATION,
	IN_TLAB,
	LIVE,
	MALLOC,
	FREE,
	LOCK,
	WAIT,
	NATIVE_LOCK,
	TRACE,
	EXCEPTION,
	SPAN,
	WINDOW,
	USER_EVENT,
	OWN,
};

/* Events of a second that were not used may be used in the next one. */
struct jfr_budget {
	uint64_t second;
	uint64_t left;
	bool is_begun;
};

/* Returns true if `events` more events at this time are within `limit`, which is not 0. */
bool jfr_budget_take(struct jfr_budget *budget, uint32_t limit, uint64_t time_ns, uint64_t events);

/* What the samples of a thread of a JVM add up to. */
struct jfr_thread_sums {
	uint64_t user_ns, system_ns, allocated;
};

struct jfr_views {
	uint32_t cpu, alloc, gc, safepoint, compilation, class_load; /* events of the profile; UINT32_MAX: not there */
	struct vec(struct jfr_thread_sums) threads; /* by index */
	struct map processes; /* pid and start of those that were written -> 1 */
	uint64_t collections; /* the number of the last one */
	uint64_t safepoints; /* in the file so far */
	bool is_needed; /* the JDK does not write them */
	uint64_t stopping_ns; /* what the threads of the next safepoint took until they had stopped */
};

struct writer_stream {
	const struct profile *profile;
	struct writer_options options;
	struct jfr_file file;
	struct jfr_pools pools;
	bool is_growing; /* the recording goes on */
	bool has_filters;
	struct map wanted; /* thread << 32 | node -> whether the filters choose it */
	enum form *forms; /* by event */
	bool *own;
	bool waits_park; /* parks of the event wait are jdk.ThreadPark: there is no event lock, which has its own */
	uint64_t start_ticks, ticks_per_second; /* at the start of the recording */
	struct jfr_budget budgets[JFR_RATES];
	uint64_t over_limit; /* events that were left out */
	uint64_t user_ns, system_ns; /* CPU time of JVMs */
	uint64_t leaks;
	uint64_t per_event; /* samples for which an event stands */
	uint64_t samples; /* written so far */
	size_t owners; /* rows of the profile whose JVMs the file has */
	size_t notes; /* of the profile that the file has */
	size_t usages; /* the same */
	bool has_load; /* one of them is about CPU time */
	uint64_t heap_bytes; /* Java's heap after the last collection; 0 = not known */
	struct map facts; /* key << 32 | value -> 1: those that the file has, while the recording goes on */
	struct map losses; /* text -> count: the same */
	uint64_t lost; /* sum of these counts */
	struct jfr_views views;
	struct buf events, body;
	uint64_t begin_ns, end_ns; /* times of the chunk, since the start of the recording */
	int err;
};

/* Of a time since the start of the recording, and of a length of time. */
uint64_t jfr_ticks(const struct writer_stream *j, uint64_t ns);
uint64_t jfr_ticks_long(const struct writer_stream *j, uint64_t ns);
/* Begins an event in j->body, at this time since the start of the recording; fields follow. */
void jfr_begin_event(struct writer_stream *j, enum jfr_type type, uint64_t ns);
uint64_t jfr_ns_of(const struct writer_stream *j, const struct profile_sample *sample); /* since the start */
/* The same for what took so long until the time of the sample; with its length and the sample's thread. */
void jfr_begin_lasting(struct writer_stream *j, enum jfr_type type, const struct profile_sample *sample,
		       uint64_t length_ns);
void jfr_end_event(struct writer_stream *j); /* adds it to j->events; may be called again for another one like it */
/* Adds an event whose fields behind the time are numbers. */
#define jfr_add_event(j, type, ns, ...) \
	(jfr_begin_event(j, type, ns), jfr_put_numbers(&(j)->body, __VA_ARGS__), jfr_end_event(j))

bool jfr_is_event(const struct profile *profile, size_t event, const char *name, enum profile_unit unit);
void jfr_choose_forms(struct writer_stream *j); /* of all events of the profile */
/* Whether so many events for the sample are within --ratelimit. Counts them if they are not. */
bool jfr_is_within_limit(struct writer_stream *j, const struct profile_sample *sample, uint64_t ns, uint64_t events);
enum jfr_type jfr_type_of(const struct writer_stream *j, size_t event); /* of the samples of an event */
/*
 * Of an event, async-profiler has the interval under this name, and with its type. Its converter takes any "interval"
 * for that of the CPU's samples, so others that have no name there are a "period".
 */
const char *jfr_interval_name(enum form form);
/*
 * The row of the thread that held the lock or ended the wait, whose stack the sample's goes on with (FRAME_WAKER);
 * UINT32_MAX: not known, or it has no row. Of several threads with the name, it is the first one.
 */
uint32_t jfr_holder(const struct profile *profile, const struct profile_sample *sample);

void jfr_put_facts(struct writer_stream *j); /* those that the file does not have yet */
void jfr_put_losses(struct writer_stream *j); /* what was lost in addition to what the file has */
void jfr_put_beginning(struct writer_stream *j); /* the recording, its settings, the machine */
void jfr_put_jvms(struct writer_stream *j); /* those that the file does not have yet */
/* Writes the notes up to this time, of the clock of the profile. */
void jfr_put_notes(struct writer_stream *j, uint64_t until_ns);
void jfr_put_usages(struct writer_stream *j, uint64_t until_ns); /* the same for what processes used */
bool jfr_has_form(const struct writer_stream *j, enum form form); /* of an event of the profile */
void jfr_put_report(struct writer_stream *j); /* CPU load, facts and losses: at the end */

/*
 * ---- views.c ----
 *
 * Events that the views of JDK 25's `jfr view` are made of, beside those of the samples: what threads used,
 * collections, safepoints, compilations, loaded classes. Files are read without them. A file with the JDK's own events
 * has none: the JDK writes them.
 */
void jfr_views_init(struct writer_stream *j);
void jfr_views_release(struct jfr_views *views);
/* Adds a sample to the sums, whether the filters choose it or not. */
void jfr_views_sum(struct writer_stream *j, const struct profile_sample *sample);
/* Writes what belongs to a sample that the file has. */
void jfr_views_put(struct writer_stream *j, const struct profile_sample *sample);
void jfr_views_process(struct writer_stream *j, const struct profile_usage *usage); /* a row that the file has */
void jfr_views_flags(struct writer_stream *j, const struct profile_owner *owner); /* of a JVM that the file has */
void jfr_views_end(struct writer_stream *j); /* writes the sums */
