/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/map.h"

static void test_empty(void **state)
{
	struct map map = {0};
	uint64_t key, value = 7;
	size_t cursor = 0;

	(void)state;
	assert_false(map_get(&map, 1, &value));
	assert_int_equal(value, 7);
	assert_null(map_get_ptr(&map, 1));
	assert_false(map_remove(&map, 1));
	assert_false(map_next(&map, &cursor, &key, &value));
	map_release(&map);
	map_release(NULL);
}

static void test_put_get_remove(void **state)
{
	struct map map = {0};
	uint64_t value;

	(void)state;
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(map_put(&map, i << 32, i), 0);
	assert_int_equal(map_put(&map, 0, 99), 0);
	assert_int_equal(map.len, 5000);
	assert_true(map_get(&map, 0, &value));
	assert_int_equal(value, 99);
	for (uint64_t i = 0; i < 5000; i += 2)
		assert_true(map_remove(&map, i << 32));
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(map_get(&map, i << 32, &value), i % 2);
	assert_int_equal(map.len, 2500);
	map_release(&map);
}

/* Keys that come and go must not make the table grow, or searching never end. */
static void test_churn_stays_small(void **state)
{
	struct map map = {0};

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(map_put(&map, i, i), 0);
		if (i >= 4)
			assert_true(map_remove(&map, i - 4));
	}
	assert_int_equal(map.len, 4);
	assert_true(map.size <= 32);
	map_release(&map);
}

static void test_iterate_and_remove(void **state)
{
	struct map map = {0};
	uint64_t key, value, sum = 0;
	size_t cursor = 0;

	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		map_put(&map, i, i * i);
	while (map_next(&map, &cursor, &key, &value)) {
		assert_int_equal(value, key * key);
		sum += key;
		assert_true(map_remove(&map, key));
	}
	assert_int_equal(sum, 5050);
	assert_int_equal(map.len, 0);
	map_release(&map);
}

static void test_hash_bytes(void **state)
{
	const char zeros[32] = {0};

	(void)state;
	for (size_t a = 0; a < sizeof(zeros); a++)
		for (size_t b = 0; b < a; b++)
			assert_true(hash_bytes(zeros, a, 0) != hash_bytes(zeros, b, 0));
	assert_true(hash_bytes("abc", 3, 0) == hash_bytes("abcd", 3, 0));
	assert_true(hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),		   cmocka_unit_test(test_put_get_remove),
		cmocka_unit_test(test_churn_stays_small), cmocka_unit_test(test_iterate_and_remove),
		cmocka_unit_test(test_hash_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
