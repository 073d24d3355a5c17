/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/maps.h"

static struct maps parse(const char *text)
{
	struct maps maps = {0};

	assert_int_equal(maps_parse(&maps, text, strlen(text)), 0);
	return maps;
}

static void test_only_executable(void **state)
{
	struct maps maps = parse("55d0c000-55d0d000 r--p 00000000 fe:00 1234                       /usr/bin/java\n"
				 "55d0d000-55d0e000 r-xp 00001000 fe:10 1234                       /usr/bin/java\n"
				 "7f0000000000-7f0000010000 rwxp 00000000 00:00 0 \n"
				 "7ffd1000-7ffd3000 r-xp 00000000 00:00 0                          [vdso]\n");
	const struct mapping *java = maps_find_file(&maps, "java");

	(void)state;
	assert_int_equal(maps.list.len, 3);
	assert_ptr_equal(java, &maps.list.items[0]);
	assert_int_equal(java->start, 0x55d0d000);
	assert_int_equal(java->offset, 0x1000);
	assert_int_equal(java->dev_major, 0xfe);
	assert_int_equal(java->dev_minor, 0x10);
	assert_int_equal(java->inode, 1234);
	assert_string_equal(maps.list.items[1].path, "[vdso]"); /* sorted by address, whatever the file says */
	assert_string_equal(maps.list.items[2].path, "");
	assert_null(maps_find_file(&maps, "jav"));
	assert_null(maps_find_file(&maps, ""));
	maps_release(&maps);
	maps_release(NULL);
}

static void test_find(void **state)
{
	struct maps maps = parse("1000-2000 r-xp 0 0:0 0 \n2000-3000 r-xp 0 0:0 0 \n8000-9000 r-xp 0 0:0 0 \n");

	(void)state;
	assert_null(maps_find(&maps, 0xfff));
	assert_int_equal(maps_find(&maps, 0x1000)->start, 0x1000);
	assert_int_equal(maps_find(&maps, 0x1fff)->start, 0x1000);
	assert_int_equal(maps_find(&maps, 0x2000)->start, 0x2000);
	assert_null(maps_find(&maps, 0x3000));
	assert_null(maps_find(&maps, UINT64_MAX));
	maps_release(&maps);
	assert_null(maps_find(&maps, 0x1000));
}

static void test_paths(void **state)
{
	struct maps maps = parse("1000-2000 r-xp 0 0:0 1 /opt/my app/lib x.so (deleted)\n"
				 "2000-3000 r-xp 0 0:0 1 /tmp/two\\012lines (deleted) (deleted)\n"
				 "3000-4000 r-xp 0 0:0 1  (deleted)\n"
				 "4000-5000 r-xp 0 0:0 1 /x\\01\n");

	(void)state;
	assert_int_equal(maps.list.len, 4);
	assert_string_equal(maps.list.items[0].path, "/opt/my app/lib x.so");
	assert_string_equal(maps.list.items[1].path, "/tmp/two\nlines (deleted)");
	assert_string_equal(maps.list.items[3].path, "/x\\01");
	assert_non_null(maps_find_file(&maps, "lib x.so"));
	maps_release(&maps);
}

static void test_malformed_lines_are_skipped(void **state)
{
	struct maps maps = parse("\n-\nxyz\n1000-2000\n1000-2000 r-xp\n1000-2000 r-xp 0 0:0 \n"
				 "2000-1000 r-xp 0 0:0 0 \n1000-1000 r-xp 0 0:0 0 \n"
				 "11111111111111111-2 r-xp 0 0:0 0 \n1000-2000 r-xp 0 111111111:0 0 \n"
				 "1000-2000 r-xp -1 0:0 0 \n1000-2000r-xp 0 0:0 0 \n1000-2000 x 0 0:0 0 \n"
				 "7000-8000 r-xp 0 0:0 0 \n9000-a000 r-xp 0 0:0 0 /cut/of");

	(void)state;
	assert_int_equal(maps.list.len, 1);
	assert_int_equal(maps.list.items[0].start, 0x7000);
	maps_release(&maps);
}

static void test_equal(void **state)
{
	struct maps a = parse("1000-2000 r-xp 0 0:0 1 /a\n");
	struct maps b = parse("1000-2000 r-xp 0 0:0 1 /b\n");

	(void)state;
	assert_true(maps_equal(&a, &a));
	assert_false(maps_equal(&a, &b));
	maps_release(&a);
	assert_false(maps_equal(&a, &b));
	maps_release(&b);
	assert_true(maps_equal(&a, &b));
}

static void test_self(void **state)
{
	struct maps maps = {0};
	const struct mapping *mapping;

	(void)state;
	assert_int_equal(maps_read(&maps, getpid()), 0);
	mapping = maps_find(&maps, (uintptr_t)test_self);
	assert_non_null(mapping);
	assert_non_null(strstr(mapping->path, "test_maps"));
	assert_non_null(maps_find_file(&maps, "libc.so.6"));
	assert_int_equal(maps_read(&maps, 0x7ffffff), -ESRCH);
	assert_non_null(maps_find(&maps, (uintptr_t)test_self));
	maps_release(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_executable), cmocka_unit_test(test_find),
		cmocka_unit_test(test_paths),		cmocka_unit_test(test_malformed_lines_are_skipped),
		cmocka_unit_test(test_equal),		cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
