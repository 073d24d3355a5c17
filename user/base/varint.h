/* SPDX-License-Identifier: MIT */
/* Numbers in protobuf's form: seven bits a byte, the lowest first; the top bit is set in all bytes but the last. */
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

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

#endif
