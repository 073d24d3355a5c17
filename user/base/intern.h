/* SPDX-License-Identifier: MIT */
/* Maps strings to small numbers: equal strings get equal ids. Id 0 is "". They may hold any byte but NUL. */
#pragma once

#include <stdbool.h>

#include "base/map.h"
#include "base/vec.h"

/* Memory that is freed all at once. Allocations are zeroed and 16-byte aligned. */
struct arena_block;
struct arena {
	struct arena_block *blocks;
	size_t bytes; /* taken from the heap */
};

/* A zeroed struct arena is a valid empty arena. */
void *arena_alloc(struct arena *arena, size_t bytes); /* returns NULL when out of memory */
char *arena_copy(struct arena *arena, const char *text, size_t len); /* adds a NUL */
void arena_release(struct arena *arena);

struct intern {
	struct arena arena;
	struct vec(const char *) strings; /* by id */
	struct vec(uint32_t) next;	  /* for each id: the next id with the same hash */
	struct map ids;			  /* hash -> first id */
	/* Set by the caller: a longer string is cut, and those that are equal then are one. 0 = no limit. */
	size_t longest;
	/* The same: when new strings would take more bytes, all are "", and is_full is set. 0 = no limit. */
	uint64_t most;
	bool is_full;
};

int intern_init(struct intern *intern); /* returns 0 or -ENOMEM */
void intern_release(struct intern *intern);
/* Returns the id, or 0 when out of memory: then the profile misses this string only. */
uint32_t intern_str(struct intern *intern, const char *text);
/* Returns the id of a string that is in the table, else 0. Adds nothing. */
uint32_t intern_known(const struct intern *intern, const char *text);
/* Like intern_str(), for `len` bytes or up to a NUL. */
uint32_t intern_bytes(struct intern *intern, const char *text, size_t len);
/* Never returns NULL. Valid until intern_release(). */
const char *intern_text(const struct intern *intern, uint32_t id);
/*
 * Copies strings in use from one table into another, so that unused ones are dropped. Each holder of ids calls
 * intern_moved() for the new ones; after that `from` can be released. `to` gets the limit of `from` if it has none.
 */
struct intern_move {
	const struct intern *from;
	struct intern *to;
	uint32_t *ids; /* id in `from` -> id in `to`; 0 = not copied yet */
};

int intern_move_init(struct intern_move *move, const struct intern *from, struct intern *to); /* returns 0 or -ENOMEM */
void intern_move_release(struct intern_move *move);
/* Returns the new id, or `id` itself when `move` is NULL. */
uint32_t intern_moved(struct intern_move *move, uint32_t id);

size_t intern_memory(const struct intern *intern); /* bytes, roughly; grows with every new string */
