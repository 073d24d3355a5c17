/* SPDX-License-Identifier: MIT */
#include "readers/wire.h"

#include <errno.h>
#include <string.h>

#include "base/varint.h"

int wire_varint(struct wire *wire, uint64_t *ret)
{
	size_t left = wire->len - wire->at;
	size_t used = varint_get(wire->bytes + wire->at, left < VARINT_BYTES ? left : VARINT_BYTES, ret);

	wire->at += used;
	return used ? 1 : left ? -EINVAL : 0;
}

static int fixed(struct wire *wire, size_t bytes, struct wire_field *ret)
{
	if (wire->len - wire->at < bytes)
		return -EINVAL;
	ret->value = 0;
	memcpy(&ret->value, wire->bytes + wire->at, bytes); /* little-endian, as duet's machines are */
	wire->at += bytes;
	return 1;
}

static int bytes_of(struct wire *wire, struct wire_field *ret)
{
	uint64_t len;

	if (wire_varint(wire, &len) <= 0 || len > wire->len - wire->at)
		return -EINVAL;
	ret->bytes = wire->bytes + wire->at;
	ret->len = (size_t)len;
	wire->at += (size_t)len;
	return 1;
}

static int value_of(struct wire *wire, struct wire_field *ret)
{
	switch (ret->type) {
	case WIRE_VARINT:
		return wire_varint(wire, &ret->value) > 0 ? 1 : -EINVAL;
	case WIRE_FIXED64:
		return fixed(wire, 8, ret);
	case WIRE_FIXED32:
		return fixed(wire, 4, ret);
	case WIRE_BYTES:
		return bytes_of(wire, ret);
	}
	return -EINVAL;
}

int wire_next(struct wire *wire, struct wire_field *ret)
{
	size_t start = wire->at;
	uint64_t tag;
	int got = wire_varint(wire, &tag);

	if (got <= 0)
		return got;
	*ret = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7)};
	got = tag >> 3 && tag <= UINT32_MAX ? value_of(wire, ret) : -EINVAL;
	if (got < 0)
		wire->at = start;
	return got;
}
