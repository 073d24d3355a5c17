/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "limits/budget.h"

#define MB ((size_t)1 << 20)

/* A loader: how much it has of each kind, and what stays after caches are dropped. */
struct loader {
	size_t caches;
	size_t names;
	size_t stacks;
	size_t writing;
	unsigned drops;
};

static void measure(void *context, struct pool_demand *ret)
{
	const struct loader *loader = context;

	*ret = (struct pool_demand){
		.heap = loader->caches + loader->names + loader->stacks,
		.stacks = loader->stacks,
		.stacks_soon = loader->stacks + loader->stacks / 2,
		.writing = loader->writing,
	};
}

static void drop_caches(void *context)
{
	struct loader *loader = context;

	loader->caches = 0;
	loader->drops++;
}

static struct pool pool_of(size_t max_bytes)
{
	const struct pool_shares parts = {.maps = 20 * MB, .rings = 2 * MB, .files = 3 * MB, .heap = 10 * MB};
	struct pool pool = {.max_bytes = max_bytes};

	pool_look(&pool, &parts);
	return pool;
}

static void step(struct pool *pool, struct loader *loader, uint64_t seconds)
{
	const struct pool_user user = {.context = loader, .measure = measure, .drop_caches = drop_caches};

	pool_step(pool, &user, seconds * NS_PER_SEC);
}

static bool takes_stacks(const struct pool *pool, const struct loader *loader)
{
	return loader->stacks + loader->stacks / 2 <= pool->stacks_max;
}

static void what_others_leave_is_the_heaps(void **state)
{
	const struct pool_shares parts = {.maps = 30 * MB, .rings = 40 * MB, .files = 3 * MB, .heap = 20 * MB};
	struct pool pool = pool_of(128 * MB);

	assert_int_equal(pool.heap_max, 103 * MB);
	pool_look(&pool, &parts);
	assert_int_equal(pool.heap_max, 55 * MB);
	assert_int_equal(pool.peak_bytes, 93 * MB);
	pool = pool_of(24 * MB);
	assert_int_equal(pool.heap_max, 0);
}

/* Names may take 0.7 of the heap; a fixed half was the limit once. So may stacks. */
static void whoever_needs_it_has_it(void **state)
{
	struct loader named = {.names = 70 * MB, .stacks = MB}, crowd = {.names = MB, .stacks = 13 * MB};
	struct pool pool = pool_of(128 * MB);

	step(&pool, &named, 100);
	assert_true(takes_stacks(&pool, &named));
	assert_false(pool.names_full);
	assert_int_equal(named.drops, 0);
	step(&pool, &crowd, 101);
	assert_true(takes_stacks(&pool, &crowd));
	assert_false(pool.names_full);
	assert_int_equal(crowd.drops, 0);
}

static void caches_go_before_names_before_stacks(void **state)
{
	struct loader loader = {.caches = 40 * MB, .names = 40 * MB, .stacks = 5 * MB};
	struct pool pool = pool_of(128 * MB);

	step(&pool, &loader, 100);
	assert_int_equal(loader.drops, 1);
	assert_false(pool.names_full);
	loader.names = 66 * MB;
	loader.stacks = 3600 << 10;
	step(&pool, &loader, 200);
	assert_int_equal(loader.drops, 2);
	assert_true(pool.names_full);
	assert_true(takes_stacks(&pool, &loader));
	loader.stacks = 5 * MB;
	step(&pool, &loader, 201);
	assert_false(takes_stacks(&pool, &loader));
}

static void all_is_taken_up_again(void **state)
{
	struct loader loader = {.names = 85 * MB, .stacks = 15 * MB};
	struct pool pool = pool_of(128 * MB);

	step(&pool, &loader, 100);
	assert_true(pool.names_full);
	loader = (struct loader){.names = 30 * MB, .stacks = MB};
	step(&pool, &loader, 101);
	assert_false(pool.names_full);
	assert_true(takes_stacks(&pool, &loader));
}

static void a_writer_at_work_has_its_room(void **state)
{
	struct loader loader = {.names = 20 * MB, .stacks = 10 * MB, .writing = 40 * MB};
	struct pool pool = pool_of(128 * MB);

	step(&pool, &loader, 100);
	assert_false(takes_stacks(&pool, &loader));
	loader.writing = 0;
	step(&pool, &loader, 101);
	assert_true(takes_stacks(&pool, &loader));
}

/* Caches are not dropped and filled again every few seconds if that does not help. */
static void dropping_in_vain_becomes_rare(void **state)
{
	struct loader loader = {.names = 85 * MB, .stacks = 15 * MB};
	struct pool pool = pool_of(128 * MB);

	for (uint64_t second = 1000; second < 1600; second++)
		step(&pool, &loader, second);
	assert_in_range(loader.drops, 2, 8);
}

static void rings_leave_room_for_rings(void **state)
{
	struct pool pool = pool_of(128 * MB);
	size_t first = pool_lane_bytes(&pool, SIZE_MAX, 64 * MB, MB / 4), lane = first;
	unsigned count = 0;

	assert_true(first >= MB / 2);
	assert_int_equal(pool_lane_bytes(&pool, SIZE_MAX, MB / 4, MB / 4), MB / 4);
	for (; lane && count < 1000; count++) {
		pool.promised_bytes += 2 * lane;
		lane = pool_lane_bytes(&pool, SIZE_MAX, 64 * MB, MB / 4);
	}
	assert_in_range(count, 100, 300);
	assert_true(pool.promised_bytes < 100 * MB);
}

/* Returns how many stacks of 1 KB a loader keeps that wants `stacks`, with this limit, of which BPF takes a fifth. */
static uint64_t kept_with(size_t max_bytes, uint64_t stacks, size_t *ret_needed)
{
	const struct pool_shares parts = {.maps = max_bytes / 5, .rings = 2 * MB, .files = 3 * MB};
	struct loader loader = {.names = 20 * MB};
	struct pool pool = {.max_bytes = max_bytes};
	struct pool_demand demand;
	uint64_t kept = 0;

	pool_look(&pool, &parts);
	for (; kept < stacks; kept++, loader.stacks = kept << 10) {
		step(&pool, &loader, 1000);
		if (!takes_stacks(&pool, &loader))
			break;
	}
	measure(&loader, &demand);
	pool_note_refused(&pool, &demand, kept, stacks - kept);
	*ret_needed = pool.needed_bytes;
	return kept;
}

static void the_limit_that_would_do_does(void **state)
{
	size_t needed, again;

	assert_true(kept_with(64 * MB, 40000, &needed) < 40000);
	assert_in_range(needed, 200 * MB, 1000 * MB);
	assert_int_equal(kept_with(needed, 40000, &again), 40000);
	assert_int_equal(again, 0);
}

/* Who had refused stacks may have given its room back at the end, when the advice is given. */
static void the_advice_is_more_than_the_limit(void **state)
{
	struct loader loader = {.names = 88 * MB, .stacks = 2 * MB};
	struct pool pool = pool_of(128 * MB);
	struct pool_demand demand;
	struct pool enough;

	step(&pool, &loader, 100);
	assert_false(takes_stacks(&pool, &loader));
	loader = (struct loader){.names = MB, .stacks = 2 * MB};
	step(&pool, &loader, 200);
	measure(&loader, &demand);
	pool_note_refused(&pool, &demand, 2000, 10);
	assert_true(pool.needed_bytes > 128 * MB);
	enough = pool_of(pool.needed_bytes);
	loader.names = 88 * MB;
	step(&enough, &loader, 100);
	assert_true(takes_stacks(&enough, &loader));

	/* so is what the heap needs at the start */
	for (size_t limit = 32 * MB; limit < 1024 * MB; limit += 5 * MB) {
		pool = pool_of(limit);
		assert_true(pool_limit_for(&pool, pool.heap_max) > limit);
		enough = pool_of(pool_limit_for(&pool, 300 * MB));
		assert_true(enough.heap_max >= 300 * MB);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_others_leave_is_the_heaps),
		cmocka_unit_test(whoever_needs_it_has_it),
		cmocka_unit_test(caches_go_before_names_before_stacks),
		cmocka_unit_test(all_is_taken_up_again),
		cmocka_unit_test(a_writer_at_work_has_its_room),
		cmocka_unit_test(dropping_in_vain_becomes_rare),
		cmocka_unit_test(rings_leave_room_for_rings),
		cmocka_unit_test(the_limit_that_would_do_does),
		cmocka_unit_test(the_advice_is_more_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
