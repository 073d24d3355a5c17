/* SPDX-License-Identifier: MIT */
/* Strings as small numbers: equal strings get equal ids. Id 0 is the empty string. Any byte but NUL is allowed. */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

struct intern {
	struct arena arena;
	struct vec(const char *) strings; /* by id */
	struct vec(uint32_t) next;	  /* chain of ids whose hashes are equal */
	struct map ids;			  /* hash -> first id */
};

int intern_init(struct intern *intern); /* 0 or -ENOMEM */
void intern_release(struct intern *intern);
/* The id, or 0 when out of memory (the string is then lost, the profile is not). */
uint32_t intern_str(struct intern *intern, const char *text);
/* The id it already has, or 0: nothing is added. */
uint32_t intern_known(const struct intern *intern, const char *text);
uint32_t intern_bytes(struct intern *intern, const char *text, size_t len); /* stops at a NUL */
/* Never NULL. Valid until release. */
const char *intern_text(const struct intern *intern, uint32_t id);
/*
 * Strings on their way from one table into another, so that what nobody asks for any more stays behind. What holds ids
 * asks for the new ones; then `from` can be released.
 */
struct intern_move {
	const struct intern *from;
	struct intern *to;
	uint32_t *ids; /* of `from` -> in `to`; 0 = not moved yet */
};

int intern_move_init(struct intern_move *move, const struct intern *from, struct intern *to); /* 0 or -ENOMEM */
void intern_move_release(struct intern_move *move);
uint32_t intern_moved(struct intern_move *move, uint32_t id); /* the new id; `id` itself when `move` is NULL */

size_t intern_count(const struct intern *intern);
size_t intern_memory(const struct intern *intern); /* bytes, roughly; grows with every new string */

#endif
