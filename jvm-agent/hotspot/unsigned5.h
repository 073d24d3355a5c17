/* SPDX-License-Identifier: MIT */
/* HotSpot's packed streams (unsigned5.hpp): integers of 1 to 5 bytes, the last of which is below a limit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct unsigned5 {
	const unsigned char *at, *end;
	unsigned int excess; /* subtracted from each byte: 1 since JDK 20, where a byte of 0 marks an end; else 0 */
	bool failed; /* the stream was cut off, or had an invalid byte */
};

static inline unsigned int unsigned5_byte(struct unsigned5 *stream)
{
	if (stream->at < stream->end)
		return *stream->at++;
	stream->failed = true;
	return 0;
}

static inline uint32_t unsigned5_read(struct unsigned5 *stream)
{
	uint32_t sum = 0;

	for (int i = 0; i < 5; i++) {
		unsigned int byte = unsigned5_byte(stream);

		if (byte < stream->excess)
			stream->failed = true;
		sum += (byte - stream->excess) << (6 * i);
		if (byte < 192)
			break;
	}
	return sum;
}

/* The sign is the lowest bit. */
static inline int32_t unsigned5_read_signed(struct unsigned5 *stream)
{
	uint32_t value = unsigned5_read(stream);

	return (int32_t)(value >> 1 ^ -(value & 1));
}
