/* SPDX-License-Identifier: MIT */
/* A piece of the JVM's memory, for both memory.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct memory_piece {
	uintptr_t from;
	size_t bytes;
};
