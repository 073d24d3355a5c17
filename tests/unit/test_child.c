/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

#define CODE 7

/* Orphans become children of this process. */
static int become_init(void **state)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void on_signal(int signo)
{
}

static void signals_do_not_end_the_wait(void **state)
{
	const struct sigaction take = {.sa_handler = on_signal}; /* without SA_RESTART */
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	int status = 0;
	pid_t child = fork();

	if (!child) {
		usleep(50000);
		_exit(CODE);
	}
	sigaction(SIGALRM, &take, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(child_await(child, &status), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_int_equal(WEXITSTATUS(status), CODE);
	assert_int_equal(child_await(child, &status), -ECHILD);
}

/* Starts a child of a child, whose parent ends before or after child_end_with(). Returns how it ended. */
static int end_orphan(bool is_late)
{
	int gate[2], status = 0;
	pid_t parent, child;
	char byte;

	assert_int_equal(pipe(gate), 0);
	parent = fork();
	if (!parent) {
		parent = getpid();
		if (fork())
			_exit(is_late ? 0 : read(gate[0], &byte, 1) != 1);
		while (is_late && getppid() == parent)
			usleep(1000);
		child_end_with(parent, SIGTERM);
		if (!is_late)
			(void)!write(gate[1], "", 1);
		usleep(10000000);
		_exit(CODE);
	}
	assert_int_equal(child_await(parent, &status), 0);
	assert_int_equal(status, 0);
	child = waitpid(-1, &status, 0);
	assert_true(child > 0);
	close(gate[0]);
	close(gate[1]);
	return status;
}

static void a_child_ends_with_its_parent(void **state)
{
	int status = end_orphan(false);

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* As the recording of a recorder that is killed while it starts it. */
static void a_parent_that_has_ended_is_noticed(void **state)
{
	int status = end_orphan(true);

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* A child that is stopped is killed at the end of the wait. One that ends is not waited for longer. */
static void a_wait_has_an_end(void **state)
{
	uint64_t begun_ns = clock_monotonic_ns();
	pid_t stopped = fork(), ends;
	int status;

	if (!stopped) {
		raise(SIGSTOP);
		_exit(CODE);
	}
	ends = fork();
	if (!ends)
		_exit(CODE);
	assert_int_equal(child_await_until(stopped, &status, begun_ns + 50 * NS_PER_MS), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(child_await_until(ends, &status, UINT64_MAX), 0);
	assert_int_equal(WEXITSTATUS(status), CODE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_do_not_end_the_wait),
		cmocka_unit_test(a_wait_has_an_end),
		cmocka_unit_test(a_child_ends_with_its_parent),
		cmocka_unit_test(a_parent_that_has_ended_is_noticed),
	};

	return cmocka_run_group_tests(tests, become_init, NULL);
}
