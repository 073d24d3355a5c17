/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/kallsyms.h"

static int refresh_with(struct kallsyms *kallsyms, const char *text, uint64_t now_ns)
{
	char path[] = "/tmp/duet-kallsyms-XXXXXX";
	int fd = mkstemp(path), err;
	FILE *file = fdopen(fd, "w");

	fputs(text, file);
	fclose(file);
	err = kallsyms_refresh(kallsyms, path, now_ns);
	unlink(path);
	return err;
}

static int read_text(struct kallsyms *kallsyms, const char *text)
{
	*kallsyms = (struct kallsyms){0};
	return refresh_with(kallsyms, text, 1);
}

static void test_names_and_modules(void **state)
{
	const char *module = NULL;
	struct kallsyms kallsyms;

	assert_int_equal(read_text(&kallsyms, "ffffffff81000100 T do_read\nffffffff81000000 t __low\n"
					      "ffffffff81000000 T low\nffffffff81000180 D some_data\n"
					      "ffffffffc0000000 t ext4_read\t[ext4]\n"
					      "ffffffffc0100000 t bpf_prog_1234_duet\t[bpf]\n"), 1);
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff81000000, &module, NULL), "low");
	assert_string_equal(module, "kernel");
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff810000ff, &module, NULL), "low");
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff810001ff, &module, NULL), "do_read");
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffffc0000010, &module, NULL), "ext4_read");
	assert_string_equal(module, "ext4");
	assert_null(kallsyms_find(&kallsyms, 0xffffffff80ffffff, &module, NULL));
	/* far after the last function of the core */
	assert_null(kallsyms_find(&kallsyms, 0xffffffffa0000000, &module, NULL));
	symbol_table_release(&kallsyms.table);
	symbol_table_release(NULL);
}

static void test_usual_names(void **state)
{
	const char *module;
	struct kallsyms kallsyms;

	assert_int_equal(read_text(&kallsyms, "ffffffff81000080 T entry_SYSCALL_64\n"
					      "ffffffff810000ac T entry_SYSCALL_64_safe_stack\n"
					      "ffffffff81001000 t __do_sys_getpid\n"
					      "ffffffff81001000 T __ia32_sys_getpid\n"
					      "ffffffff81001000 T __x64_sys_getpid\n"
					      "ffffffff81002000 t __softirqentry_text_start\n"
					      "ffffffff81002000 W handle_softirqs\nffffffff81002000 t aaa\n"
					      "ffffffff81002000 T __handle_softirqs\n"
					      "ffffffff81003000 T __pi_memset\nffffffff81003000 T memset\n"), 1);
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff81000090, &module, NULL), "entry_SYSCALL_64");
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff810000b0, &module, NULL), "entry_SYSCALL_64_safe_stack");
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff81001004, &module, NULL), "__x64_sys_getpid");
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff81002000, &module, NULL), "handle_softirqs");
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffff81003000, &module, NULL), "memset");
	symbol_table_release(&kallsyms.table);
}

static bool hidden(const char *text, struct buf *why)
{
	char path[] = "/tmp/duet-kallsyms-XXXXXX";
	int fd = mkstemp(path);
	bool ret;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ret = kallsyms_hidden(path, why);
	unlink(path);
	return ret;
}

static void test_says_why_hidden(void **state)
{
	struct buf why;

	buf_init(&why);
	assert_false(hidden("0000000000000000 A per_cpu\n0000000000001000 A later\n", &why));
	assert_false(hidden("ffffffff81000100 T do_read\n", &why));
	assert_int_equal(why.len, 0);
	assert_true(hidden("0000000000000000 A per_cpu\n0000000000000000 T do_read\n", &why));
	assert_true(strstr(why.data, "CAP_SYSLOG") || strstr(why.data, "kptr_restrict"));
	assert_true(hidden("", &why));
	assert_true(kallsyms_hidden("/nonexistent", &why));
	buf_release(&why);
}

static void test_hidden_and_hostile(void **state)
{
	struct kallsyms kallsyms;
	const char *module;

	assert_int_equal(read_text(&kallsyms, "0000000000000000 T do_read\n0000000000000000 t x\t[ext4]\n"), -EPERM);
	assert_null(kallsyms_find(&kallsyms, 0xffffffff81000000, &module, NULL));
	symbol_table_release(&kallsyms.table);
	assert_int_equal(read_text(&kallsyms, "\n \nzz T a\n1000\n1000 \n1000 T\n"
					      "1000 T \n1000 T \t[m]\n2000 T ok\t[m\n"), 1);
	assert_int_equal(kallsyms.table.rows.len, 1);
	assert_string_equal(kallsyms_find(&kallsyms, 0x2000, &module, NULL), "ok");
	assert_string_equal(module, "m");
	symbol_table_release(&kallsyms.table);
	kallsyms = (struct kallsyms){0};
	assert_int_equal(kallsyms_refresh(&kallsyms, "/nonexistent", 1), -ENOENT);
	symbol_table_release(&kallsyms.table);
}

static void test_modules_loaded_later(void **state)
{
	const char *module, *before = "ffffffff81000000 T low\n";
	const char *after = "ffffffff81000000 T low\nffffffffc0000000 t ext4_read\t[ext4]\n";
	struct kallsyms kallsyms;

	assert_int_equal(read_text(&kallsyms, before), 1);
	assert_int_equal(refresh_with(&kallsyms, after, KALLSYMS_MIN_AGE_NS), 0);
	assert_null(kallsyms_find(&kallsyms, 0xffffffffc0000000, &module, NULL));
	assert_int_equal(refresh_with(&kallsyms, after, 1 + KALLSYMS_MIN_AGE_NS), 1);
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffffc0000000, &module, NULL), "ext4_read");
	assert_int_equal(refresh_with(&kallsyms, "", 1 + 2 * KALLSYMS_MIN_AGE_NS), -EPERM);
	assert_string_equal(kallsyms_find(&kallsyms, 0xffffffffc0000000, &module, NULL), "ext4_read");
	symbol_table_release(&kallsyms.table);
}

static void test_this_kernel(void **state)
{
	struct kallsyms kallsyms;
	int err;

	kallsyms = (struct kallsyms){0};
	err = kallsyms_refresh(&kallsyms, "/proc/kallsyms", 1);
	if (err == 1)
		assert_true(kallsyms.table.rows.len > 10000);
	else
		assert_int_equal(err, -EPERM);
	symbol_table_release(&kallsyms.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_modules),
		cmocka_unit_test(test_usual_names),
		cmocka_unit_test(test_says_why_hidden),
		cmocka_unit_test(test_hidden_and_hostile),
		cmocka_unit_test(test_modules_loaded_later),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
