/* SPDX-License-Identifier: MIT */
/* Shares of a room: how much of it one user, two users, and many get, whatever they ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/counters.h"
#include "proc/room.h"

#define SIZE 4096

static const struct payer root = {0, 0}, first = {1ull << 32, 1}, second = {2ull << 32, 2};

static int set_up(void **state)
{
	room_open(true);
	room_set_size(ROOM_READERS, SIZE);
	loader_counters[DUET_LOADER_ROOM_SPENT] = 0;
	return 0;
}

/* Takes one after the other until it is refused. Returns how many the payer holds. */
static size_t take_all(const struct payer *payer)
{
	while (room_take(ROOM_READERS, payer, 1))
		;
	return room_held(ROOM_READERS, payer);
}

static void one_alone_leaves_a_quarter(void **state)
{
	assert_int_equal(take_all(&first), SIZE / 4 * 3);
	assert_false(room_has(ROOM_READERS, &first, 1));
	assert_true(room_take(ROOM_READERS, &first, 0));
	assert_true(room_has(ROOM_WAITING, &first, SIZE_MAX)); /* has no bound */
}

static void a_newcomer_finds_room(void **state)
{
	size_t left = SIZE / 4;

	take_all(&first);
	assert_int_equal(take_all(&second), left / 4 * 3);
	assert_int_equal(room_held(ROOM_READERS, &first), SIZE / 4 * 3);
	assert_true(room_is_over(ROOM_READERS, &first)); /* he may hold less now */
	assert_false(room_is_over(ROOM_READERS, &second));
	assert_int_equal(take_all(&root), left / 4); /* has no share, but there is no more than this */
}

static void many_get_a_part_each(void **state)
{
	size_t sum = 0;

	for (uint32_t i = 1; i <= 5; i++) {
		struct payer payer = {(uint64_t)i << 32, i};
		size_t held = take_all(&payer);

		assert_true(held > 0);
		sum += held;
	}
	assert_true(sum <= SIZE);
}

/* In turn, all of them who want the most come to have the same. */
static void equals_get_equal_parts(void **state)
{
	bool more = true;

	while (more) {
		more = room_take(ROOM_READERS, &first, 1);
		more |= room_take(ROOM_READERS, &second, 1);
	}
	assert_in_range(room_held(ROOM_READERS, &first), SIZE / 7 * 3 - 2, SIZE / 7 * 3 + 4);
	assert_in_range(room_held(ROOM_READERS, &second), SIZE / 7 * 3 - 2, SIZE / 7 * 3 + 4);
}

static void what_is_given_back_is_free(void **state)
{
	take_all(&first);
	room_give(ROOM_READERS, &first, SIZE); /* more than he has */
	assert_int_equal(room_held(ROOM_READERS, &first), 0);
	assert_int_equal(take_all(&second), SIZE / 4 * 3);
	room_empty(ROOM_READERS);
	assert_int_equal(room_held(ROOM_READERS, &second), 0);
	assert_int_equal(take_all(&first), SIZE / 4 * 3);
}

/* While there is one user only, there is nobody to leave room for. */
static void a_single_user_has_all(void **state)
{
	room_open(false);
	room_set_size(ROOM_READERS, SIZE);
	assert_int_equal(room_reserve(ROOM_READERS, &first), 0);
	assert_int_equal(take_all(&first), SIZE);
	room_give(ROOM_READERS, &first, SIZE / 2);
	room_add(ROOM_MAPS, &second, 1); /* the other one is seen */
	assert_false(room_has(ROOM_READERS, &first, SIZE / 2));
	assert_true(room_has(ROOM_READERS, &first, SIZE / 4));
	assert_true(room_reserve(ROOM_READERS, &first) >= SIZE / 6);
	assert_int_equal(room_reserve(ROOM_READERS, &root), 0);
}

static void what_a_user_holds_shrinks_with_the_room(void **state)
{
	take_all(&first);
	room_set_size(ROOM_READERS, SIZE / 2);
	assert_true(room_is_over(ROOM_READERS, &first));
	assert_int_equal(room_limit(ROOM_READERS, &first), SIZE / 8 * 3);
	room_set_size(ROOM_READERS, SIZE_MAX);
	assert_true(room_has(ROOM_READERS, &first, SIZE));
}

static void each_user_is_reported_once(void **state)
{
	struct room_spent spent;

	assert_false(room_next_spent(&spent));
	take_all(&first);
	take_all(&first);
	take_all(&root);
	assert_int_equal(loader_counters[DUET_LOADER_ROOM_SPENT], 2);
	assert_true(room_next_spent(&spent));
	assert_int_equal(spent.uid, 1);
	assert_string_equal(spent.what, "the readers of JVMs");
	assert_int_equal(spent.held, SIZE / 4 * 3);
	assert_false(room_next_spent(&spent));
	for (uint32_t i = 2; i < 20; i++)
		room_refuse(ROOM_NODES, &(struct payer){(uint64_t)i << 32, i});
	for (int i = 0; i < 7; i++)
		assert_true(room_next_spent(&spent));
	assert_string_equal(spent.what, "the profile's stacks");
	assert_false(room_next_spent(&spent));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_alone_leaves_a_quarter, set_up),
		cmocka_unit_test_setup(a_newcomer_finds_room, set_up),
		cmocka_unit_test_setup(many_get_a_part_each, set_up),
		cmocka_unit_test_setup(equals_get_equal_parts, set_up),
		cmocka_unit_test_setup(what_is_given_back_is_free, set_up),
		cmocka_unit_test_setup(a_single_user_has_all, set_up),
		cmocka_unit_test_setup(what_a_user_holds_shrinks_with_the_room, set_up),
		cmocka_unit_test_setup(each_user_is_reported_once, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
