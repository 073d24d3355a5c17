/* SPDX-License-Identifier: MIT */
#include "base/intern.h"

#include <errno.h>
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
	struct arena_block *first = arena->blocks, *block;

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

#define ROW_BYTES 64 /* estimate of what arrays and map need per string; they grow by doubling */

/* Id 0 is the empty string. It is never hashed, so 0 can end a chain. */
int intern_init(struct intern *intern)
{
	*intern = (struct intern){0};
	if (vec_push(&intern->strings, "") < 0 || vec_push(&intern->next, 0) < 0) {
		intern_release(intern);
		return -ENOMEM;
	}
	return 0;
}

void intern_release(struct intern *intern)
{
	if (!intern)
		return;
	arena_release(&intern->arena);
	vec_release(&intern->strings);
	vec_release(&intern->next);
	map_release(&intern->ids);
}

static uint32_t intern_find(const struct intern *intern, uint32_t first, const char *text, size_t len)
{
	uint32_t id = first;

	while (id && (strncmp(intern->strings.items[id], text, len) || intern->strings.items[id][len]))
		id = intern->next.items[id];
	return id;
}

static uint32_t intern_add(struct intern *intern, uint64_t hash, uint32_t first, const char *text, size_t len)
{
	size_t id = intern->strings.len;
	char *copy;

	intern->is_full |= intern->most && intern->arena.bytes + len > intern->most;
	if (intern->is_full || id > UINT32_MAX || vec_reserve(&intern->strings, id + 1) < 0 ||
	    vec_reserve(&intern->next, id + 1) < 0)
		return 0;
	copy = arena_copy(&intern->arena, text, len);
	if (!copy || map_put(&intern->ids, hash, id) < 0)
		return 0;
	intern->strings.items[intern->strings.len++] = copy;
	intern->next.items[intern->next.len++] = first;
	return (uint32_t)id;
}

uint32_t intern_bytes(struct intern *intern, const char *text, size_t len)
{
	uint64_t hash, first = 0;
	uint32_t id;

	len = strnlen(text, intern->longest && len > intern->longest ? intern->longest : len);
	if (!len)
		return 0;
	hash = hash_bytes(text, len, 0);
	map_get(&intern->ids, hash, &first);
	id = intern_find(intern, (uint32_t)first, text, len);
	return id ? id : intern_add(intern, hash, (uint32_t)first, text, len);
}

uint32_t intern_str(struct intern *intern, const char *text)
{
	return intern_bytes(intern, text, SIZE_MAX);
}

uint32_t intern_known(const struct intern *intern, const char *text)
{
	size_t len = strnlen(text, intern->longest ? intern->longest : SIZE_MAX);
	uint64_t first = 0;

	if (len)
		map_get(&intern->ids, hash_bytes(text, len, 0), &first);
	return intern_find(intern, (uint32_t)first, text, len);
}

const char *intern_text(const struct intern *intern, uint32_t id)
{
	return id < intern->strings.len ? intern->strings.items[id] : "";
}

size_t intern_memory(const struct intern *intern)
{
	return intern->arena.bytes + intern->strings.len * ROW_BYTES;
}

int intern_move_init(struct intern_move *move, const struct intern *from, struct intern *to)
{
	uint32_t *ids = calloc(from->strings.len, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	if (!to->longest)
		to->longest = from->longest;
	*move = (struct intern_move){.from = from, .to = to, .ids = ids};
	return 0;
}

void intern_move_release(struct intern_move *move)
{
	free(move->ids);
	*move = (struct intern_move){0};
}

uint32_t intern_moved(struct intern_move *move, uint32_t id)
{
	if (!move)
		return id;
	if (id >= move->from->strings.len)
		return 0;
	if (!move->ids[id])
		move->ids[id] = intern_str(move->to, intern_text(move->from, id));
	return move->ids[id];
}
