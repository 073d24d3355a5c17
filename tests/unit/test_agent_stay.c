/* SPDX-License-Identifier: MIT */
/* Which callers may enter a stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "../../jvm-agent/jvm/stay.c" /* the loader has one too */

static struct stay stay;

static bool enters(void)
{
	bool entered = stay_enter() == &stay;

	stay_leave();
	return entered;
}

static bool child_enters(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(enters());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status != 0;
}

/* A child of fork() does not have the pages that a handler would write to, so its handler must not enter. */
static void test_child_of_fork_stays_out(void **state)
{
	assert_false(enters());
	for (int i = 0; i < 2; i++) {
		stay_open(&stay);
		assert_true(enters());
		assert_false(child_enters());
		assert_true(enters());
		assert_true(stay_close());
		assert_false(enters());
	}
}

static void test_seal_is_for_good(void **state)
{
	stay_open(&stay);
	stay_seal();
	stay_open(&stay);
	assert_false(enters());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_of_fork_stays_out),
		cmocka_unit_test(test_seal_is_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
