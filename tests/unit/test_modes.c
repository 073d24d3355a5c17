/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/modes.h"

static void cpu_is_known(void **state)
{
	const struct mode *mode = mode_by_name("cpu");

	(void)state;
	assert_non_null(mode);
	assert_string_equal(mode->name, "cpu");
	assert_int_equal(mode->default_interval_ns, 10 * NS_PER_MS);
}

static void names_match_whole(void **state)
{
	(void)state;
	assert_null(mode_by_name(""));
	assert_null(mode_by_name("cp"));
	assert_null(mode_by_name("cpus"));
	assert_null(mode_by_name("CPU"));
}

static void rows_are_complete(void **state)
{
	(void)state;
	for (const struct mode *mode = modes; mode->name; mode++) {
		assert_ptr_equal(mode_by_name(mode->name), mode);
		assert_non_null(mode->help);
		assert_non_null(mode->program);
		assert_non_null(mode->program_cookie);
		assert_string_not_equal(mode->program, mode->program_cookie);
		assert_true(mode->default_interval_ns > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_is_known),
		cmocka_unit_test(names_match_whole),
		cmocka_unit_test(rows_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
