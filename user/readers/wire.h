/* SPDX-License-Identifier: MIT */
/* Reads the fields of a protobuf message without unpacking it, so that a large one needs no copy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
	const unsigned char *bytes;
	size_t len;
	size_t at;
};

struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value; /* of a number */
	const unsigned char *bytes; /* of WIRE_BYTES */
	size_t len;
};

/* Returns 1, 0 at the end, or -EINVAL at wire->at when there is no complete field. */
int wire_next(struct wire *wire, struct wire_field *ret);
/* Reads a number of a packed field. Returns as wire_next(). */
int wire_varint(struct wire *wire, uint64_t *ret);
