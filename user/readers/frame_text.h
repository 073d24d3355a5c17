/* SPDX-License-Identifier: MIT */
/*
 * Lines of text files, and frames of formats that have only the frames' names: java/lang/String.length_[j],
 * libc.so.6`read, [main tid=7].
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "readers/reader.h"

/* Makes a frame from its text. A frame without a suffix is Java if no other form fits: java/lang/String.length. */
struct frame frame_from_text(struct profile *profile, const char *text, size_t len);

/* Returns the kind of a name in brackets: "[main tid=1]", "[java pid=1]", or a mark as "[unknown_Java]". */
enum frame_kind frame_kind_of_brackets(const char *text, size_t len);

/* The texts of frames in a file. Each is parsed once. */
struct frame_texts {
	struct profile *profile;
	struct frame (*from_text)(struct profile *profile, const char *text, size_t len);
	struct intern tokens; /* the texts, as the file has them */
	struct vec(uint32_t) frames; /* index of the frame, by id of the token */
};

int frame_texts_init(struct frame_texts *texts, struct profile *profile,
		     struct frame (*from_text)(struct profile *profile, const char *text, size_t len));
void frame_texts_release(struct frame_texts *texts);
/* The frame's index, added when new; UINT32_MAX when out of memory. */
uint32_t frame_texts_find(struct frame_texts *texts, const char *text, size_t len);

/* ---- lines of a text file of any size ---- */

struct lines {
	struct reader_source *source;
	struct buf text;
	size_t at; /* offset of the next line */
	size_t scanned; /* there is no newline between `at` and here */
	uint64_t number; /* number of the line that was returned last, from 1 */
	bool ended;
};

void lines_init(struct lines *lines, struct reader_source *source);
void lines_release(struct lines *lines);
/*
 * Returns the next line without its line end; valid until the next call. Returns 1, 0 at the end of the file, or
 * -errno; `why` then has the cause, or is empty where the error's own text says it.
 */
int lines_next(struct lines *lines, const char **ret_line, size_t *ret_len, struct buf *why);
size_t lines_without_return(const char *line, size_t len); /* the length without '\r' at the end */
