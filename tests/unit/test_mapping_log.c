/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "proc/maps.h"

static struct mapping_log log_of_test;
static struct maps maps;
static pid_t parent;
static uint64_t forked_ns;

static int teardown(void **state)
{
	mapping_log_release(&log_of_test);
	maps_release(&maps);
	return 0;
}

static void add(uint64_t time_ns, pid_t pid, enum mapping_note_kind kind, uint64_t start, const char *path)
{
	char text[32] = "";
	struct mapping_note note = {
		.time_ns = time_ns,
		.pid = pid,
		.parent = 1,
		.kind = kind,
		.mapping = {.start = start, .end = start + 0x1000, .path = text},
	};

	if (path)
		snprintf(text, sizeof(text), "%s", path);
	assert_int_equal(mapping_log_add(&log_of_test, &note), 0);
}

static int find(pid_t pid, uint64_t time_ns)
{
	maps_release(&maps);
	return mapping_log_find(&log_of_test, pid, time_ns, &maps, &parent, &forked_ns);
}

static void expect_mapped(size_t index, uint64_t start, const char *path)
{
	assert_true(index < maps.list.len);
	assert_int_equal(maps.list.items[index].start, start);
	assert_string_equal(maps.list.items[index].path, path);
}

static void test_empty(void **state)
{
	assert_int_equal(find(7, UINT64_MAX), -ENOENT);
	assert_false(mapping_log_has_exec(&log_of_test, 7, 0));
}

static void test_life(void **state)
{
	add(10, 7, MAPPING_NOTE_FORKED, 0, NULL);
	add(20, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(21, 7, MAPPING_NOTE_MAPPED, 0x4000, "/bin/a");
	add(22, 7, MAPPING_NOTE_MAPPED, 0x2000, "/lib/b");
	add(25, 8, MAPPING_NOTE_MAPPED, 0x2000, "/lib/other");
	add(30, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(31, 7, MAPPING_NOTE_MAPPED, 0x4000, "/bin/c");

	assert_int_equal(find(7, 9), -ENOENT);
	assert_int_equal(find(7, 15), 0); /* as it was forked */
	assert_int_equal(parent, 1);
	assert_int_equal(forked_ns, 10);
	assert_int_equal(maps.list.len, 0);
	assert_int_equal(find(7, 21), 0); /* without later mappings */
	assert_int_equal(parent, 0);
	assert_int_equal(maps.list.len, 1);
	assert_int_equal(find(7, 29), 0);
	assert_int_equal(maps.list.len, 2);
	expect_mapped(0, 0x2000, "/lib/b"); /* sorted */
	expect_mapped(1, 0x4000, "/bin/a");
	assert_int_equal(find(7, 40), 0);
	assert_int_equal(maps.list.len, 1);
	expect_mapped(0, 0x4000, "/bin/c");
	assert_int_equal(find(8, 40), -ENOENT); /* its beginning is not known, so nothing is guessed */
	assert_int_equal(maps.list.len, 0);
	assert_true(mapping_log_has_exec(&log_of_test, 7, 29));
	assert_false(mapping_log_has_exec(&log_of_test, 7, 30));
}

/* Another process gets the same pid: it does not have the first one's mappings. */
static void test_number_reused(void **state)
{
	add(10, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(11, 7, MAPPING_NOTE_MAPPED, 0x4000, "/bin/first");
	add(20, 7, MAPPING_NOTE_FORKED, 0, NULL);
	assert_int_equal(find(7, 19), 0);
	expect_mapped(0, 0x4000, "/bin/first");
	assert_int_equal(find(7, 21), 0);
	assert_int_equal(maps.list.len, 0);
	assert_int_equal(parent, 1);
}

/* Rings of CPUs are read one after the other. */
static void test_out_of_order(void **state)
{
	add(22, 7, MAPPING_NOTE_MAPPED, 0x4000, "/bin/new");
	add(12, 7, MAPPING_NOTE_MAPPED, 0x4000, "/bin/old");
	add(20, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(10, 7, MAPPING_NOTE_EXEC, 0, NULL);
	assert_int_equal(find(7, 30), 0);
	assert_int_equal(maps.list.len, 1);
	expect_mapped(0, 0x4000, "/bin/new");
	assert_int_equal(find(7, 15), 0);
	expect_mapped(0, 0x4000, "/bin/old");
}

static void test_newer_mapping_wins(void **state)
{
	add(10, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(11, 7, MAPPING_NOTE_MAPPED, 0x4000, "/lib/closed");
	add(12, 7, MAPPING_NOTE_MAPPED, 0x4800, "/lib/opened");
	assert_int_equal(find(7, 30), 0);
	assert_int_equal(maps.list.len, 1);
	expect_mapped(0, 0x4800, "/lib/opened");
}

/* The oldest notes are dropped, and with them the processes that began before. */
static void test_overwritten(void **state)
{
	add(1, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(2, 7, MAPPING_NOTE_MAPPED, 0x1000, "/bin/a");
	for (uint64_t i = 3; i <= MAPPING_LOG_NOTES; i++)
		add(i, 1000 + (pid_t)i, MAPPING_NOTE_EXEC, 0, NULL);
	assert_int_equal(find(7, UINT64_MAX), 0);
	assert_int_equal(maps.list.len, 1);
	add(MAPPING_LOG_NOTES + 1, 7, MAPPING_NOTE_MAPPED, 0x2000, "/bin/b");
	assert_int_equal(find(7, UINT64_MAX), -ENOENT);
	for (uint64_t i = 0; i < 3 * MAPPING_LOG_NOTES; i++)
		add(i, 50000 + (pid_t)i, MAPPING_NOTE_EXEC, 0, NULL);
	assert_int_equal(find(7, UINT64_MAX), -ENOENT);
	assert_int_equal(log_of_test.last.len, MAPPING_LOG_NOTES); /* no process is kept for ever */
}

/* A program that maps without end takes no others' room. */
static void test_too_many(void **state)
{
	uint64_t number = 0;

	add(1, 8, MAPPING_NOTE_EXEC, 0, NULL);
	add(1, 8, MAPPING_NOTE_MAPPED, 0x1000, "/bin/b");
	add(1, 7, MAPPING_NOTE_EXEC, 0, NULL);
	for (uint64_t i = 0; i < 2 * MAPPING_LOG_NOTES; i++)
		add(2, 7, MAPPING_NOTE_MAPPED, (i + 1) << 12, "/bin/a");
	assert_int_equal(find(7, UINT64_MAX), 0);
	assert_int_equal(maps.list.len, MAPPING_LOG_MAPPINGS);
	assert_int_equal(find(8, UINT64_MAX), 0);
	expect_mapped(0, 0x1000, "/bin/b");
	number = log_of_test.count;
	add(3, 7, MAPPING_NOTE_MAPPED, 0x1000, "/lib/libjvm.so");
	assert_non_null(mapping_log_next(&log_of_test, &number));
	add(4, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(5, 7, MAPPING_NOTE_MAPPED, 0x1000, "/bin/c");
	assert_int_equal(find(7, UINT64_MAX), 0);
	assert_int_equal(maps.list.len, 1);
}

/* Each note once, in the order in which they were added; those that were dropped are passed over. */
static void test_next(void **state)
{
	uint64_t number = 0;
	pid_t pid = 0;

	assert_null(mapping_log_next(&log_of_test, &number));
	add(10, 7, MAPPING_NOTE_EXEC, 0, NULL);
	add(9, 8, MAPPING_NOTE_MAPPED, 0x4000, "/bin/a");
	assert_int_equal(mapping_log_next(&log_of_test, &number)->pid, 7);
	assert_string_equal(mapping_log_next(&log_of_test, &number)->mapping.path, "/bin/a");
	assert_null(mapping_log_next(&log_of_test, &number));
	assert_null(mapping_log_next(&log_of_test, &number));
	for (pid = 100; pid < 100 + MAPPING_LOG_NOTES + 5; pid++)
		add(20, pid, MAPPING_NOTE_EXEC, 0, NULL);
	for (pid = 105; pid < 100 + MAPPING_LOG_NOTES + 5; pid++)
		assert_int_equal(mapping_log_next(&log_of_test, &number)->pid, pid);
	assert_null(mapping_log_next(&log_of_test, &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_empty, teardown),
		cmocka_unit_test_teardown(test_life, teardown),
		cmocka_unit_test_teardown(test_number_reused, teardown),
		cmocka_unit_test_teardown(test_out_of_order, teardown),
		cmocka_unit_test_teardown(test_newer_mapping_wins, teardown),
		cmocka_unit_test_teardown(test_overwritten, teardown),
		cmocka_unit_test_teardown(test_too_many, teardown),
		cmocka_unit_test_teardown(test_next, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
