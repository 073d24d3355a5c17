/* SPDX-License-Identifier: MIT */
/* What the child that works on recordings may ask for, what becomes of its outputs, and its limits. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/io.h"
#include "base/log.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"
#include "cmd/work.h"

#define MB (1u << 20)
#define REFUSED 7

#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

static char folder[] = "/tmp/duet-work-XXXXXX", in_path[64], out_path[64];
static struct buf said; /* what work_run() has printed */

static int setup(void **state)
{
	buf_init(&said);
	if (!mkdtemp(folder))
		return -1;
	snprintf(in_path, sizeof(in_path), "%s/in.collapsed", folder);
	snprintf(out_path, sizeof(out_path), "%s/out.txt", folder);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	buf_release(&said);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fputs(text, file) < 0, 0);
	fclose(file);
}

static int run_for(const char *input, int (*work)(void *context), void *context)
{
	int log = memfd_create("test_work", MFD_CLOEXEC), before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), code;
	struct inputs inputs = {0};
	struct work job = {
		.inputs = &inputs, .output = out_path, .group = IO_NO_GROUP, .run = work, .context = context};

	assert_int_equal(inputs_expand(&inputs, (char *[]){(char *)input}, 1, false), 0);
	dup2(log, STDERR_FILENO);
	if (!context)
		job.context = &job;
	code = work_run(&job);
	dup2(before, STDERR_FILENO);
	buf_clear(&said);
	assert_int_equal(io_read_again(log, 65536, &said), 0);
	close(log);
	close(before);
	inputs_release(&inputs);
	return code;
}

static int run(int (*work)(void *context))
{
	put(in_path, "a;b 1\n");
	return run_for(in_path, work, NULL);
}

static bool is_alone(void) /* there is no output, and no part of one */
{
	char command[128];

	snprintf(command, sizeof(command), "[ \"$(ls -A %s)\" = in.collapsed ]", folder);
	return !system(command);
}

/* ---- what is asked for ---- */

static int ask(enum work_kind kind, uint32_t number, const char *text)
{
	struct work_question question = work_question(kind, number);
	int answer;

	strcpy(question.text, text);
	answer = work_ask(&question);
	if (answer > 0)
		close(answer);
	return answer > 0 ? 0 : answer;
}

static int ask_for_more(void *context)
{
	bool is_refused = ask(WORK_INPUT, 1, "") == -EPERM && ask(WORK_INPUT, UINT32_MAX, "/etc/passwd") == -EPERM &&
			  ask(WORK_SOURCE, 0, "com/acme/Main.java") == -EPERM && ask(WORK_CODE, 0, "") < 0 &&
			  ask(WORK_DISASSEMBLY, 0, "") < 0 && ask(WORK_OUTPUT_END, 0, "") == -EPERM &&
			  open(in_path, O_RDONLY) < 0 && socket(AF_INET, SOCK_STREAM, 0) < 0 && fork() < 0 &&
			  kill(getppid(), 0) < 0;

	return is_refused && !ask(WORK_INPUT, 0, "") && !ask(WORK_TEMPORARY, 0, "") ? REFUSED : 1;
}

static void nothing_else_is_opened(void **state)
{
	if (IS_SANITIZED)
		skip();
	assert_int_equal(run(ask_for_more), REFUSED);
	assert_true(is_alone());
}

static int write_event(void *context)
{
	struct output output;
	int err = outputs_open(&output, context, "../../x/y", true);

	return err ? err : outputs_end(&output, NULL, fputs("text", output.io.file) < 0);
}

static void an_event_names_no_other_folder(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/out.______x_y.txt", folder);
	assert_int_equal(run(write_event), 0);
	assert_int_equal(unlink(path), 0);
	assert_true(is_alone());
}

/* ---- outputs ---- */

static int write_whole(void *context)
{
	struct output output;
	int err = outputs_open(&output, context, NULL, true);

	return err ? err : outputs_end(&output, NULL, fputs("text", output.io.file) < 0);
}

static int write_half(void *context)
{
	struct output output;
	int err = outputs_open(&output, context, NULL, false);

	if (err || fputs("text", output.io.file) < 0 || fflush(output.io.file))
		return 1;
	io_output_discard(&output.io);
	buf_release(&output.name);
	return 0;
}

static int write_and_die(void *context)
{
	(void)write_whole(context);
	raise(SIGKILL);
	return 0;
}

static int write_and_fail(void *context)
{
	struct output output;
	int err = outputs_open(&output, context, NULL, false);

	return err ? err : outputs_end(&output, NULL, -EIO);
}

static void outputs_are_whole_or_not_there(void **state)
{
	struct stat st;

	assert_int_equal(run(write_whole), 0);
	assert_int_equal(stat(out_path, &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unlink(out_path), 0);
	assert_int_equal(run(write_half), 0);
	assert_true(is_alone());
	assert_int_equal(run(write_and_fail), 1);
	assert_true(is_alone());
	assert_int_equal(run(write_and_die), 1);
	assert_true(is_alone());
	assert_non_null(strstr(said.data, in_path));
	assert_non_null(strstr(said.data, "ended by signal 9"));
}

/* ---- messages ---- */

static int say(void *context)
{
	log_warn("escape \x1b[31m of %s", "a name\n");
	return 3;
}

static void messages_are_cleaned(void **state)
{
	assert_int_equal(run(say), 3);
	assert_non_null(strstr(said.data, "duet: warning: escape "));
	assert_null(strchr(said.data, '\x1b'));
	assert_ptr_equal(strchr(said.data, '\n'), said.data + said.len - 1);
}

/* ---- limits ---- */

static int read_input(const struct work *work)
{
	struct profile profile;
	int err = inputs_read_all(&profile, work->inputs);

	if (!err)
		profile_release(&profile);
	return err;
}

static int take_much(void *context)
{
	int err = read_input(context);
	char *volatile much = err ? NULL : malloc(90u * MB);

	if (!err && !much)
		err = -ENOMEM;
	free(much);
	return err;
}

static int take_forever(void *context)
{
	for (volatile int i = read_input(context); !i;)
		;
	return 1;
}

static void limits_are_told(void **state)
{
	if (IS_SANITIZED)
		skip();
	assert_int_equal(run(take_much), 1);
	assert_non_null(strstr(said.data, in_path));
	assert_non_null(strstr(said.data, "more memory is needed than 64 MB, which are 64 MB and 50 times the size"));
	assert_ptr_equal(strchr(said.data, '\n'), said.data + said.len - 1);
	assert_int_equal(run(take_forever), 1);
	assert_non_null(strstr(said.data, in_path));
	assert_non_null(strstr(said.data, "more CPU time is needed than 2 s"));
	assert_ptr_equal(strchr(said.data, '\n'), said.data + said.len - 1);
}

/* A file of a MB, and the same through a pipe, whose bytes are counted as they come. */
static void limits_grow_with_the_bytes(void **state)
{
	char *text = malloc(MB + 1), fifo[80];
	int status;
	pid_t child;

	for (size_t i = 0; i < MB; i += 8)
		memcpy(text + i, "aaa;b 1\n", 9);
	put(in_path, text);
	assert_int_equal(run_for(in_path, take_much, NULL), 0);
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	child = fork();
	if (!child) {
		put(fifo, text);
		free(text);
		_exit(0);
	}
	assert_int_equal(run_for(fifo, take_much, NULL), 0);
	assert_int_equal(child_await(child, &status), 0);
	unlink(fifo);
	free(text);
}

/* A hole is no bytes. */
static void holes_give_nothing(void **state)
{
	if (IS_SANITIZED)
		skip();
	put(in_path, "a;b 1\n");
	assert_int_equal(truncate(in_path, 1l << 30), 0);
	assert_int_equal(run_for(in_path, take_much, NULL), 1);
	assert_int_equal(truncate(in_path, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_else_is_opened),
		cmocka_unit_test(an_event_names_no_other_folder),
		cmocka_unit_test(outputs_are_whole_or_not_there),
		cmocka_unit_test(messages_are_cleaned),
		cmocka_unit_test(limits_are_told),
		cmocka_unit_test(limits_grow_with_the_bytes),
		cmocka_unit_test(holes_give_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
