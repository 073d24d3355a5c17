/* SPDX-License-Identifier: MIT */
/* Memory that is freed all at once. Allocations are zeroed and 16-byte aligned. */
#pragma once

#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *blocks;
	size_t bytes; /* taken from the heap */
};

/* A zeroed struct arena is a valid empty arena. */
void *arena_alloc(struct arena *arena, size_t bytes); /* returns NULL when out of memory */
char *arena_copy(struct arena *arena, const char *text, size_t len); /* adds a NUL */
void arena_release(struct arena *arena);
