/* SPDX-License-Identifier: MIT */
/* Flame graphs of async-profiler, from version 2.0 on, and of its converter. */
#ifndef READERS_HTML_ASYNC_H
#define READERS_HTML_ASYNC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "profile/profile.h"

/*
 * Reads the frames of a page. Returns 1, or 0 if it has none of this form, or -errno with one sentence in `why`. Of a
 * differential flame graph, it reads the newer profile. The event is READER_SAMPLES: the page does not name it.
 */
int html_async_read(struct profile *profile, const char *text, size_t len, struct buf *why);

#endif
