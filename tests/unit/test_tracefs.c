/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/kernel/perf_sources.h"

static const char format[] =
	"name: net_dev_xmit\nID: 1234\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned int len;\toffset:16;\tsize:4;\tsigned:0;\n"
	"\tfield:long rc;\toffset:24;\tsize:8;\tsigned:1;\n"
	"\tfield:char comm[16];\toffset:32;\tsize:16;\tsigned:0;\n"
	"\tfield:char pair[2];\toffset:48;\tsize:2;\tsigned:0;\n"
	"\tfield:__data_loc char[] name;\toffset:50;\tsize:4;\tsigned:0;\n"
	"\tfield:int cut;\toffset:54\n"
	"\tfield:int odd;\toffset:58;\tsize:3;\tsigned:0;\n"
	"\n"
	"print fmt: \"dev=%s len=%u\", __get_str(name), REC->len\n";

static int find(const char *field, struct tracefs_field *ret)
{
	*ret = (struct tracefs_field){0};
	return tracefs_parse_field(format, field, ret);
}

static void numbers_are_found(void **state)
{
	struct tracefs_field field;

	assert_int_equal(find("len", &field), 0);
	assert_int_equal(field.offset, 16);
	assert_int_equal(field.bytes, 4);
	assert_false(field.is_signed);
	assert_int_equal(find("rc", &field), 0);
	assert_int_equal(field.bytes, 8);
	assert_true(field.is_signed);
}

static void others_are_refused(void **state)
{
	struct tracefs_field field;

	assert_int_equal(find("comm", &field), -EINVAL);
	assert_int_equal(find("pair", &field), -EINVAL);
	assert_int_equal(find("name", &field), -EINVAL);
	assert_int_equal(find("cut", &field), -EINVAL);
	assert_int_equal(find("odd", &field), -EINVAL);
	assert_int_equal(find("le", &field), -ENOENT);
	assert_int_equal(find("length", &field), -ENOENT);
	assert_int_equal(find("", &field), -ENOENT);
	assert_int_equal(tracefs_parse_field("", "len", &field), -ENOENT);
	assert_int_equal(tracefs_parse_field("field:", "len", &field), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_found),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
