/* SPDX-License-Identifier: MIT */
#include "hotspot/bytecodes.h"

#include <stdbool.h>
#include <stddef.h>

#define FIRST_OF_HOTSPOT 203 /* after the byte codes of the JVM specification */

/* Bytes of instructions: each holds from its opcode to the next one that is listed. 0: no instruction, or not fixed. */
static const struct {
	uint8_t from;
	uint8_t bytes;
} lengths[] = {
	{0x00, 1}, {0x10, 2}, {0x11, 3}, {0x12, 2}, {0x13, 3}, {0x15, 2}, {0x1a, 1}, {0x36, 2}, {0x3b, 1},
	{0x84, 3}, {0x85, 1}, {0x99, 3}, {0xa9, 2}, {0xaa, 0}, {0xac, 1}, {0xb2, 3}, {0xb9, 5}, {0xbb, 3},
	{0xbc, 2}, {0xbd, 3}, {0xbe, 1}, {0xc0, 3}, {0xc2, 1}, {0xc4, 0}, {0xc5, 4}, {0xc6, 3}, {0xc8, 5},
	{0xca, 0},
};

/* What the instructions stand for that only HotSpot has. JDK 8 to 27. */
static const uint8_t originals[] = {
	0xb4, 0xb4, 0xb4, 0xb4, 0xb4, 0xb4, 0xb4, 0xb4, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0x2a,
	0x2a, 0x2a, 0x2a, 0x15, 0x15, 0x15, 0xb6, 0xab, 0xab, 0x12, 0x13, 0xb1, 0xb6, 0xb4, 0xb5, 0x2a, 0x15,
};

static uint32_t fixed_length(uint8_t op)
{
	size_t i = sizeof(lengths) / sizeof(lengths[0]) - 1;

	while (lengths[i].from > op)
		i--;
	return lengths[i].bytes;
}

static int32_t s4_at(const uint8_t *at)
{
	return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

/* The numbers of a switch lie at multiples of 4; the last that is not a target is its count, or its highest key. */
static uint32_t switch_length(const uint8_t *code, uint32_t len, uint32_t bci)
{
	bool has_keys = code[bci] == OP_LOOKUPSWITCH;
	uint32_t fixed = 4 - bci % 4 + (has_keys ? 8 : 12);
	const uint8_t *end = code + bci + fixed;
	int64_t count;

	if (fixed > len - bci)
		return 0;
	count = has_keys ? s4_at(end - 4) : (int64_t)s4_at(end - 4) - s4_at(end - 8) + 1;
	return count < 0 || count > BYTECODE_MAX ? 0 : fixed + (uint32_t)count * (has_keys ? 8 : 4);
}

static uint32_t wide_length(const uint8_t *code, uint32_t len, uint32_t bci)
{
	uint8_t op = len - bci > 1 ? code[bci + 1] : 0;

	return op == 0x84 ? 6 : fixed_length(op) == 2 && op != 0x10 && op != 0x12 && op != 0xbc ? 4 : 0;
}

uint32_t bytecode_length(const uint8_t *code, uint32_t len, uint32_t bci)
{
	uint8_t op = code[bci];
	uint32_t bytes = fixed_length(op);

	if (op == OP_TABLESWITCH || op == OP_LOOKUPSWITCH)
		bytes = switch_length(code, len, bci);
	else if (op == OP_WIDE)
		bytes = wide_length(code, len, bci);
	return bytes <= len - bci ? bytes : 0;
}

uint8_t bytecode_original(uint8_t opcode)
{
	size_t own = opcode - (size_t)FIRST_OF_HOTSPOT;

	return own < sizeof(originals) ? originals[own] : opcode;
}
