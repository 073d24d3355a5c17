/* SPDX-License-Identifier: MIT */
/* A JFR file that is being written: shared by writer_jfr.c, which writes the samples, and jfr_about.c. */
#ifndef OUT_JFR_STREAM_H
#define OUT_JFR_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "out/jfr_file.h"
#include "out/jfr_metadata.h"
#include "out/jfr_pools.h"
#include "out/writer.h"

#define JFR_START_TICKS NS_PER_SEC /* a tick is a nanosecond */

/* How the samples of an event are written. */
enum form { EXECUTION, CPU_TIME, WALL, ALLOCATION, IN_TLAB, LIVE, MALLOC, FREE, LOCK, WAIT, NATIVE_LOCK, TRACE, OWN };

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
	uint64_t user_ns, system_ns; /* CPU time of JVMs */
	uint64_t leaks;
	uint64_t per_event; /* samples for which an event stands */
	uint64_t samples; /* written so far */
	size_t owners; /* rows of the profile whose JVMs the file has */
	struct buf events, body;
	uint64_t begin_ns, end_ns; /* times of the chunk, since the start of the recording */
	int err;
};

/* Begins an event in j->body, at this time since the start of the recording; fields follow. */
void jfr_begin_event(struct writer_stream *j, enum jfr_type type, uint64_t ns);
void jfr_end_event(struct writer_stream *j); /* adds it to j->events; may be called again for another one like it */
enum jfr_type jfr_type_of(const struct writer_stream *j, size_t event); /* of the samples of an event */

void jfr_put_beginning(struct writer_stream *j); /* the recording, its settings, the machine */
void jfr_put_jvms(struct writer_stream *j); /* those that the file does not have yet */
void jfr_put_report(struct writer_stream *j); /* CPU load, facts and losses: at the end */

#endif
