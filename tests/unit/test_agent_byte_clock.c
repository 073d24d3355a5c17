/* SPDX-License-Identifier: MIT */
/* Which calls sampling by bytes chooses, and the weights of the samples. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "event/byte_clock.c"

/* As a caller does. */
static bool due(struct byte_clock *clock, uint64_t size)
{
	return !byte_clock_passes(clock, size) && byte_clock_is_due(clock, size);
}

/* size / (1 - exp(-size / interval)), computed with 30 digits */
static void expect_weight(uint64_t size, uint64_t interval, double weight)
{
	double got = (double)byte_clock_weight(size, interval);

	assert_true(got <= weight + 1 && got >= weight - 1 - weight * 1e-9);
}

static void weights_are_unbiased(void **state)
{
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
static void expect_sum_of(bool is_shared, uint64_t interval, uint64_t size, uint64_t other_size)
{
	uint64_t sum = 0, want = 40000 * interval, taken = 0;
	struct byte_clock clock;

	byte_clock_start(&clock, interval, 7);
	for (int i = 0; is_shared && i < BYTE_CLOCK_THREADS; i++)
		clock.own[i].owner = 1; /* another thread's */
	while (taken < want) {
		taken += size;
		if (due(&clock, size))
			sum += byte_clock_weight(size, interval);
		if (other_size)
			(void)due(&clock, other_size);
	}
	assert_in_range(sum, want / 100 * 97, want / 100 * 103);
}

static void expect_sum(uint64_t interval, uint64_t size, uint64_t other_size)
{
	expect_sum_of(false, interval, size, other_size);
	expect_sum_of(true, interval, size, other_size);
}

static void sums_are_right(void **state)
{
	expect_sum(1000, 100, 0);
	expect_sum(1000, 1000, 0);
	expect_sum(1000, 100, 900); /* every second call, in the rhythm of the interval */
	expect_sum(1000, 5000, 0);
	expect_sum(100, 1, 99);
}

static void every_call_is_due(void **state)
{
	struct byte_clock clock;

	byte_clock_start(&clock, 1, 1);
	for (int i = 0; i < 1000; i++)
		assert_true(due(&clock, 1));
}

/* A huge call ends one countdown only; later calls are sampled as before. */
static void huge_calls_do_not_stop_it(void **state)
{
	struct byte_clock clock;
	int count = 0;

	byte_clock_start(&clock, 1000, 3);
	assert_true(due(&clock, UINT64_MAX));
	for (int i = 0; i < 10000; i++)
		count += due(&clock, 100);
	assert_in_range(count, 750, 1150);
}

struct counting {
	struct byte_clock *clock;
	uint64_t sum;
};

static void *count_in_thread(void *arg)
{
	struct counting *counting = arg;

	for (int i = 0; i < 1000000; i++)
		if (due(counting->clock, 100))
			counting->sum += byte_clock_weight(100, 1000);
	return NULL;
}

/* Two threads whose place is the same one: one owns it, the other one shares another. */
static void threads_do_not_disturb_each_other(void **state)
{
	struct byte_clock clock;
	struct counting first = {&clock, 0}, second = {&clock, 0};
	pthread_t thread;

	byte_clock_start(&clock, 1000, 11);
	for (int i = 0; i < BYTE_CLOCK_THREADS; i++)
		clock.own[i] = (struct byte_countdown){(uintptr_t)__builtin_thread_pointer(), 500, 1};
	assert_int_equal(pthread_create(&thread, NULL, count_in_thread, &first), 0);
	count_in_thread(&second);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_in_range(first.sum, 94000000, 106000000);
	assert_in_range(second.sum, 94000000, 106000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_unbiased),
		cmocka_unit_test(sums_are_right),
		cmocka_unit_test(every_call_is_due),
		cmocka_unit_test(huge_calls_do_not_stop_it),
		cmocka_unit_test(threads_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
