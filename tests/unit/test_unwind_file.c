/* SPDX-License-Identifier: MIT */
/* The rows of ELF files: their sources, their debug files, and that they can be made in several steps. */
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

#include "fixtures/unwound.h"
#include "proc/maps.h"

static void this_program_has_rows(void **state)
{
	struct unwind_file file = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(unwound_file(&file, fd), 0);
	assert_true(file.rows.rows.len > 100);
	assert_true(file.base != 0);
	for (size_t i = 1; i < file.rows.rows.len; i++)
		assert_true(file.rows.rows.items[i].pc > file.rows.rows.items[i - 1].pc);
	unwind_file_release(&file);
	close(fd);
}

/* Even without time, each step makes progress, and all steps together make the same rows as one. */
static void rows_are_made_in_steps(void **state)
{
	struct unwind_file file = {0}, at_once = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err, steps = 0;
	struct unwind_reading *reading;

	assert_int_equal(unwound_file(&at_once, fd), 0);
	assert_int_equal(unwind_file_begin(&reading, fd), 0);
	while ((err = unwind_file_step(reading, 0)) == -EAGAIN)
		steps++;
	assert_int_equal(err, 0);
	unwind_file_end(reading, &file);
	assert_in_range(steps, at_once.rows.rows.len / 1000, at_once.rows.rows.len);
	assert_int_equal(file.rows.rows.len, at_once.rows.rows.len);
	assert_memory_equal(file.rows.rows.items, at_once.rows.rows.items,
			    at_once.rows.rows.len * sizeof(*at_once.rows.rows.items));
	assert_int_equal(file.rows.pages.len, at_once.rows.pages.len);
	unwind_file_release(&file);
	unwind_file_release(&at_once);
	close(fd);
}

static void steps_may_end_early(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unwind_reading *reading;

	for (int steps = 0; steps < 100; steps += 7) {
		assert_int_equal(unwind_file_begin(&reading, fd), 0);
		for (int i = 0; i < steps; i++)
			(void)unwind_file_step(reading, 0);
		unwind_file_end(reading, NULL);
	}
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

	assert_int_equal(unwound_file(&file, fd), 0);
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

static void expect_frames_of_debug(int fd, const char *path)
{
	struct unwind_reading *reading;
	struct unwind_file file = {0};
	int debug = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(unwind_file_begin(&reading, fd), 0);
	assert_int_equal(unwind_file_step(reading, UINT64_MAX), 0);
	assert_int_equal(unwind_file_add_debug(reading, debug), 0);
	close(debug);
	assert_int_equal(unwind_file_step(reading, UINT64_MAX), 0);
	unwind_file_end(reading, &file);
	expect_frame(&file, true);
	unwind_file_release(&file);
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
	assert_int_equal(unwound_file(&file, fd), 0);
	expect_frame(&file, !debug_path);
	unwind_file_release(&file);
	if (debug_path) {
		snprintf(line, sizeof(line), "%s/%s", folder, debug_path);
		expect_frames_of_debug(fd, line);
	}
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
	struct unwind_reading *reading;
	struct unwind_file file = {0};

	assert_int_equal(unwind_file_begin(&reading, fd), 0);
	assert_int_equal(unwind_file_step(reading, UINT64_MAX), 0);
	assert_int_equal(unwind_file_add_debug(reading, no_elf), -ENOEXEC);
	assert_int_equal(unwind_file_add_debug(reading, fd), -ENODATA);
	assert_int_equal(unwind_file_step(reading, UINT64_MAX), 0);
	unwind_file_end(reading, &file);
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

	assert_int_equal(unwound_file(&file, fd), -ENOEXEC);
	assert_int_equal(unwind_file_read_memory(&file, text, sizeof(text)), -ENOEXEC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_program_has_rows),
		cmocka_unit_test(rows_are_made_in_steps),
		cmocka_unit_test(steps_may_end_early),
#ifdef __x86_64__
		cmocka_unit_test(code_shows_that_it_makes_frames),
#endif
		cmocka_unit_test(files_with_debug_frame_alone),
		cmocka_unit_test(other_files_have_none),
		cmocka_unit_test(other_files_have_no_debug_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
