/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/box.h"
#include "base/counters.h"
#include "base/clock.h"
#include "proc/helper.h"

#define NOT_A_PID 0x7ff00000

static int start(void **state)
{
	helper_start();
	return 0;
}

static int end(void **state)
{
	helper_end();
	return 0;
}

/* Answers with its pid, and the path `number` times. */
static int echo_work(const struct helper_task *task, struct helper_answer *answer)
{
	buf_printf(&answer->text, "%d ", getpid());
	for (uint64_t i = 0; i < task->number; i++)
		buf_add_str(&answer->text, task->path);
	return 0;
}

static int silent_work(const struct helper_task *task, struct helper_answer *answer)
{
	pause();
	return 0;
}

/* Computes for longer than a helper may be silent. */
static int computing_work(const struct helper_task *task, struct helper_answer *answer)
{
	uint64_t until_ns = clock_monotonic_ns() + 1300 * NS_PER_MS;

	while (clock_monotonic_ns() < until_ns)
		;
	return 0;
}

static int dying_work(const struct helper_task *task, struct helper_answer *answer)
{
	_exit(1);
	return 0;
}

static int open_work(const struct helper_task *task, struct helper_answer *answer)
{
	answer->fd = openat(task->fd, task->path, O_RDONLY | O_CLOEXEC);
	return answer->fd < 0 ? -errno : 0;
}

static int run_for(int (*work)(const struct helper_task *, struct helper_answer *), const struct charge *charge)
{
	const struct helper_task task = {.work = work, .charge = charge, .fd = -1, .path = "abc", .number = 1};
	struct helper_answer answer;
	int err = helper_run(&task, &answer);

	helper_answer_release(&answer);
	return err;
}

static int run(int (*work)(const struct helper_task *, struct helper_answer *), pid_t pid)
{
	return run_for(work, CHARGE_OWN(pid));
}

static pid_t who_does_it(size_t times, size_t *ret_len)
{
	const struct helper_task task = {
		.work = echo_work, .charge = CHARGE_OWN(getpid()), .fd = -1, .path = "abc", .number = times};
	struct helper_answer answer;
	pid_t pid;

	assert_int_equal(helper_run(&task, &answer), 0);
	pid = atoi(answer.text.data);
	*ret_len = answer.text.len - (size_t)snprintf(NULL, 0, "%d ", pid);
	assert_string_equal(answer.text.data + answer.text.len - 3, "abc");
	helper_answer_release(&answer);
	return pid;
}

static void test_another_process_does_it(void **state)
{
	size_t len;
	pid_t first = who_does_it(1, &len);

	assert_int_not_equal(first, getpid());
	assert_int_equal(len, 3);
	assert_int_equal(who_does_it(1000000, &len), first); /* in many messages */
	assert_int_equal(len, 3000000);
}

static void test_forks_and_others_do_it_themselves(void **state)
{
	size_t len;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(who_does_it(1, &len) != getpid());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	helper_end();
	assert_int_equal(who_does_it(1, &len), getpid());
}

static void test_descriptors(void **state)
{
	struct helper_task task = {.work = open_work, .charge = CHARGE_OWN(getpid()), .path = "null"};
	struct helper_answer answer;
	char byte;

	task.fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(helper_run(&task, &answer), 0);
	assert_true(answer.fd >= 0);
	assert_int_equal(read(answer.fd, &byte, 1), 0);
	helper_answer_release(&answer);
	task.path = "nowhere";
	assert_int_equal(helper_run(&task, &answer), -ENOENT);
	assert_int_equal(answer.fd, -1);
	helper_answer_release(&answer);
	close(task.fd);
}

/* If the host gives the helper no CPU, that is not the target's fault. */
static void count_pause(void *context)
{
	++*(int *)context;
}

static void test_rings_are_read_while_it_computes(void **state)
{
	const struct helper_task task = {.work = computing_work, .charge = CHARGE_OWN(getpid()), .fd = -1, .path = ""};
	struct helper_answer answer;
	int pauses = 0;

	charge_set_pause(count_pause, &pauses);
	assert_int_equal(run(computing_work, getpid()), 0);
	assert_in_range(pauses, 5, 1300 / 20 + 1);
	pauses = 0;
	assert_int_equal(parser_run(&task, &answer), 0);
	helper_answer_release(&answer);
	charge_set_pause(NULL, NULL);
	assert_in_range(pauses, 5, 10000);
}

static void test_one_that_is_ready_to_run_is_waited_for(void **state)
{
	assert_int_equal(run(computing_work, NOT_A_PID), 0);
}

static void test_a_helper_that_dies(void **state)
{
	assert_int_equal(run(dying_work, getpid()), -EPIPE);
	assert_int_equal(run(echo_work, getpid()), 0);
}

/* Another process of the payer is refused, too. */
static void test_a_silent_payer_is_refused(void **state)
{
	const struct charge hostile = {.payer.key = 1ull << 32, .pid = NOT_A_PID}, other = {.payer.key = 1ull << 32};
	uint64_t before = loader_counters[DUET_LOADER_SILENT_TARGETS];

	assert_int_equal(run_for(silent_work, &hostile), -ETIMEDOUT);
	assert_int_equal(run_for(echo_work, &hostile), -EBUSY);
	assert_int_equal(run_for(echo_work, &other), -EBUSY);
	assert_int_equal(run(echo_work, getpid()), 0);
	assert_int_equal(loader_counters[DUET_LOADER_SILENT_TARGETS] - before, 3);
}

/* However many targets hang, they cost some seconds at most. */
static void test_wait_budget_ends(void **state)
{
	uint64_t begun_ns = clock_monotonic_ns();

	for (int i = 0; i < 30; i++)
		assert_int_equal(run(silent_work, NOT_A_PID + i), -ETIMEDOUT);
	assert_true(clock_monotonic_ns() - begun_ns < 15 * NS_PER_SEC);
	assert_int_equal(run(echo_work, NOT_A_PID), -EBUSY);
}

static void test_nothing_of_the_callers_is_held(void **state)
{
	int ends[2];
	size_t len;
	char byte;

	helper_end();
	assert_int_equal(pipe(ends), 0);
	helper_start();
	assert_int_not_equal(who_does_it(1, &len), getpid());
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

/* ---- parsers ---- */

enum attempt { OPENS, CONNECTS, FORKS, TRACES, KILLS, EXECUTES, ATTEMPTS };

/* Answers with what is refused to it. */
static int greedy_work(const struct helper_task *task, struct helper_answer *answer)
{
	int errors[ATTEMPTS] = {0};
	pid_t child;

	errors[OPENS] = open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
	errors[CONNECTS] = socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
	child = fork();
	if (!child)
		_exit(0);
	errors[FORKS] = child < 0 ? errno : 0;
	errors[TRACES] = ptrace(PTRACE_ATTACH, (pid_t)task->number, NULL, NULL) < 0 ? errno : 0;
	errors[KILLS] = kill((pid_t)task->number, 0) < 0 ? errno : 0;
	errors[EXECUTES] = execl("/bin/true", "true", NULL) < 0 ? errno : 0;
	buf_add(&answer->text, errors, sizeof(errors));
	return 0;
}

static void test_a_parser_has_nothing(void **state)
{
	const struct helper_task task = {greedy_work, CHARGE_OWN(getpid()), -1, "", (uint64_t)getpid(), 0};
	struct helper_answer answer;
	int errors[ATTEMPTS];

	if (box_try())
		skip(); /* this kernel has no seccomp or no Landlock */
	assert_int_equal(parser_run(&task, &answer), 0);
	assert_int_equal(answer.text.len, sizeof(errors));
	memcpy(errors, answer.text.data, sizeof(errors));
	for (int i = 0; i < ATTEMPTS; i++)
		assert_int_equal(errors[i], EPERM);
	helper_answer_release(&answer);
}

static int parse(int (*work)(const struct helper_task *, struct helper_answer *))
{
	struct helper_answer answer;
	int err = parser_run(&(struct helper_task){work, CHARGE_OWN(getpid()), -1, "abc", 1000000, 0}, &answer);

	helper_answer_release(&answer);
	return err;
}

static int crashing_work(const struct helper_task *task, struct helper_answer *answer)
{
	signal(SIGSEGV, SIG_DFL); /* of a sanitizer */
	raise(SIGSEGV);
	return 0;
}

static int sleeping_work(const struct helper_task *task, struct helper_answer *answer)
{
	poll(NULL, 0, -1);
	return 0;
}

/* Takes memory until there is none, then as a careless parser does. */
static int greedy_for_memory_work(const struct helper_task *task, struct helper_answer *answer)
{
	size_t got = 0;

	while (got < 16ull << 30) {
		char *more = malloc(1 << 20);

		if (!more)
			raise(SIGKILL);
		*(volatile char *)more = 1;
		got += 1 << 20;
	}
	return 0;
}

/* Counted, and others are parsed. */
static void test_parsers_that_fail(void **state)
{
	uint64_t before = loader_counters[DUET_LOADER_PARSERS_LOST];

	assert_int_equal(parser_lost_for(), 0);
	assert_int_equal(parse(crashing_work), -EPROTO);
	assert_int_equal(parse(dying_work), -EPROTO);
	assert_int_equal(parse(sleeping_work), -EPROTO);
#ifndef __SANITIZE_ADDRESS__
	assert_int_equal(parse(greedy_for_memory_work), -EPROTO);
	before++;
#endif
	assert_int_equal(loader_counters[DUET_LOADER_PARSERS_LOST] - before, 3);
	assert_int_equal(parser_lost_for(), getpid());
	assert_int_equal(parser_lost_for(), 0);
	assert_int_equal(parse(echo_work), 0);
}

static int endless_work(const struct helper_task *task, struct helper_answer *answer)
{
	signal(SIGXCPU, SIG_IGN);
	for (volatile int i = 0;; i++)
		;
	return 0;
}

/* The caller goes on meanwhile. What it does not wait for any more ends. */
static void test_a_parser_that_never_ends(void **state)
{
	const struct helper_task task = {endless_work, CHARGE_OWN(getpid()), -1, "", 0, 0};
	struct helper_answer answer;
	struct parser parser;
	pid_t pid;

	assert_int_equal(parser_begin(&parser, &task), 0);
	pid = parser.worker.pid;
	assert_int_equal(parser_await(&parser, clock_monotonic_ns() + 20 * NS_PER_MS, &answer), -EAGAIN);
	helper_answer_release(&answer);
	assert_int_equal(kill(pid, 0), 0);
	parser_end(&parser);
	for (int i = 0; i < 1000 && !kill(pid, 0); i++)
		usleep(10000);
	assert_int_equal(kill(pid, 0), -1);
}

static pid_t parse_again(const struct helper_task *task)
{
	struct helper_answer answer;
	pid_t pid;

	assert_int_equal(parser_run(task, &answer), 0);
	pid = atoi(answer.text.data);
	assert_true(answer.text.len > 6000000 && answer.text.len < 6000016); /* in many messages */
	helper_answer_release(&answer);
	return pid;
}

/* One that was taken over by a file parses no other, unless of the same origin. */
static void test_parsers_are_of_one_origin(void **state)
{
	struct helper_task task = {echo_work, CHARGE_OWN(getpid()), -1, "abc", 2000000, 0};
	pid_t first = parse_again(&task);

	assert_int_not_equal(parse_again(&task), first);
	task.origin = 7;
	first = parse_again(&task);
	assert_int_equal(parse_again(&task), first);
	task.origin = 8;
	assert_int_not_equal(parse_again(&task), first);
	assert_int_equal(run(echo_work, getpid()), 0);
}

/* It opens files, and forks what reads a JVM. */
static void test_an_opener_does_no_more(void **state)
{
	struct helper_task task = {greedy_work, CHARGE_OWN(getpid()), -1, "", (uint64_t)getpid(), 0};
	struct helper_answer answer;
	int errors[ATTEMPTS];

	assert_int_equal(helper_run(&task, &answer), 0);
	assert_int_equal(answer.text.len, sizeof(errors));
	memcpy(errors, answer.text.data, sizeof(errors));
	assert_int_equal(errors[OPENS], 0);
	assert_int_equal(errors[CONNECTS], EPERM);
	assert_int_equal(errors[KILLS], EPERM);
	assert_int_equal(errors[EXECUTES], EPERM);
	assert_int_equal(errors[FORKS], 0);
#ifndef __SANITIZE_ADDRESS__
	assert_int_equal(errors[TRACES], EPERM);
#endif
	helper_answer_release(&answer);
}

#define helper_test(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		helper_test(test_another_process_does_it),
		helper_test(test_forks_and_others_do_it_themselves),
		helper_test(test_descriptors),
		helper_test(test_rings_are_read_while_it_computes),
		helper_test(test_one_that_is_ready_to_run_is_waited_for),
		helper_test(test_a_helper_that_dies),
		helper_test(test_a_silent_payer_is_refused),
		helper_test(test_wait_budget_ends),
		helper_test(test_nothing_of_the_callers_is_held),
		helper_test(test_a_parser_has_nothing),
		helper_test(test_an_opener_does_no_more),
		helper_test(test_parsers_that_fail),
		helper_test(test_a_parser_that_never_ends),
		helper_test(test_parsers_are_of_one_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
