/* SPDX-License-Identifier: MIT */
/* What a parser says of a JVM's arguments: here of this program, started again as "java". */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/process.h"
#include "subject/words.h"

extern char **environ;

static struct process process;

static int start(void **state)
{
	char *const words[] = {"/jdk/bin/java",
			       "-Xmx64m",
			       "-XX:-UsePerfData",
			       "-cp",
			       "a b",
			       "-Dk=v",
			       "-Dspark.app.name=n",
			       "com.acme.Main",
			       "x",
			       NULL};

	helper_start();
	assert_int_equal(posix_spawn(&process.pid, "/proc/self/exe", NULL, NULL, words, environ), 0);
	process.living = process.ns_pid = process.pid;
	process.uid = getuid();
	return 0;
}

static int end(void **state)
{
	kill(process.pid, SIGKILL);
	waitpid(process.pid, NULL, 0);
	helper_end();
	return 0;
}

static void what_is_said_of_a_jvm(void **state)
{
	struct about about;

	assert_int_equal(about_read(&about, CHARGE_OWN(process.pid), &process, false), 0);
	assert_string_equal(about.name.data, "java: com.acme.Main");
	assert_string_equal(about.executed_as.data, "/jdk/bin/java");
	assert_string_equal(about.flags.data, "MaxHeapSize=67108864\nUsePerfData=false\n");
	assert_string_equal(about.spark_name.data, "n");
	assert_string_equal(about.spark_properties.data, "");
	assert_string_equal(about.version.data, "");
	assert_false(about.is_spark);
	about_release(&about);
	assert_int_equal(about_read(&about, CHARGE_OWN(process.pid), &process, true), 0);
	assert_string_equal(about.flags.data, ""); /* it may still create its counters */
	about_release(&about);
}

/* Answers with its pid, and with what is refused to it. */
static int greedy_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct words words;
	int found[4] = {getpid(), words_read(&words, task)};

	found[2] = (int)words.arguments.len;
	found[3] = socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
	buf_add(&answer->text, found, sizeof(found));
	words_release(&words);
	return 0;
}

static void a_parser_reads_them(void **state)
{
	struct helper_answer answer;
	int found[4];

	assert_int_equal(words_parse(CHARGE_OWN(process.pid), &process, greedy_work, 0, &answer), 0);
	assert_int_equal(answer.text.len, sizeof(found));
	memcpy(found, answer.text.data, sizeof(found));
	assert_int_not_equal(found[0], getpid());
	assert_int_equal(found[1], 0);
	assert_int_equal(found[2], 88);
	assert_int_equal(found[3], EPERM);
	helper_answer_release(&answer);
}

static int ending_work(const struct helper_task *task, struct helper_answer *answer)
{
	_exit(1);
}

static void one_that_ends_says_nothing(void **state)
{
	struct helper_answer answer;
	struct about about;

	assert_int_equal(words_parse(CHARGE_OWN(process.pid), &process, ending_work, 0, &answer), -EPROTO);
	helper_answer_release(&answer);
	kill(process.pid, SIGKILL);
	waitpid(process.pid, NULL, 0);
	assert_int_equal(about_read(&about, CHARGE_OWN(process.pid), &process, false), -ESRCH);
	assert_string_equal(about.name.data, "");
	about_release(&about);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_said_of_a_jvm, start, end),
		cmocka_unit_test_setup_teardown(a_parser_reads_them, start, end),
		cmocka_unit_test_setup_teardown(one_that_ends_says_nothing, start, end),
	};

	if (argc > 1)
		return pause();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
