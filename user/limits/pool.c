/* SPDX-License-Identifier: MIT */
#include "limits/pool.h"

#include "base/clock.h"

#define DROP_AGAIN_NS (10 * NS_PER_SEC) /* what is dropped costs time to make again, in vain all the more */
#define DROP_AGAIN_MAX_NS (160 * NS_PER_SEC)
#define GROWTH 2
#define NEEDED_STEP (16u << 20) /* it is an estimate */
#define LANES 128 /* that may be as large: a host has many JVMs */

size_t pool_sum(const struct pool_parts *parts)
{
	return parts->maps + parts->rings + parts->files + parts->heap;
}

void pool_look(struct pool *pool, const struct pool_parts *parts)
{
	size_t sum = pool_sum(parts), taken = sum - parts->heap;

	pool->parts = *parts;
	if (sum > pool->peak_bytes)
		pool->peak_bytes = sum;
	pool->heap_max = pool->max_bytes > taken ? pool->max_bytes - taken : 0;
}

/* An eighth is for what comes and goes between two looks: a file that is read, a table that is made anew to grow. */
static size_t usable(const struct pool *pool)
{
	return pool->heap_max - pool->heap_max / 8;
}

static size_t stacks_max(const struct pool_demand *demand, size_t room)
{
	size_t others = demand->heap - demand->stacks + demand->writing;

	return room > others ? (room - others) / (1 + POOL_WRITER) : 0;
}

/* Before stacks are refused, all else is done. */
static bool is_tight(const struct pool *pool, const struct pool_demand *demand)
{
	return demand->stacks_soon > stacks_max(demand, usable(pool) - pool->heap_max / 16);
}

static void drop(struct pool *pool, const struct pool_user *user, uint64_t now_ns)
{
	user->drop_caches(user->context);
	pool->drops++;
	pool->dropped_ns = now_ns;
	pool->drop_again_ns = pool->drop_again_ns ? 2 * pool->drop_again_ns : DROP_AGAIN_NS;
	if (pool->drop_again_ns > DROP_AGAIN_MAX_NS)
		pool->drop_again_ns = DROP_AGAIN_MAX_NS;
}

void pool_step(struct pool *pool, const struct pool_user *user, uint64_t now_ns)
{
	struct pool_demand demand;

	user->measure(user->context, &demand);
	if (is_tight(pool, &demand) && now_ns - pool->dropped_ns >= pool->drop_again_ns) {
		drop(pool, user, now_ns);
		user->measure(user->context, &demand);
		if (!is_tight(pool, &demand))
			pool->drop_again_ns = DROP_AGAIN_NS;
	}
	pool->names_full = is_tight(pool, &demand);
	pool->stacks_max = stacks_max(&demand, usable(pool));
}

size_t pool_lane_bytes(const struct pool *pool, size_t asked, size_t least)
{
	size_t untouched = pool->promised_bytes > pool->parts.rings ? pool->promised_bytes - pool->parts.rings : 0;
	size_t taken = pool->parts.heap + untouched;
	size_t room = usable(pool) > taken ? usable(pool) - taken : 0;

	if (!pool->max_bytes)
		return asked;
	if (room / 4 < least)
		return 0;
	while (asked > least && asked > room / LANES)
		asked /= 2;
	return asked;
}

/*
 * Tables double as they grow, and are there twice meanwhile: GROWTH times what is in them is room for it in any case.
 * The part of BPF's maps grows with the limit.
 */
void pool_note_refused(struct pool *pool, const struct pool_demand *demand, uint64_t kept, uint64_t refused)
{
	size_t each = kept ? demand->stacks / kept + 1 : 0, heap, needed;

	if (!pool->max_bytes || !refused || pool->parts.maps >= pool->max_bytes)
		return;
	heap = demand->heap - demand->stacks + (demand->stacks + refused * each) * GROWTH * (1 + POOL_WRITER);
	needed = heap / 7 * 8 + pool->parts.rings + pool->parts.files;
	needed = (size_t)((double)needed * (double)pool->max_bytes / (double)(pool->max_bytes - pool->parts.maps));
	needed = (needed / NEEDED_STEP + 1) * NEEDED_STEP;
	if (needed > pool->needed_bytes)
		pool->needed_bytes = needed;
}
