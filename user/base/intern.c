/* SPDX-License-Identifier: MIT */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

	if (id > UINT32_MAX || vec_reserve(&intern->strings, id + 1) < 0 || vec_reserve(&intern->next, id + 1) < 0)
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
