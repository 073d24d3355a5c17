/* SPDX-License-Identifier: MIT */
/* Collects the rows of a chunk of a .duet file and writes it. The layout is in profile/layout.h. */
#ifndef WRITERS_DUET_CHUNK_H
#define WRITERS_DUET_CHUNK_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "profile/layout.h"

struct duet_chunk {
	struct buf sections[LAYOUT_TYPES]; /* rows */
	struct buf columns, body; /* scratch */
};

void duet_chunk_init(struct duet_chunk *chunk);
void duet_chunk_release(struct duet_chunk *chunk);
/* Returns true if the chunk must be written now. Call after a row of this type was added. */
bool duet_chunk_is_full(const struct duet_chunk *chunk, enum layout_type type);
/*
 * Writes the chunk to `out` and empties it. Adds the sizes of its sections in the file to *tables_bytes and
 * *samples_bytes. Returns 0 or -ENOMEM; the stream keeps errors of writing.
 */
int duet_chunk_write(struct duet_chunk *chunk, uint32_t part, uint32_t flags, FILE *out, uint64_t *tables_bytes,
		     uint64_t *samples_bytes);

#endif
