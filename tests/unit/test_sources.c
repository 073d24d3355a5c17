/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jvms/jvms.h"

static void test_is_old(void **state)
{
	assert_true(sources_is_old("/usr/lib/jvm/java-8-openjdk-amd64/jre/lib/amd64/server/libjvm.so"));
	assert_true(sources_is_old("/opt/jre/lib/aarch64/client/libjvm.so"));
	assert_true(sources_is_old("/lib/amd64/server/libjvm.so"));
	assert_false(sources_is_old("/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"));
	assert_false(sources_is_old("/lib/server/libjvm.so"));
	assert_false(sources_is_old("/opt/mylib/a/server/libjvm.so"));
	assert_false(sources_is_old("server/libjvm.so"));
	assert_false(sources_is_old("libjvm.so"));
	assert_false(sources_is_old(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
