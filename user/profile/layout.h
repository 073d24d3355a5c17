/* SPDX-License-Identifier: MIT */
/*
 * The layout of .duet files, shared by their reader and writer. FORMAT.md describes it. All numbers are little-endian,
 * like those of every machine that duet runs on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "profile/profile.h"

#define LAYOUT_MAGIC "\x89" "duet\r\n\x1a" /* like that of PNG: a copy made in text mode breaks it */
#define LAYOUT_MAGIC_BYTES 8
#define LAYOUT_VERSION 1
#define LAYOUT_CHUNK_MAGIC 0x6b6e6863 /* "chnk" */

/* Limits: the writer stays within them, the reader checks them. */
#define LAYOUT_BODY_MAX (256u << 20) /* bytes of a chunk's sections */
#define LAYOUT_SECTION_MAX (32u << 20) /* bytes of a section, unpacked */
#define LAYOUT_SECTIONS_MAX 64 /* of one chunk */
#define LAYOUT_ROW_MAX 4096 /* bytes */
#define LAYOUT_TEXT_MAX (1u << 20) /* bytes of one string */
#define LAYOUT_DEPTH_MAX 65536 /* frames of a stack */

/* The beginning of the file. */
struct layout_start {
	uint8_t magic[LAYOUT_MAGIC_BYTES];
	uint32_t version; /* a reader refuses a newer one */
	uint32_t bytes; /* size of this struct in the file; a later version may add fields */
};

enum layout_flags {
	LAYOUT_END = 1 << 0, /* the recording's last chunk */
};

/* The beginning of each chunk. Its sections follow. */
struct layout_chunk {
	uint32_t magic;
	uint32_t part; /* 0: row numbers begin again; otherwise they continue those of the previous chunk, part - 1 */
	uint32_t flags;
	uint32_t sections;
	uint64_t body_bytes;
	uint32_t body_crc; /* zlib's crc32() */
	uint32_t crc; /* of the fields above */
};

enum layout_coding {
	LAYOUT_PLAIN,
	LAYOUT_DEFLATE, /* first bytes of all rows, second bytes of all rows, …, compressed with zlib's compress() */
};

/* The beginning of each section; its data follow. Sections are in order of type: rows follow those they refer to. */
struct layout_section {
	uint16_t type;
	uint16_t coding;
	uint32_t row_bytes; /* the reader skips unknown fields at the end; missing ones are 0 */
	uint32_t raw_bytes; /* uncompressed */
	uint32_t stored_bytes;
};

enum layout_type {
	LAYOUT_TEXTS = 1, /* strings: length (uint32_t) and bytes; row_bytes is 0 */
	LAYOUT_TIMES, /* one row; a later one replaces it. The same for the host */
	LAYOUT_HOST,
	LAYOUT_EVENTS,
	LAYOUT_FRAMES,
	LAYOUT_OWNERS,
	LAYOUT_THREADS,
	LAYOUT_NODES,
	LAYOUT_SAMPLES,
	LAYOUT_LOSSES, /* a later section replaces it. The same for the facts */
	LAYOUT_FACTS,
	LAYOUT_NOTES,
	LAYOUT_USAGES,
	LAYOUT_TYPES
};

_Static_assert(sizeof(struct layout_start) == 16, "layout_start");
_Static_assert(sizeof(struct layout_chunk) == 32, "layout_chunk");
_Static_assert(sizeof(struct layout_section) == 16, "layout_section");
/* The file stores kinds and units by number, so a new one must get the next number. */
_Static_assert(FRAME_MARK == 10 && FRAME_CLASS == 11 && FRAME_STATE == 12 && FRAME_WAKER == 13, "as files have them");
_Static_assert(PROFILE_NOTE_LIBRARY == 2 && PROFILE_NOTE_HEAP == 4, "as files have them");
_Static_assert(FRAME_CPU == 14 && FRAME_SPAN == 15, "as files have them");
_Static_assert(PROFILE_COUNT == 1 && PROFILE_BYTES == 2, "numbers that files have");

/* Rows that have no struct in the profile. */
struct layout_times {
	uint64_t start_realtime_ns;
	uint64_t length_ns; /* until this chunk */
	uint32_t processes; /* enum profile_processes */
	uint32_t is_private;
};

struct layout_node {
	uint32_t up; /* row number minus the parent's row number; the root has number 0 and is not stored */
	uint32_t frame;
};

struct layout_thread {
	struct profile_thread thread;
	uint32_t has_java_id;
	uint64_t java_id; /* the value of profile_java_id() */
};

/* A row consists of the fields of a struct, one after the other. Strings are stored as their numbers in the file. */
struct layout_field {
	uint16_t offset;
	uint8_t bytes; /* 4 or 8 */
	bool is_text;
};

struct layout_rows {
	const struct layout_field *fields; /* ends with a field of 0 bytes; NULL for LAYOUT_TEXTS */
	uint32_t bytes; /* bytes of a row */
	uint32_t struct_bytes;
};

extern const struct layout_rows layout_rows[LAYOUT_TYPES];

typedef uint32_t (*layout_text)(void *context, uint32_t id);

/* Appends a row. `text` returns the number of a string in the file. */
void layout_put(enum layout_type type, const void *row, layout_text text, void *context, struct buf *out);
/* Fills the struct at `ret_row` from a row. `text` returns the profile's id of a string. */
void layout_get(enum layout_type type, const unsigned char *bytes, size_t row_bytes, layout_text text, void *context,
		void *ret_row);

/* Convert rows to columns of bytes, and back. `to` and `from` have `rows` * `row_bytes` bytes each. */
void layout_to_columns(unsigned char *to, const unsigned char *from, size_t rows, size_t row_bytes);
void layout_from_columns(unsigned char *to, const unsigned char *from, size_t rows, size_t row_bytes);
