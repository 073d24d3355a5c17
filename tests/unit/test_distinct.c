/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/map.h"

static void few_are_counted_exactly(void **state)
{
	struct distinct distinct = {0};

	for (uint64_t i = 0; i < 3000; i++)
		distinct_add(&distinct, hash_u64(i % 1000));
	assert_int_equal(distinct_count(&distinct), 1000);
	distinct_release(&distinct);
	assert_int_equal(distinct_count(&distinct), 0);
}

static void many_are_counted_within_a_tenth(void **state)
{
	struct distinct distinct = {0};

	for (uint64_t i = 0; i < 2000000; i++)
		distinct_add(&distinct, hash_u64(i % 700000));
	assert_in_range(distinct_count(&distinct), 630000, 770000);
	assert_true(map_bytes(&distinct.hashes) <= 40 << 10);
	distinct_release(&distinct);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_are_counted_exactly),
		cmocka_unit_test(many_are_counted_within_a_tenth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
