/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "duet_jvm.h"
#include "proc/maps.h"

static struct maps parse(const char *text)
{
	struct maps maps = {0};

	assert_int_equal(maps_parse(&maps, text, strlen(text)), 0);
	return maps;
}

static void test_libjvm(void **state)
{
	struct maps maps = parse("1000-2000 r-xp 00000000 fe:00 1 /libjvm.so.orig\n"
				 "2000-3000 r-xp 00000000 fe:00 2 /jdk/xlibjvm.so\n"
				 "3000-4000 r-xp 00000000 fe:00 3 /jdk/libjvm.so (deleted)\n");

	assert_ptr_equal(maps_libjvm(&maps), &maps.list.items[2]);
	assert_true(duet_is_libjvm("libjvm.so"));
	assert_true(duet_is_libjvm("/jdk/lib/server/libjvm.so (deleted)"));
	maps_release(&maps);
}

static void test_only_executable(void **state)
{
	struct maps maps = parse("55d0c000-55d0d000 r--p 00000000 fe:00 1234                       /usr/bin/java\n"
				 "55d0d000-55d0e000 r-xp 00001000 fe:10 1234                       /usr/bin/java\n"
				 "7f0000000000-7f0000010000 rwxp 00000000 00:00 0 \n"
				 "7ffd1000-7ffd3000 r-xp 00000000 00:00 0                          [vdso]\n");
	const struct mapping *java = maps_find_file(&maps, "java");

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
	assert_null(maps_libjvm(&maps));
	maps_release(&maps);
	maps_release(NULL);
}

/* Huge pages in the middle of a file's code have its code. Other memory between files has not. */
static void test_holes(void **state)
{
	struct maps maps = parse("1000-2000 r-xp 00001000 fe:00 7 /a\n"
				 "2000-3000 r-xp 00000000 00:00 0 \n"
				 "3000-5000 r-xs 00000000 00:01 9 /memfd:huge (deleted)\n"
				 "5000-6000 r-xp 00005000 fe:00 7 /a\n"
				 "6000-7000 r-xp 00000000 00:00 0 \n"
				 "7000-8000 r-xp 00008000 fe:00 7 /a\n" /* another part than that which was there */
				 "8000-9000 r-xp 00000000 00:00 0 \n"
				 "a000-b000 r-xp 0000b000 fe:00 7 /a\n"); /* not adjacent */

	for (uint64_t at = 0x1000; at < 0x6000; at += 0x1000) {
		const struct mapping *mapping = maps_find(&maps, at);

		assert_string_equal(mapping->path, "/a");
		assert_int_equal(mapping->inode, 7);
		assert_int_equal(mapping->dev_major, 0xfe);
		assert_int_equal(mapping->offset, mapping->start);
	}
	assert_int_equal(maps_find(&maps, 0x6000)->inode, 0);
	assert_int_equal(maps_find(&maps, 0x8000)->inode, 0);
	assert_int_equal(maps.list.len, 8);
	maps_release(&maps);
}

static void test_find(void **state)
{
	struct maps maps = parse("1000-2000 r-xp 0 0:0 0 \n2000-3000 r-xp 0 0:0 0 \n8000-9000 r-xp 0 0:0 0 \n");

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

	assert_int_equal(maps.list.len, 1);
	assert_int_equal(maps.list.items[0].start, 0x7000);
	maps_release(&maps);
}

static void test_equal(void **state)
{
	struct maps a = parse("1000-2000 r-xp 0 0:0 1 /a\n");
	struct maps b = parse("1000-2000 r-xp 0 0:0 1 /b\n");

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

	assert_int_equal(maps_read(&maps, CHARGE_OWN(getpid())), 0);
	mapping = maps_find(&maps, (uintptr_t)test_self);
	assert_non_null(mapping);
	assert_non_null(strstr(mapping->path, "test_maps"));
	assert_non_null(maps_find_file(&maps, "libc.so.6"));
	assert_int_equal(maps_read(&maps, CHARGE_OWN(0x7ffffff)), -ESRCH);
	assert_non_null(maps_find(&maps, (uintptr_t)test_self));
	maps_release(&maps);
}

static void unlink_in(const char *folder, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

/* Maps an executable page of a file of this name, which is deleted then if `is_deleted`. */
static void map_file(const char *folder, const char *name, bool is_deleted)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_ptr_not_equal(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096), MAP_FAILED);
	close(fd);
	if (is_deleted)
		unlink_in(folder, name);
}

static void remove_line(struct buf *text, const char *with)
{
	char *at, *end;

	buf_add_char(text, '\0');
	buf_cut(text, text->len - 1);
	at = strstr(text->data, with);
	if (!at)
		return;
	while (at > text->data && at[-1] != '\n')
		at--;
	end = strchr(at, '\n') + 1;
	memmove(at, end, (size_t)(text->data + text->len - end));
	buf_cut(text, text->len - (size_t)(end - at));
}

/* Linux 6.11 answers questions; before, the file is read. */
static void test_questions_and_file_agree(void **state)
{
	struct maps asked = {0}, written = {0};
	char folder[] = "/tmp/duet-maps-XXXXXX";
	struct buf text;

	assert_non_null(mkdtemp(folder));
	map_file(folder, "plain", false);
	map_file(folder, "two\nlines  and blanks", false);
	map_file(folder, "gone", true);
	assert_ptr_not_equal(mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
	assert_int_equal(maps_read(&asked, CHARGE_OWN(getpid())), 0);
	buf_init(&text);
	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/maps", MAPS_MAX_FILE, &text), 0);
	remove_line(&text, "[vsyscall]");
	assert_int_equal(maps_parse(&written, text.data, text.len), 0);
	if (asked.list.len && asked.list.items[asked.list.len - 1].start >> 63)
		free(asked.list.items[--asked.list.len].path); /* [vsyscall] of a kernel that does not answer */
	assert_in_range(asked.list.len, 5, 100);
	assert_true(maps_equal(&asked, &written));
	assert_non_null(maps_find_file(&asked, "two\nlines  and blanks"));
	assert_non_null(maps_find_file(&asked, "gone"));
	buf_release(&text);
	maps_release(&asked);
	maps_release(&written);
	unlink_in(folder, "plain");
	unlink_in(folder, "two\nlines  and blanks");
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_executable), cmocka_unit_test(test_find),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_paths),		cmocka_unit_test(test_malformed_lines_are_skipped),
		cmocka_unit_test(test_equal),		cmocka_unit_test(test_self),
		cmocka_unit_test(test_questions_and_file_agree), cmocka_unit_test(test_libjvm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
