/* SPDX-License-Identifier: MIT */
#include "limits/pool.h"

#include "base/clock.h"

#define DROP_AGAIN_NS (10 * NS_PER_SEC) /* filling caches again costs time; doubled if dropping them did not help */
#define DROP_AGAIN_MAX_NS (160 * NS_PER_SEC)
#define GROWTH 2
#define NEEDED_STEP (16u << 20) /* the estimate is rounded up to this */
#define LANES 128 /* lanes of this size must fit: a host has many JVMs */

size_t pool_sum(const struct pool_shares *parts)
{
	return parts->maps + parts->rings + parts->files + parts->heap;
}

void pool_look(struct pool *pool, const struct pool_shares *parts)
{
	size_t sum = pool_sum(parts), taken = sum - parts->heap;

	pool->shares = *parts;
	if (sum > pool->peak_bytes)
		pool->peak_bytes = sum;
	pool->heap_max = pool->max_bytes > taken ? pool->max_bytes - taken : 0;
}

/* An eighth is kept free for short-lived memory between two looks: a file being read, a table being copied to grow. */
static size_t usable(const struct pool *pool)
{
	return pool->heap_max - pool->heap_max / 8;
}

static size_t others_of(const struct pool_demand *demand)
{
	return demand->heap - demand->stacks + demand->writing;
}

static size_t stacks_max(const struct pool_demand *demand, size_t room)
{
	size_t others = others_of(demand);

	return room > others ? (room - others) / (1 + POOL_WRITER) : 0;
}

/* Returns true a little before stacks are refused, so that everything else is tried first. */
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
	if (pool->names_full && others_of(&demand) > pool->others_peak)
		pool->others_peak = others_of(&demand);
	pool->stacks_max = stacks_max(&demand, usable(pool));
}

size_t pool_lane_bytes(const struct pool *pool, size_t asked, size_t least)
{
	size_t untouched = pool->promised_bytes > pool->shares.rings ? pool->promised_bytes - pool->shares.rings : 0;
	size_t taken = pool->shares.heap + untouched;
	size_t room = usable(pool) > taken ? usable(pool) - taken : 0;

	if (room / 4 < least)
		return 0;
	while (asked > least && asked > room / LANES)
		asked /= 2;
	return asked;
}

/* The size of BPF's maps is proportional to the limit. */
size_t pool_limit_for(const struct pool *pool, size_t heap)
{
	size_t most = pool->max_bytes, needed = heap + pool->shares.rings + pool->shares.files;

	if (pool->shares.maps < most)
		needed = (size_t)((double)needed * (double)most / (double)(most - pool->shares.maps));
	return ((needed > most ? needed : most) / NEEDED_STEP + 1) * NEEDED_STEP;
}

/*
 * A growing table doubles, and exists twice while it is copied: GROWTH times its contents is always enough. The rest of
 * the heap may have shrunk since stacks were refused.
 */
void pool_note_refused(struct pool *pool, const struct pool_demand *demand, uint64_t kept, uint64_t refused)
{
	size_t each = kept ? demand->stacks / kept + 1 : 0, others = others_of(demand), heap, needed;

	if (!refused || pool->shares.maps >= pool->max_bytes)
		return;
	if (others < pool->others_peak)
		others = pool->others_peak;
	heap = others + (demand->stacks + refused * each) * GROWTH * (1 + POOL_WRITER);
	needed = pool_limit_for(pool, heap / 7 * 8);
	if (needed > pool->needed_bytes)
		pool->needed_bytes = needed;
}
