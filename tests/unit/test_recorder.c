/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asprof/recorder.h"
#include "base/clock.h"
#include "proc/process.h"

#define IDLE_NS (NS_PER_SEC / 5)

/* Orphans become children of this process, as of the first process of a container. */
static int become_init(void **state)
{
	(void)state;
	recorder_idle_ns = IDLE_NS;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static pid_t only_child(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	if (file && fscanf(file, "%d", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return pid;
}

static void start(pid_t pid)
{
	struct process_table table;
	const struct process *process;
	struct buf why;

	process_table_init(&table);
	buf_init(&why);
	process = process_get(&table, pid, 0);
	assert_non_null(process);
	assert_int_equal(recorder_start(pid, process->start_ticks, &why), 0);
	assert_string_equal(why.data, "");
	buf_release(&why);
	process_table_release(&table);
}

/* Its parent does not collect children: it would be a zombie. */
static void stays_with_its_parent(void **state)
{
	pid_t recorder;
	int status;

	(void)state;
	start(getpid());
	recorder = only_child();
	if (!recorder)
		skip(); /* this kernel lists no children */
	usleep(10 * IDLE_NS / 1000);
	assert_int_equal(waitpid(recorder, &status, WNOHANG), 0);
	assert_int_equal(kill(recorder, SIGTERM), 0);
	assert_int_equal(waitpid(recorder, &status, 0), recorder);
}

static void ends_when_it_is_idle(void **state)
{
	pid_t process, ended;
	int status;

	(void)state;
	process = fork();
	if (!process) {
		pause();
		_exit(0);
	}
	start(process);
	ended = waitpid(-1, &status, 0);
	assert_true(ended > 0 && ended != process);
	assert_int_equal(kill(process, SIGKILL), 0);
	assert_int_equal(waitpid(process, &status, 0), process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays_with_its_parent),
		cmocka_unit_test(ends_when_it_is_idle),
	};

	return cmocka_run_group_tests(tests, become_init, NULL);
}
