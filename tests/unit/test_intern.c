/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/intern.h"

static void test_equal_strings_equal_ids(void **state)
{
	struct intern intern;
	uint32_t a, b;

	assert_int_equal(intern_init(&intern), 0);
	a = intern_str(&intern, "java/lang/String");
	b = intern_str(&intern, "java/lang/Strin");
	assert_int_not_equal(a, b);
	assert_int_equal(intern_bytes(&intern, "java/lang/String.hashCode", 16), a);
	assert_int_equal(intern_bytes(&intern, "java/lang/Strin\0x", 17), b);
	assert_int_equal(intern.strings.len, 3);
	assert_string_equal(intern_text(&intern, a), "java/lang/String");
	intern_release(&intern);
	intern_release(NULL);
}

static void test_empty_is_zero(void **state)
{
	struct intern intern;

	assert_int_equal(intern_init(&intern), 0);
	assert_int_equal(intern_str(&intern, ""), 0);
	assert_int_equal(intern_bytes(&intern, "\0abc", 4), 0);
	assert_string_equal(intern_text(&intern, 0), "");
	assert_string_equal(intern_text(&intern, 12345), "");
	intern_release(&intern);
}

static void test_texts_stay_where_they_are(void **state)
{
	struct intern intern;
	const char *first;
	char text[32];

	assert_int_equal(intern_init(&intern), 0);
	first = intern_text(&intern, intern_str(&intern, "first"));
	for (uint32_t i = 0; i < 50000; i++) {
		snprintf(text, sizeof(text), "method%u", i);
		assert_int_equal(intern_str(&intern, text), i + 2);
	}
	for (uint32_t i = 0; i < 50000; i++) {
		snprintf(text, sizeof(text), "method%u", i);
		assert_string_equal(intern_text(&intern, i + 2), text);
	}
	assert_ptr_equal(intern_text(&intern, 1), first);
	intern_release(&intern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_strings_equal_ids),
		cmocka_unit_test(test_empty_is_zero),
		cmocka_unit_test(test_texts_stay_where_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
