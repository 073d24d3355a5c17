/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void distances(void **state)
{
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
	assert_true(text_distance("list", "a word that is longer than thirty-two letters") == SIZE_MAX);
	assert_true(text_distance("a word that is longer than thirty-two letters", "list") == SIZE_MAX);
}

/* Returns what `typed` is taken for, among some words. */
static const char *guess_of(const char *typed)
{
	static const char *const words[] = {"cpu", "cpu-clock", "wall", "alloc", "flamegraph", "page-faults"};
	static struct text_guess guess;

	guess = (struct text_guess){.typed = typed};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		text_guess(&guess, words[i]);
	return guess.word;
}

static void mistyped_words_are_guessed(void **state)
{
	assert_string_equal(guess_of("cup"), "cpu");
	assert_string_equal(guess_of("wal"), "wall");
	assert_string_equal(guess_of("flame"), "flamegraph");
	assert_string_equal(guess_of("page_fault"), "page-faults");
	assert_string_equal(guess_of("aloc"), "alloc");
	assert_string_equal(guess_of("cp"), "cpu");
	assert_string_equal(guess_of("c"), "");
	assert_string_equal(guess_of(""), "");
	assert_string_equal(guess_of("gpu"), "cpu");
	assert_string_equal(guess_of("tea"), "");
	assert_string_equal(guess_of("a word that is longer than thirty-two letters"), "");
}

/* Lines stay; what moves a terminal's cursor does not. */
static void lines_are_cleaned(void **state)
{
	struct buf text;

	buf_init(&text);
	text_clean_lines(&text);
	assert_int_equal(text.len, 0);
	buf_add_str(&text, "one\033[2J\ntwo \u00e9\r\xff\n");
	text_clean_lines(&text);
	assert_string_equal(text.data, "one?[2J\ntwo \u00e9??\n");
	buf_release(&text);
}

static void expect_joined(const char *from, const char *want)
{
	char text[64];

	strcpy(text, from);
	text[text_join_surrogates(text, strlen(text))] = '\0';
	assert_string_equal(text, want);
}

static void surrogates_become_one_character(void **state)
{
	struct buf buf;

	expect_joined("a\xed\xa0\xbd\xed\xb8\x80z", "a\xf0\x9f\x98\x80z");
	expect_joined("\xed\xa1\x82\xed\xbe\xb7\xed\xa0\xbd\xed\xb8\x80", "\xf0\xa0\xae\xb7\xf0\x9f\x98\x80");
	expect_joined("\xed\x95\x9c", "\xed\x95\x9c"); /* a letter of Korean */
	expect_joined("\xed\xa0\xbd\xed\xa0\xbd", "\xed\xa0\xbd\xed\xa0\xbd"); /* two of the first kind */
	expect_joined("\xed\xb8\x80\xed\xa0\xbd", "\xed\xb8\x80\xed\xa0\xbd");
	expect_joined("\xed\xa0\xbd\xed\xb8", "\xed\xa0\xbd\xed\xb8"); /* cut */
	buf_init(&buf);
	text_add_surrogates(&buf, "a\xf0\x9f\x98\x80\xc3\xa4\xf0\xa0\xae\xb7\xf0\x9f");
	assert_string_equal(buf.data, "a\xed\xa0\xbd\xed\xb8\x80\xc3\xa4\xed\xa1\x82\xed\xbe\xb7\xf0\x9f");
	buf_release(&buf);
}

static void words_are_found(void **state)
{
	assert_true(text_is_word("-p", "-cp -p --path"));
	assert_true(text_is_word("--path", "-cp -p --path"));
	assert_false(text_is_word("--pa", "-cp -p --path"));
	assert_false(text_is_word("-p --path", "-cp -p --path"));
	assert_false(text_is_word("", "-cp -p --path"));
	assert_true(text_begins_with("-p2", "-cp -p --path"));
	assert_false(text_begins_with("-", "-cp -p --path"));
	assert_false(text_begins_with("", "-cp"));
	assert_false(text_begins_with("-cp", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_found),
		cmocka_unit_test(surrogates_become_one_character),
		cmocka_unit_test(distances),
		cmocka_unit_test(long_words_are_far),
		cmocka_unit_test(mistyped_words_are_guessed),
		cmocka_unit_test(lines_are_cleaned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
