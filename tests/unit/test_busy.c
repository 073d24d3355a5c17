/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/process.h"

struct seen {
	pid_t busy, idle;
	int busy_count, idle_count, all;
};

static void see(void *context, pid_t pid)
{
	struct seen *seen = context;

	seen->busy_count += pid == seen->busy;
	seen->idle_count += pid == seen->idle;
	seen->all++;
}

/* Returns when the child has begun. */
static pid_t start_child(int is_busy)
{
	int began[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(began), 0);
	pid = fork();
	if (!pid) {
		volatile unsigned long turns = 0;

		if (write(began[1], "", 1) != 1)
			_exit(1);
		while (is_busy)
			turns++;
		for (;;)
			pause();
	}
	assert_int_equal(read(began[0], &byte, 1), 1);
	close(began[0]);
	close(began[1]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_who_runs(void **state)
{
	struct seen seen = {.busy = start_child(1), .idle = start_child(0)};
	struct map busy = {0};

	busy_each(&busy, see, &seen);
	assert_int_equal(seen.all, 0);
	usleep(50000); /* the idle one reaches pause() */
	busy_note(&busy);
	end_child(start_child(0)); /* ends between the looks, or is not noted */
	usleep(50000);
	busy_each(&busy, see, &seen);
	end_child(seen.busy);
	end_child(seen.idle);
	map_release(&busy);
	assert_int_equal(seen.busy_count, 1);
	assert_int_equal(seen.idle_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_runs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
