/* SPDX-License-Identifier: MIT */
/* duet's own flame graphs: the page has its events as JSON (writers/html/writer_flamegraph.c). */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "profile/profile.h"

/* What stands before the JSON. */
#define HTML_DUET_BEGIN "<script type=\"application/json\" id=\"profiles\">"

/*
 * Reads all events of the page's JSON: with their times and threads where it has single samples. Of two profiles that
 * are compared, it reads the second. Returns 0, or -errno with one sentence in `why`.
 */
int html_duet_read(struct profile *profile, const char *json, size_t len, struct buf *why);
