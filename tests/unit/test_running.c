/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "subject/program.h"

static void names_of_programs(void **state)
{
	assert_true(running_is_called("shop.jar", "shop.jar"));
	assert_true(running_is_called("shop-1.2.jar", "shop-1.2.jar"));
	assert_false(running_is_called("shop-1.2.jar", "jar"));
	assert_false(running_is_called("shop-1.2.jar", "2.jar"));
	assert_true(running_is_called("com.acme.Main", "com.acme.Main"));
	assert_true(running_is_called("com.acme.Main", "Main"));
	assert_false(running_is_called("com.acme.Main", "acme.Main"));
	assert_false(running_is_called("com.acme.Main", ""));
	assert_true(running_is_called("acme.shop/com.acme.Main", "acme.shop/com.acme.Main"));
	assert_true(running_is_called("acme.shop/com.acme.Main", "com.acme.Main"));
	assert_true(running_is_called("acme.shop/com.acme.Main", "Main"));
	assert_true(running_is_called("shop/Main", "Main"));
	assert_false(running_is_called("", "Main"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
