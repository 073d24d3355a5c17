/* SPDX-License-Identifier: MIT */
/* A piece of the JVM's memory, for both memory.h. */
#ifndef MEMORY_PIECE_H
#define MEMORY_PIECE_H

#include <stddef.h>
#include <stdint.h>

struct memory_piece {
	uintptr_t from;
	size_t bytes;
};

#endif
