/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "options.c"

#define SECRET "0123456789abcdef0123456789abcdef"

/* For an agent on a command line, the secret is in the environment, and is removed from it. */
static void test_secret_of_environment(void **state)
{
	struct agent_options options;
	const char *why;

	setenv("DUET_SECRET", SECRET, 1);
	assert_int_equal(options_parse(&options, "control=a", &why), 0);
	assert_memory_equal(options.secret, SECRET, DUET_SECRET_DIGITS);
	assert_null(getenv("DUET_SECRET"));
	setenv("DUET_SECRET", "short", 1);
	assert_int_equal(options_parse(&options, "control=a", &why), -EINVAL);
}

static void test_control_alone(void **state)
{
	struct agent_options options;
	const char *why = NULL;

	assert_int_equal(options_parse(&options, "control=duet-1-ab,secret=" SECRET, &why), 0);
	assert_string_equal(options.control, "duet-1-ab");
	assert_memory_equal(options.secret, SECRET, DUET_SECRET_DIGITS);
	assert_int_equal(options.wait_ms, 2000);
	assert_null(why);
}

static void test_both_in_any_order(void **state)
{
	struct agent_options options;
	const char *why;

	assert_int_equal(options_parse(&options, "wait=0,control=a,secret=" SECRET, &why), 0);
	assert_int_equal(options.wait_ms, 0);
	assert_int_equal(options_parse(&options, "control=a,secret=" SECRET ",wait=60000", &why), 0);
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
		"control=a",
		"control=a,secret=",
		"control=a,secret=0123",
		"control=a,secret=" SECRET "0",
		"control=a,secret=0123456789abcdef0123456789abcdeg",
		",",
		"wait=5",
		"secret=" SECRET ",control=a,b=c",
		"secret=" SECRET ",control=a,,b",
		"secret=" SECRET ",control=a,wait=",
		"secret=" SECRET ",control=a,wait=-1",
		"secret=" SECRET ",control=a,wait=60001",
		"secret=" SECRET ",control=a,wait=99999999999999999999",
		"secret=" SECRET ",control=a,wait=1x",
		"secret=" SECRET ",control=a,wait=0x10",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct agent_options options = {.control = "untouched"};
		const char *why = NULL;

		assert_int_equal(options_parse(&options, texts[i], &why), -EINVAL);
		assert_non_null(why);
		assert_string_equal(options.control, "untouched");
	}
}

static void test_name_length(void **state)
{
	char text[256] = "secret=" SECRET ",control=";
	struct agent_options options;
	const char *why;

	memset(text + strlen(text), 'n', DUET_NAME_MAX);
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
		cmocka_unit_test(test_secret_of_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
