/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "options.c"

static void test_control_alone(void **state)
{
	struct options options;
	const char *why = NULL;

	(void)state;
	assert_int_equal(options_parse(&options, "control=duet-1-ab", &why), 0);
	assert_string_equal(options.control, "duet-1-ab");
	assert_int_equal(options.wait_ms, 2000);
	assert_null(why);
}

static void test_both_in_any_order(void **state)
{
	struct options options;
	const char *why;

	(void)state;
	assert_int_equal(options_parse(&options, "wait=0,control=a", &why), 0);
	assert_int_equal(options.wait_ms, 0);
	assert_int_equal(options_parse(&options, "control=a,wait=60000", &why), 0);
	assert_int_equal(options.wait_ms, 60000);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		NULL,
		"",
		"control=",
		"control",
		"contrl=a",
		",",
		"wait=5",
		"control=a,b=c",
		"control=a,,b",
		"control=a,wait=",
		"control=a,wait=-1",
		"control=a,wait=60001",
		"control=a,wait=99999999999999999999",
		"control=a,wait=1x",
		"control=a,wait=0x10",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct options options = {.control = "untouched"};
		const char *why = NULL;

		assert_int_equal(options_parse(&options, texts[i], &why), -EINVAL);
		assert_non_null(why);
		assert_string_equal(options.control, "untouched");
	}
}

static void test_name_length(void **state)
{
	char text[256] = "control=";
	struct options options;
	const char *why;

	(void)state;
	memset(text + 8, 'n', DUET_NAME_MAX);
	assert_int_equal(options_parse(&options, text, &why), 0);
	assert_int_equal(strlen(options.control), DUET_NAME_MAX);
	strcat(text, "n");
	assert_int_equal(options_parse(&options, text, &why), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control_alone),
		cmocka_unit_test(test_both_in_any_order),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_name_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
