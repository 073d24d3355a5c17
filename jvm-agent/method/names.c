/* SPDX-License-Identifier: MIT */
#include "method/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64

static uint32_t hash_of(const char *name, size_t len)
{
	uint64_t hash = len;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(hash >> 32);
}

/* Returns the slot of the name, or the empty one where it belongs. There is an empty one. */
static char **slot_of(const struct class_names *names, const char *name, size_t len)
{
	for (uint32_t i = hash_of(name, len);; i++) {
		char **slot = &names->slots[i & (names->size - 1)];

		if (!*slot || (strlen(*slot) == len && !memcmp(*slot, name, len)))
			return slot;
	}
}

static int grow(struct class_names *names)
{
	struct class_names bigger = {.size = names->size ? 2 * names->size : FIRST_SLOTS, .count = names->count};

	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < names->size; i++)
		if (names->slots[i])
			*slot_of(&bigger, names->slots[i], strlen(names->slots[i])) = names->slots[i];
	free(names->slots);
	*names = bigger;
	return 0;
}

bool names_has(const struct class_names *names, const char *name, size_t len)
{
	return names->size && *slot_of(names, name, len);
}

int names_add(struct class_names *names, const char *name, size_t len)
{
	int err = names->count >= NAMES_MAX ? -ENOSPC : 0;
	char *copy;

	if (names_has(names, name, len))
		return 0;
	if (!err && 2 * names->count >= names->size)
		err = grow(names);
	copy = err ? NULL : strndup(name, len);
	if (!copy)
		return err ? err : -ENOMEM;
	*slot_of(names, copy, len) = copy;
	names->count++;
	return 0;
}

void names_free(struct class_names *names)
{
	for (uint32_t i = 0; i < names->size; i++)
		free(names->slots[i]);
	free(names->slots);
	*names = (struct class_names){0};
}
