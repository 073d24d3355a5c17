/* SPDX-License-Identifier: MIT */
/*
 * The StackMapTable of a method (JVM specification, 4.7.4) after code was inserted: its frames are where their code is
 * now. If a local variable of type long was appended to the method, every frame gets it too.
 */
#pragma once

#include "method/bytecode.h"

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
