/* SPDX-License-Identifier: MIT */
/* Reads the bytes of a JFR chunk. Past its end, everything is read as 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "profile/jfr.h"

struct jfr_cursor {
	const unsigned char *bytes;
	size_t at, end;
	bool failed; /* a value extended past `end` */
};

/* A string in the form that the file has. */
struct jfr_text {
	enum jfr_encoding encoding;
	const unsigned char *bytes; /* of JFR_UTF8, JFR_LATIN1 and JFR_CHARS */
	size_t len;
	uint64_t key; /* of JFR_OF_POOL */
};

uint64_t jfr_long_number(struct jfr_cursor *cursor);
/* Most numbers have one byte or two, and a file of 5 GB has billions of them. */
static inline uint64_t jfr_number(struct jfr_cursor *cursor)
{
	if (cursor->failed || cursor->at >= cursor->end || cursor->bytes[cursor->at] & 0x80)
		return jfr_long_number(cursor);
	return cursor->bytes[cursor->at++];
}

uint8_t jfr_byte(struct jfr_cursor *cursor);
uint32_t jfr_four_bytes(struct jfr_cursor *cursor); /* the highest first */
void jfr_skip(struct jfr_cursor *cursor, size_t bytes);
struct jfr_text jfr_text(struct jfr_cursor *cursor);
/* Appends the string as UTF-8, cut if it is very long. Nothing for strings without bytes. */
void jfr_add_text(struct buf *out, const struct jfr_text *text);
