/* SPDX-License-Identifier: MIT */
/* Bytecode of a method (JVM specification, chapter 6): copying it with code at its entry, returns and end inserted. */
#pragma once

#include "method/classfile.h"

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
	OP_INVOKESPECIAL = 0xb7,
	OP_INVOKESTATIC = 0xb8,
	OP_NEW = 0xbb,
	OP_ATHROW = 0xbf,
	OP_WIDE = 0xc4,
	OP_IFNULL = 0xc6,
	OP_IFNONNULL = 0xc7,
	OP_GOTO_W = 0xc8,
	OP_JSR_W = 0xc9,
};

/* Returns the bytes of the instruction at `bci`; 0 if there is no valid one. */
uint32_t bytecode_length(const uint8_t *code, uint32_t len, uint32_t bci);
static inline bool bytecode_is_return(uint8_t op)
{
	return op >= OP_IRETURN && op <= OP_RETURN;
}

/*
 * No handler that returns may be in force before a constructor's object is one. Returns the bci after the call of
 * super() or this(), or -ENOENT if it is not certain that the code behind that bci, and no other, runs after it.
 */
int constructor_begin(const struct class_file *class, const uint8_t *code, uint32_t len);

struct bytecode_insertion {
	struct class_writer entry; /* runs once, at the call */
	struct class_writer exit; /* runs before each return, with what is returned on the operand stack */
	struct class_writer handler; /* at the end */
};

#define BYTECODE_NOWHERE UINT32_MAX

/* Where code is after the insertion. */
struct bytecode_map {
	/* owned: for each bci at which an instruction begins, and for the end; else BYTECODE_NOWHERE. A jump to a
	 * return leads to what is inserted before it. */
	uint32_t *at;
	uint32_t len; /* bytes of the code before */
	uint32_t new_len; /* bytes with all insertions */
	uint32_t handler_at;
};

/* Returns where a bci is now, or BYTECODE_NOWHERE. */
uint32_t bytecode_map_at(const struct bytecode_map *map, int64_t bci);

/* Lays the code out anew. Returns 0, -EINVAL, -ERANGE if it is too long, or -ENOMEM. Free ret->at after 0. */
int bytecode_lay_out(const uint8_t *code, uint32_t len, const struct bytecode_insertion *insertion,
		     struct bytecode_map *ret);
/* Writes it. Returns 0, -EINVAL, or -ERANGE if a jump gets too long. */
int bytecode_write(const uint8_t *code, const struct bytecode_insertion *insertion, const struct bytecode_map *map,
		   struct class_writer *to);

/*
 * stackmap.c: the StackMapTable of a method (JVM specification, 4.7.4) after code was inserted: its frames are where
 * their code is now. If a local variable of type long was appended to the method, every frame gets it too.
 */

struct stackmap_method {
	const struct class_file *class;
	struct class_text name, descriptor;
	bool is_static;
	uint16_t max_locals; /* before */
	uint16_t throwable; /* number of the constant java/lang/Throwable; with has_handler only */
	bool has_long; /* the method has the variable more */
	bool has_handler; /* a frame for map.handler_at is added */
	const struct bytecode_map *map;
	struct class_pool *pool; /* gets the classes of the method's parameters, with `has_long` */
};

/* Frames are written in full, so a short table can become a long one. */
#define STACKMAP_MAX (1u << 20) /* bytes; a longer one is refused with -ERANGE */

/* Writes the new attribute; `old` may be empty. Returns the number of frames, or -EINVAL, -ERANGE, -ENOMEM. */
int stackmap_write(const struct stackmap_method *method, struct class_reader old, struct class_writer *to);
