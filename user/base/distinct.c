/* SPDX-License-Identifier: MIT */
#include "base/distinct.h"

#include <stdbool.h>

#define KEPT_MAX 1024

static bool is_drawn(const struct distinct *distinct, uint64_t hash)
{
	return !(hash & ((1ull << distinct->shift) - 1));
}

/* Drops about half of the hashes. */
static void draw_fewer(struct distinct *distinct)
{
	struct map before = distinct->hashes;
	uint64_t hash, value;

	distinct->hashes = (struct map){0};
	distinct->shift++;
	for (size_t cursor = 0; map_next(&before, &cursor, &hash, &value);)
		if (is_drawn(distinct, hash))
			(void)map_put(&distinct->hashes, hash, 0); /* when out of memory, the count is too low */
	map_release(&before);
}

void distinct_add(struct distinct *distinct, uint64_t hash)
{
	if (!is_drawn(distinct, hash))
		return;
	(void)map_put(&distinct->hashes, hash, 0);
	if (distinct->hashes.len > KEPT_MAX)
		draw_fewer(distinct);
}

uint64_t distinct_count(const struct distinct *distinct)
{
	return (uint64_t)distinct->hashes.len << distinct->shift;
}

void distinct_release(struct distinct *distinct)
{
	map_release(&distinct->hashes);
	distinct->shift = 0;
}
