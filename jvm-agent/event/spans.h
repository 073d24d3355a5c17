/* SPDX-License-Identifier: MIT */
/* What the program reports itself goes into the recording, if there is one that wants it. */
#ifndef EVENT_SPANS_H
#define EVENT_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool spans_are_recorded(void);
/*
 * Adds a span of the calling thread. Times are CLOCK_MONOTONIC; an end in the future is now. `tag`: UTF-8, without NUL,
 * of at most DUET_MAX_SPAN_BYTES; 0 bytes: none. Does nothing if spans are not recorded. Callable on all threads, but
 * not in a signal handler.
 */
void spans_add(int64_t start_ns, int64_t end_ns, const char *tag, size_t bytes);

#endif
