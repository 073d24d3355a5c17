/* SPDX-License-Identifier: MIT */
/* The instructions of byte code (JVM specification, chapter 6), also those by which HotSpot replaces some. */
#pragma once

#include <stdint.h>

#define BYTECODE_MAX 65535 /* bytes of one method's code (JVM specification, 4.7.3) */

enum bytecode_op {
	OP_LCONST_0 = 0x09,
	OP_BIPUSH = 0x10,
	OP_SIPUSH = 0x11,
	OP_LLOAD = 0x16,
	OP_ILOAD_1 = 0x1b,
	OP_ILOAD_2 = 0x1c,
	OP_LLOAD_0 = 0x1e,
	OP_LLOAD_3 = 0x21,
	OP_ALOAD_0 = 0x2a,
	OP_LALOAD = 0x2f,
	OP_LSTORE = 0x37,
	OP_LSTORE_3 = 0x42,
	OP_LSUB = 0x65,
	OP_IAND = 0x7e,
	OP_LCMP = 0x94,
	OP_IFEQ = 0x99,
	OP_IFLT = 0x9b,
	OP_JSR = 0xa8,
	OP_TABLESWITCH = 0xaa,
	OP_LOOKUPSWITCH = 0xab,
	OP_IRETURN = 0xac,
	OP_RETURN = 0xb1,
	OP_GETSTATIC = 0xb2,
	OP_PUTSTATIC = 0xb3,
	OP_GETFIELD = 0xb4,
	OP_PUTFIELD = 0xb5,
	OP_INVOKEVIRTUAL = 0xb6,
	OP_INVOKESPECIAL = 0xb7,
	OP_INVOKESTATIC = 0xb8,
	OP_INVOKEINTERFACE = 0xb9,
	OP_NEW = 0xbb,
	OP_NEWARRAY = 0xbc,
	OP_ANEWARRAY = 0xbd,
	OP_ATHROW = 0xbf,
	OP_WIDE = 0xc4,
	OP_MULTIANEWARRAY = 0xc5,
	OP_IFNULL = 0xc6,
	OP_IFNONNULL = 0xc7,
	OP_GOTO_W = 0xc8,
	OP_JSR_W = 0xc9,
};

/* Returns the bytes of the instruction at `bci`; 0 if there is no valid one. */
uint32_t bytecode_length(const uint8_t *code, uint32_t len, uint32_t bci);
/* Returns the opcode for which one that only HotSpot has stands, else the same. */
uint8_t bytecode_original(uint8_t opcode);
