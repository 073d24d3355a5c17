/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGN 16
#define ARENA_BLOCK_BYTES (64 * 1024)

struct arena_block {
	struct arena_block *next;
	size_t size;
	size_t used;
	_Alignas(ARENA_ALIGN) char data[];
};

static struct arena_block *block_new(struct arena *arena, size_t bytes)
{
	struct arena_block *block = calloc(1, sizeof(*block) + bytes);

	if (!block)
		return NULL;
	block->size = bytes;
	arena->bytes += sizeof(*block) + bytes;
	return block;
}

/* A large allocation gets a block of its own, after the first one, whose free space stays in use. */
static struct arena_block *block_for(struct arena *arena, size_t bytes)
{
	struct arena_block *first = arena->blocks;
	struct arena_block *block;

	if (first && first->size - first->used >= bytes)
		return first;
	block = block_new(arena, bytes > ARENA_BLOCK_BYTES / 4 ? bytes : ARENA_BLOCK_BYTES);
	if (!block)
		return NULL;
	if (first && block->size != ARENA_BLOCK_BYTES) {
		block->next = first->next;
		first->next = block;
	} else {
		block->next = first;
		arena->blocks = block;
	}
	return block;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct arena_block *block;
	void *memory;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	block = block_for(arena, bytes);
	if (!block)
		return NULL;
	memory = block->data + block->used;
	block->used += bytes;
	return memory;
}

char *arena_copy(struct arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1) : NULL;

	if (copy)
		memcpy(copy, text, len);
	return copy;
}

void arena_release(struct arena *arena)
{
	struct arena_block *block;

	if (!arena)
		return;
	while ((block = arena->blocks)) {
		arena->blocks = block->next;
		free(block);
	}
	arena->bytes = 0;
}
