/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <time.h>

#include "base/map.h"

#define KEYS 20000
#define TRIES 5

static void test_empty(void **state)
{
	struct map map = {0};
	uint64_t key, value = 7;
	size_t cursor = 0;

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

/* Keys that are added and removed must not make the table grow, or make a search endless. */
static void test_churn_stays_small(void **state)
{
	struct map map = {0};

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

	for (size_t a = 0; a < sizeof(zeros); a++)
		for (size_t b = 0; b < a; b++)
			assert_true(hash_bytes(zeros, a, 0) != hash_bytes(zeros, b, 0));
	assert_true(hash_bytes("abc", 3, 0) == hash_bytes("abcd", 3, 0));
	assert_true(hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1));
}

/* ---- chosen keys ---- */

/* The value with this hash_u64(). */
static uint64_t unhash_u64(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= 0x9cb4b2f8129337dbull;
	hash ^= hash >> 33;
	hash *= 0x4f74430c22a54005ull;
	return hash ^ (hash >> 33);
}

static uint64_t any_hash(uint64_t i)
{
	return i * 0x9e3779b97f4a7c15ull;
}

static uint64_t hash_of_one_slot(uint64_t i)
{
	return i << 32;
}

static double cpu_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double time_to_put(uint64_t (*hash)(uint64_t i))
{
	struct map map = {0};
	double begin = cpu_s();

	for (uint64_t i = 0; i < KEYS; i++)
		assert_int_equal(map_put(&map, unhash_u64(hash(i)), i), 0);
	assert_int_equal(map.len, KEYS);
	map_release(&map);
	return cpu_s() - begin;
}

/* Keys come from files and from agents. If these could choose the slot, each key would be compared with all others. */
static void test_nobody_chooses_slots(void **state)
{
	double ratio = 1e9;

	for (int i = 0; i < TRIES; i++) {
		double others = time_to_put(any_hash), chosen = time_to_put(hash_of_one_slot);

		ratio = chosen / others < ratio ? chosen / others : ratio;
	}
	if (ratio > 10)
		fail_msg("chosen keys take %.0f times as long", ratio);
}

/* The second word cancels the first. */
static void test_nobody_chooses_hashes(void **state)
{
	uint64_t start = hash_u64(0x9e3779b97f4a7c15ull) ^ 16, first = 0;

	assert_int_equal(hash_u64(unhash_u64(12345)), 12345);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t words[2] = {i, hash_u64(start ^ i) + 0x9e3779b97f4a7c15ull};
		uint64_t hash = hash_bytes(words, sizeof(words), 0);

		assert_true(!i || hash != first);
		first = hash;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),		   cmocka_unit_test(test_put_get_remove),
		cmocka_unit_test(test_churn_stays_small), cmocka_unit_test(test_iterate_and_remove),
		cmocka_unit_test(test_hash_bytes),	   cmocka_unit_test(test_nobody_chooses_slots),
		cmocka_unit_test(test_nobody_chooses_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
