/* SPDX-License-Identifier: MIT */
/* Methods and compilations of real JVMs, captured in tests/fixtures/outside, are read again with the same result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixtures/outside_image.h"

static bool says_the_same(const struct image_want *want)
{
	char text[IMAGE_TEXT] = "";

	if (want->is_code)
		(void)image_say_code(want->key, want->id, text);
	else
		(void)image_say_method(want->key, text);
	if (!strcmp(text, want->said))
		return true;
	print_error("read: %s\nfile: %s\n", text, want->said);
	return false;
}

static unsigned int differences(const char *path)
{
	unsigned int count = 0;

	if (!image_load(path) || !image_open_jvm()) {
		print_error("%s cannot be read\n", path);
		count++;
	}
	for (size_t i = 0; !count && i < image.wants.len; i++)
		count += !says_the_same(&image.wants.items[i]);
	image_close();
	return count;
}

static void read_as_when_captured(void **state)
{
	glob_t files = {0};
	unsigned int count = 0;

	assert_true(image_find(&files));
	for (size_t i = 0; i < files.gl_pathc; i++)
		count += differences(files.gl_pathv[i]);
	assert_true(files.gl_pathc >= 2);
	globfree(&files);
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(read_as_when_captured)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
