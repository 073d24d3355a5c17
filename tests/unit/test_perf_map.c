/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/perf_map.h"

static struct perf_map map;
static int fd;

static int setup(void **state)
{
	char path[] = "/tmp/duet-perf-map-XXXXXX";

	map = (struct perf_map){0};
	fd = mkstemp(path);
	unlink(path);
	return fd < 0;
}

static int teardown(void **state)
{
	symbol_table_release(&map.table);
	close(fd);
	return 0;
}

static void append(const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(perf_map_read(&map, fd), 0);
}

static void test_appended_lines(void **state)
{
	append("1000 20 LazyCompile:~fib /app/x.js:1\n0x2000 10 second\n3000 10 cut o");
	assert_string_equal(symbol_table_find(&map.table, 0x101f, NULL), "LazyCompile:~fib /app/x.js:1");
	assert_null(symbol_table_find(&map.table, 0x1020, NULL));
	assert_string_equal(symbol_table_find(&map.table, 0x2000, NULL), "second");
	assert_null(symbol_table_find(&map.table, 0x3000, NULL));
	append("ff\n1000 40 again\n");
	assert_string_equal(symbol_table_find(&map.table, 0x3000, NULL), "cut off");
	/* compiled anew: the newest counts */
	assert_string_equal(symbol_table_find(&map.table, 0x103f, NULL), "again");
}

static void test_rewritten_file(void **state)
{
	append("1000 20 old\n2000 20 old too\n");
	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	append("1000 20 new\n");
	assert_string_equal(symbol_table_find(&map.table, 0x1000, NULL), "new");
	assert_null(symbol_table_find(&map.table, 0x2000, NULL));
}

static void test_hostile_lines(void **state)
{
	append("\n\n x\n1000\n1000 \n1000 10\n1000 10 \n1000 0 empty\nzz 10 name\n1000 zz name\n"
	       "ffffffffffffffff ffffffffffffffff last\n");
	assert_int_equal(map.table.rows.len, 1);
	assert_string_equal(symbol_table_find(&map.table, UINT64_MAX, NULL), "last");
	assert_int_equal(ftruncate(fd, (off_t)PERF_MAP_MAX_BYTES + 1), 0);
	assert_int_equal(perf_map_read(&map, fd), -EFBIG);
	assert_int_equal(map.table.rows.len, 1);
}

/* Bytes that the process read so far, as the kernel counts them. */
static long bytes_read(void)
{
	char text[512] = "";
	int io = open("/proc/self/io", O_RDONLY);

	assert_true(read(io, text, sizeof(text) - 1) > 0);
	close(io);
	return atol(strstr(text, "rchar: ") + strlen("rchar: "));
}

/* A line that never ends must not be read again and again, however it grows. The lines before it stay. */
static void test_endless_line(void **state)
{
	long before;

	append("1000 20 good\n");
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(perf_map_read(&map, fd), -EFBIG);
	before = bytes_read();
	for (int i = 1; i <= 10; i++) {
		assert_int_equal(ftruncate(fd, (1 << 20) + i), 0);
		assert_int_equal(perf_map_read(&map, fd), 0);
	}
	assert_in_range(bytes_read() - before, 0, 1 << 16);
	assert_string_equal(symbol_table_find(&map.table, 0x1000, NULL), "good");
	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	append("1000 20 new\n");
	assert_string_equal(symbol_table_find(&map.table, 0x1000, NULL), "new");
}

/* A NUL does not end the file. */
static void test_lines_behind_a_nul(void **state)
{
	static const char lines[] = "1000 20 one\0\n2000 20 two\n";

	assert_int_equal(write(fd, lines, sizeof(lines) - 1), sizeof(lines) - 1);
	assert_int_equal(perf_map_read(&map, fd), 0);
	assert_string_equal(symbol_table_find(&map.table, 0x2000, NULL), "two");
	assert_int_equal(map.parsed_bytes, sizeof(lines) - 1);
}

static void test_of_a_process(void **state)
{
	struct process self = {.pid = getpid(), .ns_pid = getpid(), .uid = geteuid()};
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	file = fopen(path, "w");
	fputs("4000 100 jitted\n", file);
	fclose(file);
	assert_string_equal(perf_map_find(&map, &self, 0x4010), "jitted");
	unlink(path);
	assert_string_equal(perf_map_find(&map, &self, 0x4010), "jitted");
	assert_null(perf_map_find(&map, &self, 0x5000));
}

#define map_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		map_test(test_appended_lines),
		map_test(test_rewritten_file),
		map_test(test_hostile_lines),
		map_test(test_endless_line),
		map_test(test_lines_behind_a_nul),
		map_test(test_of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
