/* SPDX-License-Identifier: MIT */
/* Reads a whole source that may be compressed with gzip. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "readers/reader.h"

bool inflate_is_gzip(const unsigned char *start, size_t len);
/* Stores the first bytes of the contents, at most `size`, from the first bytes of the source. Returns their number. */
size_t inflate_start(const unsigned char *start, size_t len, unsigned char *to, size_t size);
/*
 * Appends the contents, at most `max` bytes: a small source may have large contents. Returns 0, or -errno with one
 * sentence in `why`.
 */
int inflate_source(struct reader_source *source, size_t max, struct buf *to, struct buf *why);
