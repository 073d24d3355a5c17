/* SPDX-License-Identifier: MIT */
/*
 * Events that the views of JDK 25's `jfr view` are made of, beside those of the samples: what threads used,
 * collections, safepoints, compilations, loaded classes. Files are read without them. A file with the JDK's own events
 * has none: the JDK writes them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct writer_stream;

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

void jfr_views_init(struct writer_stream *j);
void jfr_views_release(struct jfr_views *views);
/* Adds a sample to the sums, whether the filters choose it or not. */
void jfr_views_sum(struct writer_stream *j, const struct profile_sample *sample);
/* Writes what belongs to a sample that the file has. */
void jfr_views_put(struct writer_stream *j, const struct profile_sample *sample);
void jfr_views_process(struct writer_stream *j, const struct profile_usage *usage); /* a row that the file has */
void jfr_views_flags(struct writer_stream *j, const struct profile_owner *owner); /* of a JVM that the file has */
void jfr_views_end(struct writer_stream *j); /* writes the sums */
