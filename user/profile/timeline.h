/* SPDX-License-Identifier: MIT */
/*
 * Every sample with its time, in the order of adding. The newest are in memory, older ones in an unlinked temporary
 * file below $TMPDIR or /var/tmp, so a long recording needs disk, not memory. If the file cannot be made or has no more
 * room, all new samples stay in memory; with `may_merge`, those of one event, thread and stack are then merged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define TIMELINE_RECENT 32768 /* samples in memory, 2.3 MB */

struct profile_sample {
	uint64_t time_ns; /* of the clock of profile.start_ns */
	uint64_t weight; /* in the unit of its event */
	uint32_t thread; /* index into profile.threads */
	uint32_t node; /* leaf of the stack */
	uint32_t count; /* samples merged into this one, else 1; time_ns is the first one's, weight their sum */
	uint32_t event; /* index into profile.events */
	/*
	 * of memory that was taken or freed, of the lock that was waited for; of time the thread's state
	 * (enum thread_state); of an object that is still there its age in ns; of a request to a device its bytes; 0:
	 * none, or of several
	 */
	uint64_t address;
	/* what the thread worked for, as W3C's Trace Context numbers it; all 0: not known, or of several */
	uint64_t trace_high, trace_low;
	uint64_t span;
	uint32_t attributes; /* the same in its program's words: interned, as attributes.h; 0: none, or of several */
};

struct timeline {
	uint64_t len; /* all rows; merged samples are one */
	uint64_t count; /* all samples: the sum of the rows' counts. This is the number that people are shown */
	/* set by the caller: number of samples that a file has already; these are not merged with later ones */
	uint64_t written;
	struct vec(struct profile_sample) recent;
	int fd; /* the file with the older samples, packed; -1 = none yet */
	struct vec(uint64_t) ends; /* where each block of TIMELINE_RECENT samples ends in the file */
	size_t merge_at; /* recent.len at which to merge next, when `stuck` */
	bool may_merge; /* set by the caller: memory matters more than the time of each sample */
	bool stuck; /* the file could not be made or has no more room */
};

/* Returns 0 to continue. Another value ends timeline_each(), which returns it. */
typedef int (*timeline_visitor)(void *context, const struct profile_sample *sample);

void timeline_init(struct timeline *timeline);
void timeline_release(struct timeline *timeline);
int timeline_add(struct timeline *timeline, const struct profile_sample *sample); /* 0 or -ENOMEM */
/* Visits all samples. Returns 0, what the visitor returned, or -errno when the file could not be read back. */
int timeline_each(const struct timeline *timeline, timeline_visitor visit, void *context);
/* The same, then `timeline` becomes *kept, to which the visitor adds; after an error it stays as it was. */
int timeline_remake(struct timeline *timeline, struct timeline *kept, timeline_visitor visit, void *context);
/* As timeline_each(), without the first `skip` samples. */
int timeline_rest(const struct timeline *timeline, uint64_t skip, timeline_visitor visit, void *context);

/* ---- the trace and the span of a sample, as texts: hexadecimal digits, as W3C's Trace Context writes them ---- */

#define TRACE_ID_DIGITS 32
#define SPAN_ID_DIGITS 16

static inline bool trace_is_known(const struct profile_sample *sample)
{
	return sample->trace_high || sample->trace_low || sample->span;
}

static inline bool trace_is_same(const struct profile_sample *a, const struct profile_sample *b)
{
	return a->trace_high == b->trace_high && a->trace_low == b->trace_low && a->span == b->span &&
	       a->attributes == b->attributes;
}

/* Of two samples that become one, keeps what both worked for. */
static inline void trace_keep_common(struct profile_sample *kept, const struct profile_sample *other)
{
	if (kept->attributes != other->attributes)
		kept->attributes = 0;
	if (kept->trace_high != other->trace_high || kept->trace_low != other->trace_low || kept->span != other->span)
		kept->trace_high = kept->trace_low = kept->span = 0;
}

void trace_id_text(const struct profile_sample *sample, char ret[TRACE_ID_DIGITS + 1]);
void span_id_text(const struct profile_sample *sample, char ret[SPAN_ID_DIGITS + 1]);
/* Return false, and leave the sample as it is, unless the text has as many digits and nothing else. */
bool trace_id_parse(struct profile_sample *sample, const char *text, size_t bytes);
bool span_id_parse(struct profile_sample *sample, const char *text, size_t bytes);
