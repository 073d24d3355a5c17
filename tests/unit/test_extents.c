/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "base/clock.h"
#include "collect/tables/extents.h"
#include "collect/tables/unwinding.h"
#include "duet_unwind.h"

#define LATER (DUET_UNWIND_GRACE_NS + 1)

static const struct payer nobody;

static void taken_side_by_side_until_full(void **state)
{
	struct extents extents;

	assert_int_equal(extents_init(&extents, 10), 0);
	assert_int_equal(extents_take(&extents, &nobody, 4, 0), 0);
	assert_int_equal(extents_take(&extents, &nobody, 5, 0), 4);
	assert_int_equal(extents_take(&extents, &nobody, 2, 0), -ENOSPC);
	assert_int_equal(extents_take(&extents, &nobody, 1, 0), 9);
	assert_int_equal(extents_take(&extents, &nobody, 1, 0), -ENOSPC);
	extents_release(&extents);
}

static void given_back_is_free_after_the_grace(void **state)
{
	struct extents extents;

	assert_int_equal(extents_init(&extents, 10), 0);
	extents_take(&extents, &nobody, 10, 0);
	extents_give(&extents, &nobody, 3, 4, 1000);
	assert_int_equal(extents_take(&extents, &nobody, 4, 1000 + DUET_UNWIND_GRACE_NS - 1), -ENOSPC);
	assert_int_equal(extents_take(&extents, &nobody, 4, 1000 + DUET_UNWIND_GRACE_NS), 3);
	extents_release(&extents);
}

static void neighbours_become_one(void **state)
{
	static const uint32_t order[][3] = {{0, 4, 8}, {8, 4, 0}, {0, 8, 4}, {4, 0, 8}};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct extents extents;

		assert_int_equal(extents_init(&extents, 12), 0);
		extents_take(&extents, &nobody, 12, 0);
		for (int j = 0; j < 3; j++)
			extents_give(&extents, &nobody, order[i][j], 4, (uint64_t)j);
		assert_int_equal(extents_take(&extents, &nobody, 12, LATER + 3), 0);
		extents_release(&extents);
	}
}

static void one_after_the_other(void **state)
{
	struct extents extents;

	assert_int_equal(extents_init(&extents, 8), 0);
	extents_take(&extents, &nobody, 8, 0);
	extents_give(&extents, &nobody, 0, 2, 0);
	extents_give(&extents, &nobody, 4, 2, LATER);
	assert_int_equal(extents_take(&extents, &nobody, 2, LATER), 0);
	assert_int_equal(extents_take(&extents, &nobody, 2, LATER), -ENOSPC);
	assert_int_equal(extents_take(&extents, &nobody, 2, 2 * LATER), 4);
	extents_release(&extents);
}

/* Two users and root, in an array that is a room. */
static void each_payer_has_a_share(void **state)
{
	static const struct payer one = {1, 1}, other = {2, 2};
	struct extents extents;

	room_open(true);
	assert_int_equal(extents_init(&extents, 64), 0);
	extents_share(&extents, ROOM_UNWIND_ROWS);
	assert_int_equal(extents_take(&extents, &one, 40, 0), 0);
	assert_int_equal(extents_take(&extents, &one, 9, 0), -EDQUOT);
	assert_int_equal(extents_take(&extents, &one, 8, 0), 40);
	assert_int_equal(extents_take(&extents, &other, 13, 0), -EDQUOT);
	assert_int_equal(extents_take(&extents, &other, 12, 0), 48);
	assert_int_equal(extents_take(&extents, &nobody, 4, 0), 60);
	assert_int_equal(extents_take(&extents, &nobody, 1, 0), -ENOSPC);
	extents_give(&extents, &one, 0, 40, 0);
	assert_int_equal(extents_take(&extents, &other, 18, LATER), 0);
	extents_release(&extents);
	room_open(false);
}

#define WAITING 200000
#define MOST_NS (4 * NS_PER_SEC)

/* Those that wait come in their order, and the time that it takes is in proportion to their number. */
static void waiting_processes_cost_the_same_each(void **state)
{
	struct process process = {.payer = {70, 70}};
	struct process_table processes = {0};
	struct unwinding unwinding;
	uint64_t begun_ns;

	charge_cpu(&process.payer, 100 * NS_PER_SEC);
	unwinding_init(&unwinding, (void *)&unwinding); /* no process of the table: nothing is published */
	for (process.pid = 1; process.pid <= WAITING; process.pid++) {
		collected_of(&process)->awaits_rows = false;
		unwinding_want(&unwinding, &process);
	}
	begun_ns = clock_cpu_ns();
	for (pid_t pid = 1; pid <= WAITING && (pid % 1000 || clock_cpu_ns() < begun_ns + MOST_NS); pid++) {
		assert_true(unwinding_has_work(&unwinding));
		unwinding_work(&unwinding, &processes, 0);
		assert_int_equal(unwinding.wanted.items[0], pid);
	}
	assert_in_range(clock_cpu_ns() - begun_ns, 0, MOST_NS);
	assert_false(unwinding_has_work(&unwinding));
	unwinding_release(&unwinding);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_side_by_side_until_full),
		cmocka_unit_test(given_back_is_free_after_the_grace),
		cmocka_unit_test(neighbours_become_one),
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(each_payer_has_a_share),
		cmocka_unit_test(waiting_processes_cost_the_same_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
