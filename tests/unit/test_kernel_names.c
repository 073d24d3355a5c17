/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/kernel/kernel_names.h"
#include "sym/kallsyms.h"

#define EVERY 97 /* one line of so many is looked at */

static void split_into(const char *text, struct kernel_name *ret, char *room)
{
	strcpy(room, text);
	kernel_names_split(room, ret);
}

static void test_texts(void **state)
{
	struct kernel_name name;
	char room[128];

	split_into("do_syscall_64+0x1c/0x150", &name, room);
	assert_string_equal(name.name, "do_syscall_64");
	assert_string_equal(name.module, "kernel");
	assert_int_equal(name.offset, 0x1c);
	split_into("ext4_read.isra.0+0x0/0x20 [ext4]", &name, room);
	assert_string_equal(name.name, "ext4_read.isra.0");
	assert_string_equal(name.module, "ext4");
	assert_int_equal(name.offset, 0);
	split_into("__do_sys_pause+0x1/0x20", &name, room);
	assert_string_equal(name.name, "__x64_sys_pause");
	split_into("__do_sys_newfstat+0x1/0x20", &name, room);
	assert_string_equal(name.name, "__do_sys_newfstat");
	split_into("0xffffffff81000000", &name, room);
	assert_null(name.name);
	assert_string_equal(name.module, "kernel");
	split_into("", &name, room);
	assert_null(name.name);
	split_into("+0x1/0x2", &name, room);
	assert_null(name.name);
	split_into("f+ [", &name, room);
	assert_string_equal(name.name, "f");
	assert_string_equal(name.module, "");
}

/* Does the kernel tell the name that is in kallsyms for the second byte of this line's function? */
static bool is_told(struct kernel_names *names, const struct kallsyms *kallsyms, const char *line, bool *ret_counts)
{
	uint64_t address = strtoull(line, NULL, 16), start = 0;
	const char *module = "", *name = kallsyms_find(kallsyms, address + 1, &module, &start);
	struct kernel_name found;

	*ret_counts = name && start == address;
	assert_int_equal(kernel_names_find(names, address + 1, &found), 0);
	return *ret_counts && found.name && !strcmp(found.name, name) && !strcmp(found.module, module) &&
	       found.offset == 1;
}

/* Of several names of one function, each may choose another. */
static void test_as_in_kallsyms(void **state)
{
	struct kernel_names names = {0};
	size_t count = 0, told = 0;
	struct kallsyms kallsyms;
	char line[1024];
	FILE *file = fopen("/proc/kallsyms", "re");
	bool counts;

	kallsyms = (struct kallsyms){0};
	assert_non_null(file);
	if (kallsyms_refresh(&kallsyms, "/proc/kallsyms", 1) != 1 || !kernel_names_open(&names)) {
		print_message("skipped: the kernel names no address for this user\n");
		skip();
	}
	for (size_t i = 0; fgets(line, sizeof(line), file); i++) {
		if (i % EVERY || !(strstr(line, " t ") || strstr(line, " T ")))
			continue;
		told += is_told(&names, &kallsyms, line, &counts);
		count += counts;
	}
	fclose(file);
	kernel_names_close(&names);
	symbol_table_release(&kallsyms.table);
	assert_true(count > 100 && told * 100 >= count * 98);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_as_in_kallsyms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
