/* SPDX-License-Identifier: MIT */
/* The lines of a text file of any size. */
#ifndef READERS_LINES_H
#define READERS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "readers/reader.h"

struct lines {
	struct reader_source *source;
	struct buf text;
	size_t at;	/* offset of the next line */
	size_t scanned; /* there is no newline between `at` and here */
	uint64_t number; /* number of the line that was returned last, from 1 */
	bool ended;
};

void lines_init(struct lines *lines, struct reader_source *source);
void lines_release(struct lines *lines);
/*
 * Returns the next line without its line end; valid until the next call. Returns 1, 0 at the end of the file, or -errno
 * with one sentence in `why`.
 */
int lines_next(struct lines *lines, const char **ret_line, size_t *ret_len, struct buf *why);
size_t lines_without_return(const char *line, size_t len); /* the length without '\r' at the end */

#endif
