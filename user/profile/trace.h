/* SPDX-License-Identifier: MIT */
/* The trace and the span of a sample, as texts: hexadecimal digits, as W3C's Trace Context writes them. */
#ifndef PROFILE_TRACE_H
#define PROFILE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/timeline.h"

#define TRACE_ID_DIGITS 32
#define SPAN_ID_DIGITS 16

static inline bool trace_is_known(const struct profile_sample *sample)
{
	return sample->trace_high || sample->trace_low || sample->span;
}

static inline bool trace_is_same(const struct profile_sample *a, const struct profile_sample *b)
{
	return a->trace_high == b->trace_high && a->trace_low == b->trace_low && a->span == b->span;
}

/* Of two samples that become one, keeps what both worked for. */
static inline void trace_keep_common(struct profile_sample *kept, const struct profile_sample *other)
{
	if (!trace_is_same(kept, other))
		kept->trace_high = kept->trace_low = kept->span = 0;
}

void trace_id_text(const struct profile_sample *sample, char ret[TRACE_ID_DIGITS + 1]);
void span_id_text(const struct profile_sample *sample, char ret[SPAN_ID_DIGITS + 1]);
/* Return false, and leave the sample as it is, unless the text has as many digits and nothing else. */
bool trace_id_parse(struct profile_sample *sample, const char *text, size_t bytes);
bool span_id_parse(struct profile_sample *sample, const char *text, size_t bytes);

#endif
