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

/* Removes a '*' at the end of a part, where it is allowed only. */
static int take_star(char *part, bool *ret_is_any)
{
	size_t len = strlen(part);
	char *star = strchr(part, '*');

	*ret_is_any = star && star == part + len - 1;
	if (*ret_is_any)
		*star = '\0';
	return (star && !*ret_is_any) || !len ? -EINVAL : 0;
}

int target_parse(struct method_target *ret, const char *text)
{
	size_t len = strlen(text), names = strcspn(text, "(");
	char *method;

	memset(ret, 0, sizeof(*ret));
	if (len + 2 > sizeof(ret->text)) /* a NUL more between method and signature */
		return -EINVAL;
	memcpy(ret->text, text, names);
	method = strrchr(ret->text, '.');
	if (!method)
		return -EINVAL;
	*method++ = '\0';
	for (char *at = ret->text; *at; at++)
		if (*at == '.')
			*at = '/';
	ret->method = (uint16_t)(method - ret->text);
	ret->signature = (uint16_t)(names + 1);
	memcpy(ret->text + ret->signature, text + names, len - names);
	ret->has_signature = text[names];
	ret->has_result = ret->has_signature && text[len - 1] != ')';
	if (ret->has_signature && !strchr(text + names, ')'))
		return -EINVAL;
	return take_star(ret->text, &ret->is_any_class) | take_star(method, &ret->is_any_method);
}

static bool begins_with(struct class_text text, const char *part, bool is_any)
{
	size_t len = strlen(part);

	return (is_any ? text.len >= len : text.len == len) && !memcmp(text.at, part, len);
}

bool target_has_class(const struct method_target *target, struct class_text name)
{
	return begins_with(name, target->text, target->is_any_class);
}

bool target_has_method(const struct method_target *target, struct class_text name, struct class_text descriptor)
{
	return begins_with(name, target->text + target->method, target->is_any_method) &&
	       (!target->has_signature ||
		begins_with(descriptor, target->text + target->signature, !target->has_result));
}
