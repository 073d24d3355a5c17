/* SPDX-License-Identifier: MIT */
/* The rows of ELF files: their sources, their debug files, and how they cross from one process to another. */
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

#include "unwind/unwind_file.h"
#include "proc/maps.h"

static void this_program_has_rows(void **state)
{
	struct unwind_file file = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(unwind_file_read(&file, fd), 0);
	assert_true(file.rows.rows.len > 100);
	assert_true(file.base != 0);
	for (size_t i = 1; i < file.rows.rows.len; i++)
		assert_true(file.rows.rows.items[i].pc > file.rows.rows.items[i - 1].pc);
	unwind_file_release(&file);
	close(fd);
}

static int unpacked(struct unwind_file *ret, const void *bytes, size_t len)
{
	struct parts parts = {.at = bytes, .left = len};

	unwind_file_unpack(&parts, ret);
	return parts.err;
}

/* What a parser hands over is as it was; what no parser makes is refused. */
static void rows_cross_as_bytes(void **state)
{
	struct unwind_file file = {0}, other;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct duet_unwind_row *row;
	BUF(bytes);

	assert_int_equal(unwind_file_read(&file, fd), 0);
	unwind_file_pack(&bytes, &file);
	assert_int_equal(unpacked(&other, bytes.data, bytes.len), 0);
	assert_int_equal(other.code_end, file.code_end);
	assert_int_equal(other.rows.rows.len, file.rows.rows.len);
	assert_memory_equal(other.rows.rows.items, file.rows.rows.items, file.rows.rows.len * sizeof(*row));
	assert_int_equal(other.rows.pages.len, file.rows.pages.len);
	assert_memory_equal(other.rows.pages.items, file.rows.pages.items,
			    file.rows.pages.len * sizeof(*file.rows.pages.items));
	unwind_file_release(&other);
	row = (struct duet_unwind_row *)(bytes.data + bytes.len) - 1; /* the rows are last */
	row->rule = DUET_CFA_SP;
	assert_int_equal(unpacked(&other, bytes.data, bytes.len), -EBADMSG);
	unwind_file_release(&other);
	row->rule = DUET_CFA_NONE;
	row->pc = 0;
	assert_int_equal(unpacked(&other, bytes.data, bytes.len), -EBADMSG);
	unwind_file_release(&other);
	row->pc = UINT32_MAX;
	assert_int_equal(unpacked(&other, bytes.data, bytes.len), -EBADMSG);
	unwind_file_release(&other);
	assert_int_equal(unpacked(&other, bytes.data, bytes.len - 1), -EBADMSG);
	unwind_file_release(&other);
	unwind_file_release(&file);
	close(fd);
}

#ifdef __x86_64__
/* As a compiler makes them that writes no tables: one keeps frame pointers, one does not. */
extern const char framed[], framed_body[], framed_end[], frameless[];
__asm__(".text\n"
	".type framed, @function\n"
	"framed: test %rdi, %rdi\n"
	"push %rbp\nmov %rsp, %rbp\n"
	"framed_body: call frameless\n"
	"pop %rbp\nret\n"
	"framed_end:\n"
	".size framed, . - framed\n"
	".skip 16, 0xcc\n"
	".type frameless, @function\n"
	"frameless: push %rbp\nmov $1, %ebp\npop %rbp\nret\n"
	".size frameless, . - frameless\n");

static void code_shows_that_it_makes_frames(void **state)
{
	struct unwind_file file = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t slide;
	struct maps maps = {0};
	const struct mapping *mapping;

	assert_int_equal(unwind_file_read(&file, fd), 0);
	close(fd);
	assert_int_equal(maps_read(&maps, CHARGE_OWN(getpid())), 0);
	mapping = maps_find(&maps, (uintptr_t)framed);
	assert_true(unwind_file_vaddr(&file, mapping->offset, mapping->end - mapping->start, &slide));
	slide = mapping->start - slide;
	assert_false(unwind_rows_cover(&file.rows, (uintptr_t)framed - slide)); /* what it has pushed is not known */
	assert_true(unwind_rows_cover(&file.rows, (uintptr_t)framed_body - slide));
	assert_true(unwind_rows_cover(&file.rows, (uintptr_t)framed_end - 1 - slide));
	assert_false(unwind_rows_cover(&file.rows, (uintptr_t)framed_end - slide));
	assert_false(unwind_rows_cover(&file.rows, (uintptr_t)frameless + 2 - slide));
	maps_release(&maps);
	unwind_file_release(&file);
}
#endif

/* Expects rows for a function with a frame of 16 bytes, or none. Linkage tables have other rows in any case. */
static void expect_frame(const struct unwind_file *file, bool expected)
{
	bool found = false;

	for (size_t i = 0; i < file->rows.rows.len; i++)
		found |= file->rows.rows.items[i].rule == DUET_CFA_SP && file->rows.rows.items[i].cfa == 2;
	assert_int_equal(found, expected);
}

static void expect_frames_of_debug(struct unwind_file *file, const char *path)
{
	struct unwind_rows more;
	int debug = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(unwind_file_read_debug(&more, debug, file->code_start, file->code_end), 0);
	close(debug);
	assert_int_equal(unwind_rows_merge(&file->rows, &more), 0);
	unwind_rows_release(&more);
	expect_frame(file, true);
}

/* A library, built by `command` with the C compiler into the folder that it is in. */
static void expect_rows_of_built(const char *command, const char *debug_path)
{
	char folder[] = "/tmp/duet-unwind-XXXXXX", line[1024];
	struct unwind_file file = {0};
	int fd;

	if (system("cc --version >/dev/null 2>&1 && objcopy --version >/dev/null 2>&1"))
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(line, sizeof(line),
		 "cd %s && echo 'int g(int); int f(int x) { return g(x) + 1; }' >a.c && "
		 "cc -g -O1 -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -fPIC -nostdlib "
		 "-shared -Wl,--build-id -o a.so a.c && %s", folder, command);
	assert_int_equal(system(line), 0);
	snprintf(line, sizeof(line), "%s/a.so", folder);
	fd = open(line, O_RDONLY | O_CLOEXEC);
	assert_int_equal(unwind_file_read(&file, fd), 0);
	expect_frame(&file, !debug_path);
	if (debug_path) {
		snprintf(line, sizeof(line), "%s/%s", folder, debug_path);
		expect_frames_of_debug(&file, line);
	}
	unwind_file_release(&file);
	close(fd);
	snprintf(line, sizeof(line), "rm -r %s", folder);
	assert_int_equal(system(line), 0);
}

static void files_with_debug_frame_alone(void **state)
{
	expect_rows_of_built("true", NULL);
	expect_rows_of_built("objcopy --compress-debug-sections a.so", NULL);
	expect_rows_of_built("objcopy --only-keep-debug a.so a.debug && strip a.so", "a.debug");
	expect_rows_of_built("objcopy --only-keep-debug --compress-debug-sections a.so a.debug && strip a.so",
			     "a.debug");
}

static void other_files_have_no_debug_frame(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), no_elf = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct unwind_file file = {0};
	struct unwind_rows more;

	assert_int_equal(unwind_file_read(&file, fd), 0);
	assert_int_equal(unwind_file_read_debug(&more, no_elf, file.code_start, file.code_end), -ENOEXEC);
	assert_int_equal(unwind_file_read_debug(&more, fd, file.code_start, file.code_end), -ENODATA);
	assert_true(file.rows.rows.len > 100);
	unwind_file_release(&file);
	close(no_elf);
	close(fd);
}

static void other_files_have_none(void **state)
{
	struct unwind_file file = {0};
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char text[] = "not an ELF file, but long enough to hold the header of one, if that is what one looks for";

	assert_int_equal(unwind_file_read(&file, fd), -ENOEXEC);
	assert_int_equal(unwind_file_read_memory(&file, text, sizeof(text)), -ENOEXEC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_program_has_rows),
		cmocka_unit_test(rows_cross_as_bytes),
#ifdef __x86_64__
		cmocka_unit_test(code_shows_that_it_makes_frames),
#endif
		cmocka_unit_test(files_with_debug_frame_alone),
		cmocka_unit_test(other_files_have_none),
		cmocka_unit_test(other_files_have_no_debug_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
