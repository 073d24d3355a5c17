/* SPDX-License-Identifier: MIT */
/*
 * The chunks of a JFR file. The last one is open: parts are appended to it, and its header, which has its size and the
 * place of its newest constant pools, is written anew each time. Between any two writes the file is a whole recording
 * of the parts so far, so that a writer that is killed, or whose disk is full, leaves a readable file. The only
 * exceptions are moments of some microseconds in which nothing but headers are written.
 *
 * If the output cannot be written in the middle, such as a pipe, each chunk is written as one part.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "profile/jfr.h"

/* Times of the header. */
struct jfr_times {
	uint64_t start_ns; /* since 1970 */
	uint64_t duration_ns;
	uint64_t start_ticks;
	uint64_t ticks_per_second;
};

struct jfr_file {
	FILE *out; /* not owned */
	bool has_parts; /* the output can be written in the middle */
	int64_t begin; /* offset of the open chunk */
	uint64_t bytes; /* bytes of the open chunk in the file; 0 = it has no part yet */
	uint64_t pools_at; /* offset of its newest constant pools */
	uint64_t closed; /* bytes of the previous chunk, while that must be made shorter again; else 0 */
	int64_t closed_begin;
	struct buf part;
};

void jfr_file_init(struct jfr_file *file, FILE *out);
void jfr_file_release(struct jfr_file *file);
/*
 * Returns the offset in the open chunk at which the constant pools of a part will be, if `before` bytes of the part
 * come before them.
 */
uint64_t jfr_file_place(const struct jfr_file *file, size_t before);
/*
 * Appends a part: the metadata, which only the first part of a chunk has, events, and the constant pools, which may be
 * empty. Returns 0 or -errno. If the stream failed, its position is after the whole parts of the file.
 */
int jfr_file_append(struct jfr_file *file, const struct buf *metadata, const struct buf *events,
		    const struct buf *pools, const struct jfr_times *times);
void jfr_file_end_chunk(struct jfr_file *file); /* the next part begins a chunk */
/*
 * Appends whole chunks of another file, from its beginning; call it between chunks. Returns as jfr_file_append().
 */
int jfr_file_add_chunks(struct jfr_file *file, int from);
/* Stores the header of the first chunk. Returns 0, or -EBADMSG if the file does not consist of whole chunks. */
int jfr_file_check(int file, struct jfr_header *ret_first);
