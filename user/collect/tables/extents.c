// SPDX-License-Identifier: MIT
#include "collect/tables/extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "duet_unwind.h"

int extents_init(struct extents *extents, uint32_t count)
{
	*extents = (struct extents){0};
	return vec_push(&extents->free, (struct extent){0, count});
}

void extents_release(struct extents *extents)
{
	vec_release(&extents->free);
	vec_release(&extents->given);
}

void extents_share(struct extents *extents, enum room room)
{
	extents->is_shared = true;
	extents->room = room;
	room_set_size(room, extents->free.items[0].count);
}

bool extents_may(const struct extents *extents, const struct payer *payer, uint32_t count)
{
	static const struct payer nobody;

	return !extents->is_shared || room_has(extents->room, payer, count) ||
	       !room_has(extents->room, &nobody, count);
}

static void remove_free(struct extents *extents, size_t i)
{
	memmove(&extents->free.items[i], &extents->free.items[i + 1],
		(--extents->free.len - i) * sizeof(extents->free.items[0]));
}

/* Joins extent i with the next when they touch. */
static void join_next(struct extents *extents, size_t i)
{
	struct extent *items = extents->free.items;

	if (i + 1 >= extents->free.len || items[i].start + items[i].count != items[i + 1].start)
		return;
	items[i].count += items[i + 1].count;
	remove_free(extents, i + 1);
}

static int insert_free(struct extents *extents, struct extent extent)
{
	size_t i = 0;

	while (i < extents->free.len && extents->free.items[i].start < extent.start)
		i++;
	if (vec_push(&extents->free, extent) < 0)
		return -ENOMEM;
	memmove(&extents->free.items[i + 1], &extents->free.items[i],
		(extents->free.len - 1 - i) * sizeof(extent));
	extents->free.items[i] = extent;
	join_next(extents, i);
	if (i)
		join_next(extents, i - 1);
	return 0;
}

static void collect_given(struct extents *extents, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < extents->given.len; i++) {
		struct extent_given given = extents->given.items[i];

		if (now_ns < given.time_ns + DUET_UNWIND_GRACE_NS || insert_free(extents, given.extent) < 0)
			extents->given.items[kept++] = given;
	}
	extents->given.len = kept;
}

/* Returns the index of the first extent that is large enough, or free.len. */
static size_t find_free(struct extents *extents, uint32_t count, uint64_t now_ns)
{
	size_t i = 0;

	collect_given(extents, now_ns);
	while (i < extents->free.len && extents->free.items[i].count < count)
		i++;
	return i;
}

bool extents_has(struct extents *extents, uint32_t count, uint64_t now_ns)
{
	return find_free(extents, count, now_ns) < extents->free.len;
}

int64_t extents_take(struct extents *extents, const struct payer *payer, uint32_t count, uint64_t now_ns)
{
	struct extent *extent;
	uint32_t start;
	size_t i;

	if (!extents_may(extents, payer, count))
		return room_refuse(extents->room, payer), -EDQUOT;
	i = find_free(extents, count, now_ns);
	extent = &extents->free.items[i];
	if (i == extents->free.len)
		return -ENOSPC;
	if (extents->is_shared)
		room_add(extents->room, payer, count);
	start = extent->start;
	extent->start += count;
	extent->count -= count;
	if (!extent->count)
		remove_free(extents, i);
	return start;
}

void extents_give(struct extents *extents, const struct payer *payer, uint32_t start, uint32_t count, uint64_t now_ns)
{
	if (extents->is_shared)
		room_give(extents->room, payer, count);
	if (count)
		(void)vec_push(&extents->given, (struct extent_given){{start, count}, now_ns});
}
