/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Finds the context of a thread. The includer defines, before it includes this file:
 *
 *   int context_read(void *to, uint32_t bytes, uint64_t from);   reads the program's memory; 0, or another number
 *
 * What is read is the program's own and may be anything. A wrong address is one that cannot be read, or one whose words
 * are no valid record.
 */
#pragma once

#include "duet_context.h"

#define CONTEXT_WORD sizeof(uint64_t)

/* Where the thread keeps the address of its vector: a row for each module that has thread-local variables. */
static inline uint64_t context_vector_at(const struct duet_context_source *source, uint64_t thread_pointer)
{
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	return thread_pointer + CONTEXT_WORD;
#else
	return source->is_musl ? thread_pointer - CONTEXT_WORD : thread_pointer;
#endif
}

/* Returns the address of the variable of this module and offset; 0: the thread has none yet. */
static inline uint64_t context_in_module(const struct duet_context_source *source, uint64_t thread_pointer,
					 uint64_t index_at)
{
	/* a row of glibc's vector has two words; the number of rows is one row before the first, musl's in the first */
	uint64_t row_bytes = source->is_musl ? CONTEXT_WORD : 2 * CONTEXT_WORD;
	uint64_t index[2] = {0}, vector = 0, rows = 0, block = 0;

	if (context_read(index, sizeof(index), index_at) || !index[0] || index[0] >= DUET_CONTEXT_MODULES ||
	    context_read(&vector, sizeof(vector), context_vector_at(source, thread_pointer)) || !vector ||
	    context_read(&rows, sizeof(rows), source->is_musl ? vector : vector - row_bytes) || rows < index[0] ||
	    context_read(&block, sizeof(block), vector + index[0] * row_bytes))
		return 0;
	return block && block != ~0ull ? block + index[1] : 0; /* glibc: -1 is memory that is not allocated yet */
}

/* Returns the address of the variable; 0: it is not known. */
static inline uint64_t context_variable(const struct duet_context_source *source, uint64_t thread_pointer)
{
	uint64_t word = source->at;

	if (source->place == DUET_CONTEXT_INDEX)
		return context_in_module(source, thread_pointer, source->at);
	if (source->place == DUET_CONTEXT_DISTANCE && context_read(&word, sizeof(word), source->at))
		return 0;
	if (source->place == DUET_CONTEXT_DESCRIPTOR) {
		if (context_read(&word, sizeof(word), source->at + CONTEXT_WORD))
			return 0;
		if (word + DUET_CONTEXT_DISTANCES >= 2 * DUET_CONTEXT_DISTANCES)
			return context_in_module(source, thread_pointer, word);
	}
	return thread_pointer + word;
}

/* Reads the head of the record to which the variable leads. Returns its address; 0: it leads to none that is valid. */
static inline uint64_t context_from(const struct duet_context_source *source, uint64_t thread_pointer,
				    struct duet_context_record *ret)
{
	uint64_t variable = context_variable(source, thread_pointer), record_at = 0;

	if (!variable || context_read(&record_at, sizeof(record_at), variable) || !record_at ||
	    context_read(ret, sizeof(*ret), record_at) || ret->valid != DUET_CONTEXT_VALID)
		return 0;
	return record_at;
}

/* The same for the first of the variables that leads to one, of the thread with this thread pointer. */
static inline uint64_t context_find(const struct duet_context_sources *sources, uint64_t thread_pointer,
				    struct duet_context_record *ret)
{
	for (uint32_t i = 0; i < DUET_CONTEXT_SOURCES && sources->of[i].place != DUET_CONTEXT_NOWHERE; i++) {
		uint64_t record_at = context_from(&sources->of[i], thread_pointer, ret);

		if (record_at)
			return record_at;
	}
	return 0;
}
