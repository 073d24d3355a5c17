/* SPDX-License-Identifier: MIT */
/*
 * The JVM's memory, as the code in hotspot/ reads it: in the agent it is the process's own memory. The loader compiles
 * the same code with user/reader/memory.h, for another process's memory. Async-signal-safe, except memory_symbol().
 */
#pragma once

#include <stdbool.h>

#include "safe_copy.h"

#define MEMORY_COPY_MAX SAFE_COPY_MAX

/* Returns the address of a variable that libjvm exports; 0 when there is none. Call memory_open() first. */
uintptr_t memory_symbol(const char *name);
void memory_open(void *libjvm); /* a dlopen() handle, which must stay open */

/* Copies memory that may not be mapped. Returns the bytes: fewer at an unmapped page, 0 above MEMORY_COPY_MAX. */
static inline size_t memory_copy(void *to, uintptr_t from, size_t bytes)
{
	return safe_copy(to, from, bytes);
}

/* The same for several pieces of memory, one after the other. Stops at the first that cannot be copied whole. */
static inline size_t memory_copy_pieces(void *to, const struct memory_piece *pieces, size_t count)
{
	size_t done = 0, copied;

	for (size_t i = 0; i < count; i++) {
		copied = safe_copy((char *)to + done, pieces[i].from, pieces[i].bytes);
		done += copied;
		if (copied < pieces[i].bytes)
			break;
	}
	return done;
}

#define MEMORY_IS_KEPT 0
#define memory_take memory_copy /* the process's own memory is not cached, see user/reader/memory.h */

static inline void memory_forget(void)
{
}

static inline void memory_note_all(void)
{
}

static inline void memory_note(uintptr_t address, const void *bytes, size_t count)
{
}

static inline bool memory_is_as_noted(void)
{
	return true;
}

/* Drops cached memory, so that it is read again. The process's own memory is never cached. */
static inline void memory_renew(void)
{
}

/* These read memory that stays mapped while the JVM lives: libjvm, HotSpot's heads of code heaps, committed code. */
static inline uintptr_t memory_word(uintptr_t address)
{
	return __atomic_load_n((const uintptr_t *)address, __ATOMIC_RELAXED);
}

static inline uint32_t memory_int(uintptr_t address)
{
	return *(const uint32_t *)address;
}

static inline uint16_t memory_half(uintptr_t address)
{
	return *(const uint16_t *)address;
}

static inline uint8_t memory_byte(uintptr_t address)
{
	return __atomic_load_n((const uint8_t *)address, __ATOMIC_RELAXED);
}

/* Copies a string, cut to `size` - 1 characters. An empty string when `address` is 0. */
void memory_text(char *text, uintptr_t address, size_t size);
