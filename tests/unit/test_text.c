/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static void distances(void **state)
{
	(void)state;
	assert_int_equal(text_distance("", ""), 0);
	assert_int_equal(text_distance("record", "record"), 0);
	assert_int_equal(text_distance("record", "recrod"), 2);
	assert_int_equal(text_distance("record", "recor"), 1);
	assert_int_equal(text_distance("record", "rrecord"), 1);
	assert_int_equal(text_distance("list", "last"), 1);
	assert_int_equal(text_distance("", "list"), 4);
	assert_int_equal(text_distance("list", ""), 4);
	assert_int_equal(text_distance("check", "daemon"), text_distance("daemon", "check"));
}

static void long_words_are_far(void **state)
{
	(void)state;
	assert_true(text_distance("list", "a word that is longer than thirty-two letters") == SIZE_MAX);
	assert_true(text_distance("a word that is longer than thirty-two letters", "list") == SIZE_MAX);
}

/* Lines stay; what moves a terminal's cursor does not. */
static void lines_are_cleaned(void **state)
{
	struct buf text;

	(void)state;
	buf_init(&text);
	text_clean_lines(&text);
	assert_int_equal(text.len, 0);
	buf_add_str(&text, "one\033[2J\ntwo \u00e9\r\xff\n");
	text_clean_lines(&text);
	assert_string_equal(text.data, "one?[2J\ntwo \u00e9??\n");
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances),
		cmocka_unit_test(long_words_are_far),
		cmocka_unit_test(lines_are_cleaned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
