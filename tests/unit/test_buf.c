/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/vec.h"

static void test_empty_is_a_string(void **state)
{
	struct buf buf;

	buf_init(&buf);
	assert_string_equal(buf.data, "");
	buf_clear(&buf);
	buf_add(&buf, NULL, 0);
	assert_string_equal(buf.data, "");
	buf_release(&buf);
	buf_release(NULL);
}

static void test_grows_and_stays_terminated(void **state)
{
	struct buf buf;

	buf_init(&buf);
	for (int i = 0; i < 10000; i++) {
		buf_add_char(&buf, (char)('a' + i % 26));
		assert_int_equal(strlen(buf.data), i + 1);
	}
	assert_int_equal(buf.len, 10000);
	buf_clear(&buf);
	assert_string_equal(buf.data, "");
	buf_printf(&buf, "%d %s", 42, "frames");
	buf_add_str(&buf, "!");
	assert_string_equal(buf.data, "42 frames!");
	buf_cut(&buf, 99);
	buf_cut(&buf, 2);
	assert_string_equal(buf.data, "42");
	buf_release(&buf);
}

static void test_holds_any_byte(void **state)
{
	struct buf buf;

	buf_init(&buf);
	buf_add(&buf, "a\0b", 3);
	assert_memory_equal(buf.data, "a\0b", 4);
	buf_release(&buf);
}

static void test_failure_keeps_content(void **state)
{
	struct buf buf;

	buf_init(&buf);
	buf_add_str(&buf, "kept");
	buf_add(&buf, "x", SIZE_MAX / 2);
	assert_true(buf.failed);
	assert_string_equal(buf.data, "kept");
	assert_null(buf_detach(&buf));
	assert_string_equal(buf.data, "");
}

static void test_detach(void **state)
{
	struct buf buf;
	char *text;

	buf_init(&buf);
	text = buf_detach(&buf);
	assert_string_equal(text, "");
	free(text);
	buf_add_str(&buf, "mine");
	text = buf_detach(&buf);
	assert_string_equal(text, "mine");
	assert_int_equal(buf.len, 0);
	free(text);
}

static void test_vec(void **state)
{
	struct vec(int) numbers = {0};

	for (int i = 0; i < 1000; i++)
		assert_int_equal(vec_push(&numbers, i), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(numbers.items[i], i);
	assert_int_equal(vec_reserve(&numbers, SIZE_MAX / 2), -12);
	assert_int_equal(numbers.len, 1000);
	vec_release(&numbers);
	assert_null(numbers.items);
}

static void test_arena(void **state)
{
	struct arena arena = {0};
	char *small = arena_copy(&arena, "small", 5);
	char *large = arena_alloc(&arena, 1 << 20);
	char *after = arena_alloc(&arena, 3);

	assert_string_equal(small, "small");
	assert_int_equal((uintptr_t)large % 16, 0);
	assert_int_equal(after - small, 16); /* a large allocation does not close the block in use */
	for (int i = 0; i < 1 << 20; i++)
		assert_int_equal(large[i], 0);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_copy(&arena, "", SIZE_MAX));
	assert_true(arena.bytes >= 1 << 20);
	arena_release(&arena);
	assert_int_equal(arena.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_is_a_string),
		cmocka_unit_test(test_grows_and_stays_terminated),
		cmocka_unit_test(test_holds_any_byte),
		cmocka_unit_test(test_failure_keeps_content),
		cmocka_unit_test(test_detach),
		cmocka_unit_test(test_vec),
		cmocka_unit_test(test_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
