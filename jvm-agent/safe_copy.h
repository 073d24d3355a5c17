/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SAFE_COPY_MAX (64u << 10)

/* Copies our own memory. Returns the bytes: fewer at an unmapped page, 0 above SAFE_COPY_MAX. Async-signal-safe. */
size_t safe_copy(void *to, uintptr_t from, size_t bytes);

/* A piece of the JVM's memory, for both memory.h. */
struct memory_piece {
	uintptr_t from;
	size_t bytes;
};
