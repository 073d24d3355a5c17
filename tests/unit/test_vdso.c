/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "sym/target_file.h"

static struct mapping own(void)
{
	struct mapping found = {0};
	struct maps maps = {0};

	assert_int_equal(maps_read(&maps, CHARGE_OWN(getpid())), 0);
	for (size_t i = 0; i < maps.list.len; i++)
		if (!strcmp(maps.list.items[i].path, "[vdso]"))
			found = maps.list.items[i];
	maps_release(&maps);
	return found;
}

static void test_ours_is_theirs(void **state)
{
	struct mapping mapping = own();
	size_t bytes;
	const void *image;

	if (!mapping.start)
		skip(); /* vdso=0 */
	mapping.start += 1 << 20;
	mapping.end += 1 << 20;
	image = vdso_of(&mapping, &bytes);
	assert_non_null(image);
	assert_int_equal(bytes, mapping.end - mapping.start);
	assert_memory_equal(image, "\177ELF", 4);
}

static void test_not_with_32_bits(void **state)
{
	struct mapping mapping = own();
	uint64_t bytes_of = mapping.end - mapping.start;
	size_t bytes;

	mapping.start = 0xf7fc0000;
	mapping.end = mapping.start + bytes_of;
	assert_null(vdso_of(&mapping, &bytes));
}

static void test_not_of_another_size(void **state)
{
	struct mapping mapping = own();
	size_t bytes;

	mapping.end += 4096;
	assert_null(vdso_of(&mapping, &bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours_is_theirs),
		cmocka_unit_test(test_not_with_32_bits),
		cmocka_unit_test(test_not_of_another_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
