/* SPDX-License-Identifier: MIT */
/* Appends fields of a protobuf message to its bytes, so that a large message need not be in memory as a whole. */
#ifndef WRITERS_OTLP_PACKING_H
#define WRITERS_OTLP_PACKING_H

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/varint.h"

static inline void add_bytes(struct buf *to, unsigned int field, const char *bytes, size_t len)
{
	varint_add(to, field << 3 | 2);
	varint_add(to, len);
	buf_add(to, bytes, len);
}

static inline void add_message(struct buf *to, unsigned int field, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);

	varint_add(to, field << 3 | 2);
	varint_add(to, len);
	if (buf_reserve(to, len))
		to->len += protobuf_c_message_pack(message, (uint8_t *)to->data + to->len);
}

/* What comes before the bytes of a field. */
static inline void write_head(FILE *out, unsigned int field, uint64_t bytes)
{
	unsigned char head[2 * VARINT_BYTES];
	size_t len = varint_put(head, (uint64_t)field << 3 | 2);

	len += varint_put(head + len, bytes);
	fwrite(head, 1, len, out);
}

#endif
