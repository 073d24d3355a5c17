/* SPDX-License-Identifier: MIT */
/* Numbers in protobuf's form: seven bits a byte, the lowest first; the top bit is set in all bytes but the last. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

#define VARINT_BYTES 10 /* of the largest number */

/* Returns how many bytes of `to` are used. */
static inline size_t varint_put(unsigned char to[VARINT_BYTES], uint64_t number)
{
	size_t len = 0;

	for (; number >= 0x80; number >>= 7)
		to[len++] = (unsigned char)(number | 0x80);
	to[len++] = (unsigned char)number;
	return len;
}

static inline void varint_add(struct buf *to, uint64_t number)
{
	unsigned char bytes[VARINT_BYTES];

	buf_add(to, bytes, varint_put(bytes, number));
}

/*
 * Reads a number, of `max` bytes at most. Returns how many it has, or 0 if its last one is not among them: *ret has
 * what they hold.
 */
static inline size_t varint_get(const unsigned char *from, size_t max, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < max; i++) {
		if (i < VARINT_BYTES)
			*ret |= (uint64_t)(from[i] & 0x7f) << (7 * i);
		if (from[i] < 0x80)
			return i + 1;
	}
	return 0;
}
