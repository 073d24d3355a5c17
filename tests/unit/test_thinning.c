/* SPDX-License-Identifier: MIT */
/* Fewer samples near a limit, each for several. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "profile/thinning.h"

#define LIMIT (16u << 20)

static void without_a_limit_all_are_kept(void **state)
{
	struct thinning thinning = {0};

	thinning_step(&thinning, UINT64_MAX);
	assert_int_equal(thinning_take(&thinning), 1);
	thinning_open(&thinning, 0);
	thinning_step(&thinning, UINT64_MAX);
	assert_int_equal(thinning_take(&thinning), 1);
}

static void fewer_are_kept_as_it_fills(void **state)
{
	struct thinning thinning;
	const uint64_t half = (LIMIT - LIMIT / 16) / 2, part = half / THINNING_SHIFT_MAX;

	thinning_open(&thinning, LIMIT);
	thinning_step(&thinning, 0);
	assert_int_equal(thinning.shift, 0);
	thinning_step(&thinning, half);
	assert_int_equal(thinning.shift, 0);
	thinning_step(&thinning, half + 1);
	assert_int_equal(thinning.shift, 1);
	thinning_step(&thinning, half + part + 1);
	assert_int_equal(thinning.shift, 2);
	thinning_step(&thinning, 2 * half - 1);
	assert_int_equal(thinning.shift, THINNING_SHIFT_MAX);
	thinning_step(&thinning, 2 * half);
	assert_true(thinning.shift > THINNING_SHIFT_MAX);
	assert_int_equal(thinning_take(&thinning), 0);
	thinning_step(&thinning, UINT64_MAX);
	assert_int_equal(thinning_take(&thinning), 0);
	thinning_step(&thinning, 0); /* what was about to be written took less */
	assert_int_equal(thinning_take(&thinning), 1);
}

/* A million samples of 16 bytes, where 1 MB is allowed: their sum is kept within a few percent. */
static void sums_stay_right(void **state)
{
	const uint64_t samples = 1000000, limit = 1 << 20;
	struct thinning thinning;
	uint64_t used = 0, sum = 0;

	thinning_open(&thinning, limit);
	thinning.random = 12345; /* the same each time */
	for (uint64_t i = 0; i < samples; i++) {
		uint32_t times;

		thinning_step(&thinning, used);
		times = thinning_take(&thinning);
		used += times ? 16 : 0;
		sum += times;
	}
	assert_true(used < limit);
	assert_in_range(sum, samples * 95 / 100, samples * 105 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_limit_all_are_kept),
		cmocka_unit_test(fewer_are_kept_as_it_fills),
		cmocka_unit_test(sums_stay_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
