/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "proc/process.h"
#include "recorder/recorder.h"
#include "recorder/recording.h"

#define IDLE_NS (NS_PER_SEC / 5)

static pid_t only_parent; /* in its children, fork() fails; 0: fork() works */

/* In place of libc's. */
pid_t fork(void)
{
	if (!only_parent || getpid() == only_parent)
		return _Fork();
	errno = EAGAIN;
	return -1;
}

/* Orphans become children of this process, as of the first process of a container. */
static int become_init(void **state)
{
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

static int start_with_why(pid_t pid, struct buf *why)
{
	uint64_t start_ticks = 0;

	buf_init(why);
	assert_int_equal(process_read_start_ticks(pid, &start_ticks), 0);
	return recorder_start(pid, start_ticks, why);
}

static void start(pid_t pid)
{
	struct buf why;

	assert_int_equal(start_with_why(pid, &why), 0);
	assert_string_equal(why.data, "");
	buf_release(&why);
}

/* Its parent does not collect children: it would be a zombie. */
static void stays_with_its_parent(void **state)
{
	pid_t recorder;
	int status;

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

/* The recorder is a child's child. */
static void says_why_there_is_no_process(void **state)
{
	struct buf why;

	only_parent = getpid();
	assert_int_equal(start_with_why(getpid(), &why), -ECHILD);
	only_parent = 0;
	assert_string_equal(why.data, "no process for the recorder: Resource temporarily unavailable");
	buf_release(&why);
}

static void on_signal(int signo)
{
}

/* A signal such as the SIGTERM that ends a recorder arrives while a child makes a report. */
static void a_report_survives_signals(void **state)
{
	const struct sigaction take = {.sa_handler = on_signal}; /* without SA_RESTART */
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct recording recording;
	struct recording_sums sums;

	recording_init(&recording);
	sigaction(SIGALRM, &take, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(recording_sum(&recording, &sums), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	recording_release(&recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_why_there_is_no_process),
		cmocka_unit_test(a_report_survives_signals),
		cmocka_unit_test(stays_with_its_parent),
		cmocka_unit_test(ends_when_it_is_idle),
	};

	return cmocka_run_group_tests(tests, become_init, NULL);
}
