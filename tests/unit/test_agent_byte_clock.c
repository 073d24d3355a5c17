/* SPDX-License-Identifier: MIT */
/* Which calls sampling by bytes chooses, and the weights of the samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "byte_clock.c"

/* size / (1 - exp(-size / interval)), computed with 30 digits */
static void expect_weight(uint64_t size, uint64_t interval, double weight)
{
	double got = (double)byte_clock_weight(size, interval);

	assert_true(got <= weight + 1 && got >= weight - 1 - weight * 1e-9);
}

static void weights_are_unbiased(void **state)
{
	(void)state;
	expect_weight(16, 524288, 524296.00004);
	expect_weight(5242, 524288, 526913.36785);
	expect_weight(5243, 524288, 526913.86951);
	expect_weight(524288, 524288, 829411.40369);
	expect_weight(1048576, 524288, 1212696.64376);
	expect_weight(20971520, 524288, 20971520);
	expect_weight(1ull << 40, 524288, 1ull << 40);
	expect_weight(16, 1, 16);
	expect_weight(1, 1, 1);
	expect_weight(24, 4096, 4108.01172);
}

/* 40,000 samples, whose sum has an error of 0.5 % */
static void expect_sum(uint64_t interval, uint64_t size, uint64_t other_size)
{
	uint64_t sum = 0, want = 40000 * interval, taken = 0;
	struct byte_clock clock;

	byte_clock_start(&clock, interval, 7);
	while (taken < want) {
		taken += size;
		if (byte_clock_is_due(&clock, size))
			sum += byte_clock_weight(size, interval);
		if (other_size)
			(void)byte_clock_is_due(&clock, other_size);
	}
	assert_in_range(sum, want / 100 * 97, want / 100 * 103);
}

static void sums_are_right(void **state)
{
	(void)state;
	expect_sum(1000, 100, 0);
	expect_sum(1000, 1000, 0);
	expect_sum(1000, 100, 900); /* every second call, in the rhythm of the interval */
	expect_sum(1000, 5000, 0);
	expect_sum(100, 1, 99);
}

static void every_call_is_due(void **state)
{
	struct byte_clock clock;

	(void)state;
	byte_clock_start(&clock, 1, 1);
	for (int i = 0; i < 1000; i++)
		assert_true(byte_clock_is_due(&clock, 1));
}

/* A huge call ends one countdown only; later calls are sampled as before. */
static void huge_calls_do_not_stop_it(void **state)
{
	struct byte_clock clock;
	int count = 0;

	(void)state;
	byte_clock_start(&clock, 1000, 3);
	assert_true(byte_clock_is_due(&clock, UINT64_MAX));
	for (int i = 0; i < 10000; i++)
		count += byte_clock_is_due(&clock, 100);
	assert_in_range(count, 750, 1150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_unbiased),
		cmocka_unit_test(sums_are_right),
		cmocka_unit_test(every_call_is_due),
		cmocka_unit_test(huge_calls_do_not_stop_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
