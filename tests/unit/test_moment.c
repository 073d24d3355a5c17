/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cmd/selection.h"

/* 2026-11-22T23:59:00 UTC, for three minutes. */
#define START_NS (1795391940 * NS_PER_SEC)
#define END_NS (START_NS + 180 * NS_PER_SEC)

/* In ms after the start. */
static int64_t when(const char *text)
{
	struct moment moment = {0};
	struct buf why;
	int err;

	buf_init(&why);
	err = opt_moment(&moment, text, &why);
	assert_int_equal(err < 0, why.len > 0);
	buf_release(&why);
	assert_int_equal(err, 0);
	return ((int64_t)moment_ns(&moment, START_NS, END_NS, 0) - (int64_t)START_NS) / 1000000;
}

static void distances(void **state)
{
	assert_int_equal(when("10s"), 10000);
	assert_int_equal(when("10"), 10000);
	assert_int_equal(when("1500ms"), 1500);
	assert_int_equal(when("1.5s"), 1500);
	assert_int_equal(when("0.5"), 500);
	assert_int_equal(when("2m"), 120000);
	assert_int_equal(when("0"), 0);
	assert_int_equal(when("0.0s"), 0);
	assert_int_equal(when("-10s"), 170000);
	assert_int_equal(when("-0.25m"), 165000);
	assert_int_equal(when("-0"), 180000);
}

static void times_of_day(void **state)
{
	assert_int_equal(when("23:59:30"), 30000);
	assert_int_equal(when("00:00:05"), 65000); /* of the next day, which the recording has */
	assert_int_equal(when("00:01"), 120000);
	assert_int_equal(when("23:58:00"), -60000);
}

static void dates(void **state)
{
	assert_int_equal(when("2026-11-22T23:59:30"), 30000);
	assert_int_equal(when("2026-11-22T23:59:30Z"), 30000);
	assert_int_equal(when("2026-11-23"), 60000);
}

static void nonsense(void **state)
{
	static const char *const texts[] = {"", "-", "soon", "25:00:00", "1:2:3:4", "2026-13-01", "10 s", "1x", "--1s",
					    "1900-01-01", "99999999999999999999"};
	struct moment moment = {0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct buf why;

		buf_init(&why);
		assert_true(opt_moment(&moment, texts[i], &why) < 0);
		assert_true(why.len > 0);
		assert_int_equal(moment.kind, MOMENT_NONE);
		buf_release(&why);
	}
	assert_int_equal(moment_ns(&moment, 1, 2, 3), 3);
}

/* No time wraps around. */
static void absurd_recordings(void **state)
{
	const struct moment late = {MOMENT_AFTER_START, UINT64_MAX / 2}, early = {MOMENT_BEFORE_END, 5};

	assert_true(moment_ns(&late, UINT64_MAX - 5, UINT64_MAX, 0) == UINT64_MAX);
	assert_int_equal(moment_ns(&early, 1, 2, 9), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances),	 cmocka_unit_test(times_of_day),      cmocka_unit_test(dates),
		cmocka_unit_test(nonsense),	 cmocka_unit_test(absurd_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
