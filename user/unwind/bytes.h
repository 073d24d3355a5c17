/* SPDX-License-Identifier: MIT */
/*
 * Reads numbers from untrusted bytes, which are little-endian as on both architectures. Reads past the end return 0 and
 * set `bad`, which stays set, so a parser can check once after several reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/varint.h"

struct bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

static inline size_t bytes_left(const struct bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

static inline uint64_t bytes_number(struct bytes *bytes, size_t width)
{
	uint64_t number = 0;

	if (bytes_left(bytes) < width) {
		bytes->bad = true;
		bytes->at = bytes->end;
		return 0;
	}
	memcpy(&number, bytes->at, width);
	bytes->at += width;
	return number;
}

/* Returns the next `len` bytes as a separate range. */
static inline struct bytes bytes_take(struct bytes *bytes, uint64_t len)
{
	struct bytes taken = {bytes->at, bytes->at, false};

	if (len > bytes_left(bytes)) {
		bytes->bad = true;
		len = bytes_left(bytes);
	}
	bytes->at += len;
	taken.end = bytes->at;
	return taken;
}

#define BYTES_LEB128_MAX 16 /* bytes; a number of 64 bits has 10 at most, and some assemblers pad it */

static inline uint64_t bytes_leb128(struct bytes *bytes, bool is_signed)
{
	size_t left = bytes_left(bytes), used;
	uint64_t number;

	used = varint_get(bytes->at, left < BYTES_LEB128_MAX ? left : BYTES_LEB128_MAX, &number);
	bytes->bad |= !used;
	bytes->at += used ? used : left;
	if (is_signed && used && 7 * used < 64 && bytes->at[-1] & 0x40)
		number |= ~0ull << (7 * used);
	return number;
}

static inline uint64_t bytes_uleb(struct bytes *bytes)
{
	return bytes_leb128(bytes, false);
}

static inline int64_t bytes_sleb(struct bytes *bytes)
{
	return (int64_t)bytes_leb128(bytes, true);
}
