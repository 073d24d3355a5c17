/* SPDX-License-Identifier: MIT */
#include "writers/duet_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FULL_BYTES (LAYOUT_SECTION_MAX / 2) /* leaves room for one more row and its strings */
#define FULL_SAMPLES (65536 * 40) /* bytes */
#define PACK_MIN 64 /* bytes; smaller sections are not compressed */
#define PACK_LEVEL 1 /* zlib's fastest: the recorder does this while it records */

void duet_chunk_init(struct duet_chunk *chunk)
{
	for (size_t i = 0; i < LAYOUT_TYPES; i++)
		buf_init(&chunk->sections[i]);
	buf_init(&chunk->columns);
	buf_init(&chunk->body);
}

void duet_chunk_release(struct duet_chunk *chunk)
{
	for (size_t i = 0; i < LAYOUT_TYPES; i++)
		buf_release(&chunk->sections[i]);
	buf_release(&chunk->columns);
	buf_release(&chunk->body);
}

bool duet_chunk_is_full(const struct duet_chunk *chunk, enum layout_type type)
{
	return chunk->sections[type].len >= (type == LAYOUT_SAMPLES ? FULL_SAMPLES : FULL_BYTES) ||
	       chunk->sections[LAYOUT_TEXTS].len >= FULL_BYTES;
}

/*
 * Appends the compressed rows to chunk->body. Returns their size, 0 if compression does not make them smaller, or
 * -ENOMEM.
 */
static int64_t pack(struct duet_chunk *chunk, const struct buf *rows, size_t row_bytes)
{
	uLongf packed = compressBound(rows->len);
	const void *from = rows->data;
	size_t at = chunk->body.len;

	if (rows->len < PACK_MIN)
		return 0;
	if (!buf_reserve(&chunk->body, packed) || !buf_reserve(&chunk->columns, rows->len))
		return -ENOMEM;
	if (row_bytes) {
		layout_to_columns((unsigned char *)chunk->columns.data, from, rows->len / row_bytes, row_bytes);
		from = chunk->columns.data;
	}
	if (compress2((Bytef *)chunk->body.data + at, &packed, from, rows->len, PACK_LEVEL) != Z_OK)
		return -ENOMEM;
	if (packed >= rows->len)
		return 0;
	chunk->body.len = at + packed;
	return (int64_t)packed;
}

/* Returns the size of the section in the file, or -ENOMEM. */
static int64_t add_section(struct duet_chunk *chunk, enum layout_type type)
{
	const struct buf *rows = &chunk->sections[type];
	struct layout_section section = {
		.type = type,
		.row_bytes = layout_rows[type].bytes,
		.raw_bytes = (uint32_t)rows->len,
		.stored_bytes = (uint32_t)rows->len,
	};
	size_t at = chunk->body.len;
	int64_t packed;

	buf_add(&chunk->body, &section, sizeof(section));
	packed = chunk->body.failed ? -ENOMEM : pack(chunk, rows, section.row_bytes);
	if (packed < 0)
		return packed;
	if (packed) {
		section.coding = LAYOUT_DEFLATE;
		section.stored_bytes = (uint32_t)packed;
		memcpy(chunk->body.data + at, &section, sizeof(section));
	} else {
		buf_add(&chunk->body, rows->data, rows->len);
	}
	return chunk->body.failed ? -ENOMEM : (int64_t)(chunk->body.len - at);
}

static uint32_t crc_of(const void *bytes, size_t len)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)len);
}

int duet_chunk_write(struct duet_chunk *chunk, uint32_t part, uint32_t flags, FILE *out, uint64_t *tables_bytes,
		     uint64_t *samples_bytes)
{
	struct layout_chunk header = {.magic = LAYOUT_CHUNK_MAGIC, .part = part, .flags = flags};

	buf_clear(&chunk->body);
	for (enum layout_type type = LAYOUT_TEXTS; type < LAYOUT_TYPES; type++) {
		int64_t stored = chunk->sections[type].failed ? -ENOMEM : 0;

		if (!stored && !chunk->sections[type].len)
			continue;
		if (!stored)
			stored = add_section(chunk, type);
		if (stored < 0)
			return -ENOMEM;
		*(type == LAYOUT_SAMPLES ? samples_bytes : tables_bytes) += (uint64_t)stored;
		header.sections++;
		buf_clear(&chunk->sections[type]);
	}
	header.body_bytes = chunk->body.len;
	header.body_crc = crc_of(chunk->body.data, chunk->body.len);
	header.crc = crc_of(&header, offsetof(struct layout_chunk, crc));
	fwrite(&header, sizeof(header), 1, out);
	fwrite(chunk->body.data, 1, chunk->body.len, out);
	return 0;
}
