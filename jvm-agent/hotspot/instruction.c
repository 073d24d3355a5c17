/* SPDX-License-Identifier: MIT */
#include "hotspot/instruction.h"

#include <string.h>

#define X86_MAX_BYTES 15
#define OPERAND_16 0x66
#define ADDRESS_32 0x67
#define REX_W 8

/*
 * What follows an opcode of 64-bit mode, 16 opcodes a row: '.' nothing; 'm' ModRM; 'b' and 'B' a byte, the latter after
 * ModRM; 'z' and 'Z' four bytes, or two with the prefix 66, likewise; 'w' two bytes; 'e' three; 'v' four or, with
 * REX.W, eight; 'a' an address; 't' and 'T' ModRM, and if its field reg is 0 or 1 also a byte or 'z'; 'p' a prefix;
 * 'r' REX; ' ' not in 64-bit mode or none of a program's instructions.
 */
static const char one_byte[] = "mmmmbz  mmmmbz mmmmmbz  mmmmbz  "
			       "mmmmbzp mmmmbzp mmmmbzp mmmmbzp "
			       "rrrrrrrrrrrrrrrr................"
			       "   mppppzZbB....bbbbbbbbbbbbbbbb"
			       "BZ Bmmmmmmmmmmmm.......... ....."
			       "aaaa....bz......bbbbbbbbvvvvvvvv"
			       "BBw.  BZe.w..b .mmmm   .mmmmmmmm"
			       "bbbbbbbbzz b....p pp..tT......mm";
static const char after_0f[] = "mmmm ..... . m  mmmmmmmmmmmmmmmm"
			       "mmmm    mmmmmmmm......  .       "
			       "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmmBBBBmmm.mm  mmmm"
			       "zzzzzzzzzzzzzzzzmmmmmmmmmmmmmmmm"
			       "...mBm  ...mBmmmmmmmmmmmmmBmmmmm"
			       "mmBmBBBm........mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";

struct x86_reading {
	const uint8_t *code;
	size_t bytes, at;
	bool is_16, is_address_32, is_wide; /* prefixes */
	uint8_t opcode;
	char form; /* one of the letters above; 0: not known */
	const char *map;
	uint8_t modrm;
};

static uint8_t next_byte(struct x86_reading *r)
{
	if (r->at < r->bytes)
		return r->code[r->at++];
	r->form = ' ';
	return 0;
}

/* The instructions with VEX and EVEX have the forms of those after 0F, 0F 38 and 0F 3A, if the map is one of these. */
static char vector_form(uint32_t map, uint8_t opcode)
{
	if (map == 3)
		return 'B';
	if (map == 1 && opcode == 0x77)
		return '.';
	return map == 1 && after_0f[opcode] == 'B' ? 'B' : 'm';
}

static void read_vector(struct x86_reading *r, uint8_t first)
{
	uint8_t map = first == 0xc5 ? 1 : next_byte(r);

	map &= first == 0x62 ? 7 : 31;
	next_byte(r);
	if (first == 0x62)
		next_byte(r);
	r->opcode = next_byte(r);
	if (r->form != ' ')
		r->form = vector_form(map, r->opcode);
}

static void read_after_0f(struct x86_reading *r)
{
	r->map = after_0f;
	r->opcode = next_byte(r);
	if (r->form == ' ')
		return;
	r->form = after_0f[r->opcode];
	if (r->opcode != 0x38 && r->opcode != 0x3a)
		return;
	r->form = r->opcode == 0x38 ? 'm' : 'B';
	r->map = NULL;
	next_byte(r);
}

static void read_opcode(struct x86_reading *r)
{
	r->form = 'p';
	r->map = one_byte;
	do {
		r->opcode = next_byte(r);
		if (r->form == ' ')
			return;
		r->form = one_byte[r->opcode];
		r->is_16 |= r->opcode == OPERAND_16;
		r->is_address_32 |= r->opcode == ADDRESS_32;
		if (r->form == 'r')
			r->is_wide = r->opcode & REX_W;
	} while (r->form == 'p' || r->form == 'r');
	if (r->opcode == 0x0f)
		read_after_0f(r);
	else if (r->opcode == 0xc4 || r->opcode == 0xc5 || r->opcode == 0x62) {
		r->map = NULL;
		r->form = 'm';
		read_vector(r, r->opcode);
	}
}

static void read_modrm(struct x86_reading *r)
{
	uint8_t mod, rm, base;

	r->modrm = next_byte(r);
	mod = r->modrm >> 6;
	rm = r->modrm & 7;
	if (mod == 3)
		return;
	base = rm == 4 ? next_byte(r) & 7 : rm;
	r->at += mod == 1 ? 1 : mod == 2 || (!mod && base == 5) ? 4 : 0;
}

static size_t immediate(const struct x86_reading *r)
{
	size_t word = r->is_16 && !r->is_wide ? 2 : 4;
	bool is_test = !(r->modrm & 0x30); /* of the groups F6 and F7 */

	switch (r->form) {
	case 'b':
	case 'B':
		return 1;
	case 'z':
	case 'Z':
		return word;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'v':
		return r->is_wide ? 8 : word;
	case 'a':
		return r->is_address_32 ? 4 : 8;
	case 't':
		return is_test ? 1 : 0;
	case 'T':
		return is_test ? word : 0;
	default:
		return 0;
	}
}

static enum instruction_kind kind_of(const struct x86_reading *r)
{
	uint8_t op = r->opcode, reg = r->modrm >> 3 & 7;

	if (r->map == after_0f)
		return (op & 0xf0) == 0x80 ? INSTRUCTION_BRANCH : op == 0x0b ? INSTRUCTION_END : INSTRUCTION_OTHER;
	if (r->map != one_byte)
		return INSTRUCTION_OTHER;
	if ((op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0)
		return INSTRUCTION_BRANCH;
	if (op == 0xe8 || (op == 0xff && (reg == 2 || reg == 3)))
		return INSTRUCTION_CALL;
	if (op == 0xe9 || op == 0xeb)
		return INSTRUCTION_JUMP;
	return (op & 0xf6) == 0xc2 || op == 0xcc || op == 0xf4 || (op == 0xff && (reg == 4 || reg == 5))
		       ? INSTRUCTION_END
		       : INSTRUCTION_OTHER;
}

uint32_t instruction_x86(const uint8_t *code, size_t bytes, struct instruction *ret)
{
	struct x86_reading r = {.code = code, .bytes = bytes < X86_MAX_BYTES ? bytes : X86_MAX_BYTES};
	int32_t step = 0;
	size_t operand;

	read_opcode(&r);
	if (strchr("mBZtT", r.form) && r.form)
		read_modrm(&r);
	operand = immediate(&r);
	r.at += operand;
	if (r.form == ' ' || !r.form || r.at > r.bytes)
		return 0;
	*ret = (struct instruction){.bytes = (uint32_t)r.at, .kind = kind_of(&r)};
	if (operand == 1)
		step = (int8_t)code[r.at - 1];
	else if (operand == 4)
		memcpy(&step, code + r.at - 4, sizeof(step));
	if (operand && ret->kind >= INSTRUCTION_CALL && ret->kind <= INSTRUCTION_JUMP)
		ret->target = (int64_t)r.at + step;
	ret->is_request = r.at == 5 && code[0] == 0xbe && step < 0; /* mov esi, imm32 */
	return ret->bytes;
}

/* Returns the signed field of `width` bits from bit `from` on, in instructions. */
static int64_t arm64_step(uint32_t word, int from, int width)
{
	return (int64_t)((int32_t)(word << (32 - from - width)) >> (32 - width)) * 4;
}

uint32_t instruction_arm64(const uint8_t *code, size_t bytes, struct instruction *ret)
{
	uint32_t word;

	if (bytes < sizeof(word))
		return 0;
	memcpy(&word, code, sizeof(word));
	/* movn w1 */
	*ret = (struct instruction){.bytes = sizeof(word), .is_request = (word & 0xffe0001f) == 0x12800001};
	if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000) { /* BL, BLR */
		ret->kind = INSTRUCTION_CALL;
		ret->target = word >> 30 == 2 ? arm64_step(word, 0, 26) : 0;
	} else if ((word & 0xfc000000) == 0x14000000) { /* B */
		ret->kind = INSTRUCTION_JUMP;
		ret->target = arm64_step(word, 0, 26);
	} else if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000) { /* B.cond, CBZ, CBNZ */
		ret->kind = INSTRUCTION_BRANCH;
		ret->target = arm64_step(word, 5, 19);
	} else if ((word & 0x7e000000) == 0x36000000) { /* TBZ, TBNZ */
		ret->kind = INSTRUCTION_BRANCH;
		ret->target = arm64_step(word, 5, 14);
	} else if ((word & 0xffbffc1f) == 0xd61f0000 || (word & 0xffe0001f) == 0xd4200000 || !(word >> 16)) {
		ret->kind = INSTRUCTION_END; /* BR, RET; BRK; UDF */
	}
	return ret->bytes;
}
