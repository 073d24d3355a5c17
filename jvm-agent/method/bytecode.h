/* SPDX-License-Identifier: MIT */
/* Bytecode of a method (JVM specification, chapter 6): copying it with code at its entry, returns and end inserted. */
#pragma once

#include "hotspot/bytecodes.h"
#include "method/classfile.h"

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
