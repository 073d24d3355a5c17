/* SPDX-License-Identifier: MIT */
#include "asprof/asprof.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/signals.h"
#include "base/text.h"
#include "proc/process.h"
#include "recorder/recorder.h"
#include "recorder/recorder_socket.h"
#include "recorder/recording.h"
#include "recorder/report_file.h"
#include "subject/program.h"

#define COPY_BYTES 16384

/* The text may have parts that a process has answered. */
static int say_error(struct buf *why)
{
	text_clean_lines(why);
	fprintf(stderr, "[ERROR] %s\n", why->data);
	return 1;
}

/* ---- finding the JVM ---- */

/* `name`: NULL for the JVM that was started last, as async-profiler's command line takes it. */
static pid_t find_one(const char *name, struct buf *why)
{
	const struct process *newest = NULL;
	struct running running;
	pid_t found = -ESRCH;

	(void)running_find(&running, name);
	for (size_t i = 0; i < running.jvms.len; i++) {
		const struct process *process = running.jvms.items[i].process;

		if (!newest || process->start_ticks >= newest->start_ticks)
			newest = process;
	}
	if (running.jvms.len > 1 && name)
		buf_add_str(why, "Multiple Java processes found");
	else if (!newest)
		buf_add_str(why, "No Java process");
	else
		found = newest->pid;
	running_release(&running);
	return found;
}

/*
 * `target` is a pid; "jps" for the newest JVM; or the name of a program as jps prints it, a class without its package
 * or a jar. Returns the pid, or -errno with the message in `why`.
 */
static pid_t applications_find(const char *target, struct buf *why)
{
	char *end;
	long pid;

	if (!isdigit((unsigned char)*target))
		return find_one(strcmp(target, "jps") ? target : NULL, why);
	pid = strtol(target, &end, 10);
	if (!*end && pid > 0 && pid <= INT_MAX)
		return (pid_t)pid;
	return buf_explain(why, -EINVAL, "%s is not a process id", target);
}

/* ---- commands for the JVM itself, by HotSpot's attach protocol: load, jcmd, threaddump, dumpheap, inspectheap ---- */

#define ARGUMENTS 3
#define FIRST_MAX 256 /* bytes of the lines with the codes */
#define LINE_BYTES (64u << 10) /* of a longer line, parts are printed */
#define REPLY_MAX (256u << 20)
#define ASK_NS (10 * NS_PER_SEC) /* until the JVM has taken the command; its reply may take longer */
#define SILENT_NS (30 * NS_PER_SEC) /* without a byte of the reply */
#define SILENT_HEAP_NS (600 * NS_PER_SEC) /* while the JVM goes through its heap */
#define REPLY_TIMES 10 /* the whole reply may take so many times longer */

struct reply {
	struct buf line; /* what has come of it */
	char first[FIRST_MAX]; /* the beginning of the reply */
	bool has_status;
	uint64_t bytes;
};

/* What follows the third word belongs to it: jcmd takes a line. */
static void join_words(char **words, int count, bool is_line, struct buf arguments[ARGUMENTS])
{
	for (int i = 0; i < count; i++) {
		struct buf *argument = &arguments[is_line ? 0 : i < ARGUMENTS ? i : ARGUMENTS - 1];

		if (argument->len)
			buf_add_char(argument, ' ');
		buf_add_str(argument, words[i]);
	}
}

/* Returns 0, or -errno after reporting it. */
static int describe(pid_t pid, struct process_table *processes, struct attach_target *ret)
{
	const struct process *process = process_get(processes, pid, 0);

	if (!process) {
		fprintf(stderr, "Process %d not found\n", pid);
		return -ESRCH;
	}
	*ret = (struct attach_target){
		.pid = pid,
		.ns_pid = process->ns_pid,
		.start_ticks = process->start_ticks,
		.uid = process->uid,
		.gid = process->gid,
		.kind = ATTACH_COMMAND,
		.timeout_ns = ASK_NS,
	};
	return 0;
}

/* Returns the socket that brings the reply, or -errno with why. */
static int ask_jvm(const struct attach_target *target, struct buf *why)
{
	const struct attach_control none = {0};
	struct attach_result result;
	struct attach attach;
	int err = attach_start(&attach, target, &none);

	if (err < 0)
		return buf_explain(why, err, "No process to ask JVM %d: %s", target->pid, strerror(-err));
	attach_finish(&attach, &result);
	return result.error ? buf_explain(why, result.error, "%s", result.why) : result.socket;
}

/* Of `load`, JDK 8 answers "0\\nCODE", later ones "0\\nreturn code: CODE", or an error instead. */
static int exit_code(const char *first, bool is_load)
{
	static const char label[] = "return code: ";
	const char *second = strchr(first, '\n');
	int status = atoi(first);

	if (status || !is_load || !second)
		return status;
	second += 1 + (strncmp(second + 1, label, strlen(label)) ? 0 : strlen(label));
	return (*second >= '0' && *second <= '9') || *second == '-' ? atoi(second) : 1;
}

static void print_line(struct reply *reply)
{
	size_t kept = strlen(reply->first);
	BUF(clean);

	for (char *at = reply->line.data; (at = memchr(at, '\0', reply->line.len - (size_t)(at - reply->line.data)));)
		*at = '?';
	strncat(reply->first, reply->line.data, sizeof(reply->first) - 1 - kept);
	text_add_lines(&clean, reply->line.data);
	if (reply->has_status)
		fwrite(clean.data, 1, clean.len, stdout);
	else
		printf("JVM response code = %d\n", atoi(clean.data));
	reply->has_status = true;
	buf_clear(&reply->line);
}

static void take(struct reply *reply, const char *bytes, size_t len)
{
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t part = end ? (size_t)(end - bytes) + 1 : len;

		buf_add(&reply->line, bytes, part);
		if (end || reply->line.len >= LINE_BYTES)
			print_line(reply);
		bytes += part;
		len -= part;
	}
}

static uint64_t silent_ns(const char *name, const char *line)
{
	return text_begins_with(name, "dumpheap inspectheap") || text_begins_with(line, "GC. JFR.") ? SILENT_HEAP_NS
												    : SILENT_NS;
}

/* Prints the reply without its first line. Returns 0 when it has ended, or -errno. */
static int receive(int socket, uint64_t silent_ns, struct reply *reply)
{
	uint64_t last_ns = clock_monotonic_ns() + REPLY_TIMES * silent_ns, until_ns;
	char bytes[COPY_BYTES];
	ssize_t more;
	int err;

	do {
		until_ns = clock_monotonic_ns() + silent_ns;
		err = signals_wait(socket, POLLIN, until_ns < last_ns ? until_ns : last_ns);
		if (err)
			return err;
		more = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (more < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		take(reply, bytes, more > 0 ? (size_t)more : 0);
		reply->bytes += more > 0 ? (size_t)more : 0;
	} while (more && reply->bytes < REPLY_MAX);
	return more ? -EFBIG : 0;
}

static int print_reply(int socket, bool is_load, uint64_t silent_ns, struct buf *why)
{
	struct reply reply = {.line = BUF_NONE};
	int err = receive(socket, silent_ns, &reply);

	if (reply.line.len)
		print_line(&reply);
	buf_release(&reply.line);
	if (err == -EFBIG)
		buf_printf(why, "The reply is longer than %u MB: its end is left out", REPLY_MAX >> 20);
	else if (err == -ETIMEDOUT)
		buf_printf(why, "The JVM has sent nothing for %llu s: its command may go on there",
			   (unsigned long long)(silent_ns / NS_PER_SEC));
	else if (err)
		buf_printf(why, "The reply cannot be read: %s", strerror(-err));
	else if (!reply.has_status)
		buf_add_str(why, "The JVM closed the connection without an answer");
	return why->len ? 1 : exit_code(reply.first, is_load);
}

/*
 * Sends the command and its words, and prints the reply. Returns the exit code: what the JVM answered, of `load` what
 * the library returned, or 1 after reporting why the JVM could not be asked.
 */
static int jvm_command_run(pid_t pid, const char *name, char **words, int count)
{
	struct buf arguments[ARGUMENTS] = {BUF_NONE, BUF_NONE, BUF_NONE};
	struct process_table processes;
	struct attach_target target;
	IO_FD(socket) = -1;
	BUF(why);
	int code = 1;

	process_table_init(&processes);
	join_words(words, count, !strcmp(name, "jcmd"), arguments);
	if (!describe(pid, &processes, &target)) {
		const char *const sent[] = {name, arguments[0].data, arguments[1].data, arguments[2].data};

		target.command = sent;
		socket = ask_jvm(&target, &why);
	}
	if (socket >= 0) {
		puts("Connected to remote JVM");
		code = print_reply(socket, !strcmp(name, "load"), silent_ns(name, arguments[0].data), &why);
	}
	fflush(stdout);
	if (why.len)
		code = say_error(&why);
	for (int i = 0; i < ARGUMENTS; i++)
		buf_release(&arguments[i]);
	process_table_release(&processes);
	return code;
}

/* ---- the recording ---- */

#define TEXT ",traces=100,flat=200" /* lists of a report without a format */

/* One command: its options, its process, and the recorder that it uses. */
struct run {
	const struct asprof_options *options;
	pid_t pid;
	uint64_t start_ticks;
	char *file; /* absolute, placeholders not expanded; NULL: stdout */
};

/* ---- requests ---- */

/* Returns a connection, or -errno with a sentence in `why`. With `begin`, starts a recorder if there is none. */
static int connect_recorder(const struct run *run, bool begin, struct buf *why)
{
	int err, fd = recorder_connect(run->pid, run->start_ticks, why);

	if (!begin || fd != -ENOENT)
		return fd;
	err = recorder_start(run->pid, run->start_ticks, why);
	return err ? err : recorder_connect(run->pid, run->start_ticks, why);
}

/* Sends a request about the recording that another user's recorder makes. Root makes the report of it here. */
static int ask_other(int connection, const char *words, bool begin, struct recorder_answer *ret, struct buf *why)
{
	struct asprof_arguments arguments;
	BUF(ignored);
	int err;

	if (begin)
		return buf_explain(why, -EBUSY, "Profiler already started");
	err = asprof_arguments_parse(&arguments, words, &ignored, why);
	if (!err) {
		err = peer_recorder_request(connection, &arguments, words, ret, why);
		if (!err && ret->report >= 0 && !geteuid()) {
			ret->report = recording_report_of(ret->report, &arguments, why);
			err = ret->report < 0 ? ret->report : 0;
		}
		asprof_arguments_release(&arguments);
	}
	return err;
}

/* Returns 0 with the recorder's answer, or -errno: -ENOENT, without a sentence in `why`, when there is no recorder. */
static int request(const struct run *run, const char *arguments, bool begin, struct recorder_answer *ret,
		   struct buf *why)
{
	IO_FD(fd) = peer_recorder_find(run->pid, run->start_ticks);
	bool is_other = fd >= 0;
	int err;

	*ret = (struct recorder_answer)RECORDER_ANSWER_NONE;
	if (!is_other)
		fd = connect_recorder(run, begin, why);
	if (fd < 0)
		return fd;
	err = is_other ? ask_other(fd, arguments, begin, ret, why)
		       : recorder_request(fd, arguments, ret, why);
	if (!err)
		text_clean_lines(&ret->text);
	return err;
}

/* Sends a request to the recorder, and returns the exit code. The text of the answer has been printed by then. */
static int ask(const struct run *run, const char *arguments, bool begin, struct recorder_answer *ret)
{
	BUF(why);
	int err = request(run, arguments, begin, ret, &why);

	if (err == -ENOENT && !why.len)
		buf_add_str(&why, "Profiler has not started");
	if (err < 0 && !why.len)
		buf_printf(&why, "the recorder of process %d cannot be asked: %s", run->pid, strerror(-err));
	if (!err && ret->code)
		buf_add_str(&why, ret->text.data);
	else if (!err)
		fputs(ret->text.data, stderr);
	if (why.len)
		(void)say_error(&why);
	return err < 0 ? DUET_ANSWER_REFUSED : (int)ret->code;
}

/* ---- reports ---- */

/* Returns true if root's recording, which runs or has ended, is for root alone. */
static bool is_private(const struct run *run)
{
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	bool is_private;
	BUF(why);

	if (geteuid())
		return false;
	(void)request(run, "status", false, &answer, &why);
	is_private = answer.is_private;
	recorder_answer_release(&answer);
	return is_private;
}

static int open_report(const struct run *run, bool is_private, struct report_file *ret, struct buf *why)
{
	BUF(path);

	report_file_name(run->file ? run->file : "-", run->pid, 0, time(NULL), &path);
	return report_file_open(ret, run->pid, run->start_ticks, path.data,
				REPORT_FILE_WAITS | (is_private ? REPORT_FILE_PRIVATE : 0), why);
}

/* Requests a report and writes it. Opens the file first: if that fails, nothing has been stopped. */
static int fetch_report(const struct run *run, const char *arguments)
{
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	struct report_file file;
	BUF(why);
	int code = open_report(run, run->file && is_private(run), &file, &why) ? DUET_ANSWER_REFUSED : 0;

	if (!code) {
		code = ask(run, arguments, false, &answer);
		/* without a report: the file of the start command has it */
		if (!code && answer.report >= 0 && report_file_write(&file, answer.report, &why))
			code = DUET_ANSWER_REFUSED;
		recorder_answer_release(&answer);
		report_file_discard(&file);
	}
	if (why.len)
		(void)say_error(&why);
	return code;
}

/* ---- actions ---- */

/* Makes "action" and the words of the options. Without a format or a file, a report is text. */
static void compose(const struct run *run, const char *action, bool begins, struct buf *ret)
{
	const struct asprof_options *options = run->options;

	buf_add_str(ret, action);
	if (run->file)
		buf_printf(ret, ",file=%s", run->file);
	buf_add_str(ret, options->format.data);
	if (begins)
		buf_add_str(ret, options->params.data);
}

static bool names_format(const char *words)
{
	char *copy = strdup(words), *rest = copy, *word;
	bool found = false;

	while (rest && (word = strsep(&rest, ",")) != NULL) {
		word[strcspn(word, "=")] = '\0';
		for (char *letter = word; *letter; letter++)
			*letter = (char)tolower((unsigned char)*letter);
		found |= text_is_word(word, "collapsed flamegraph tree jfr otlp traces flat text");
	}
	free(copy);
	return found;
}

static int start(const struct run *run, const char *action)
{
	struct recorder_answer answer;
	BUF(arguments);
	int code;

	compose(run, action, true, &arguments);
	code = ask(run, arguments.data, true, &answer);
	recorder_answer_release(&answer);
	return code;
}

static int report(const struct run *run, const char *action)
{
	BUF(arguments);

	compose(run, action, false, &arguments);
	if (!run->file && !names_format(run->options->format.data))
		buf_add_str(&arguments, TEXT);
	return fetch_report(run, arguments.data);
}

/* Waits for the duration, the end of the process or a signal, and returns the message about it. */
static const char *await(const struct run *run)
{
	uint64_t until_ns = clock_monotonic_ns() + run->options->duration_s * NS_PER_SEC;
	struct pollfd process = {.fd = (int)syscall(SYS_pidfd_open, run->pid, 0), .events = POLLIN};
	const char *end = "Done";
	uint64_t now_ns;

	while (!signals_are_asked() && (now_ns = clock_monotonic_ns()) < until_ns) {
		if (process.fd < 0 || poll(&process, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1) > 0) {
			end = "Process exited";
			break;
		}
	}
	io_close(&process.fd);
	return signals_are_asked() ? "Interrupted" : end;
}

/* Checked before the recording begins, so that its result is not lost. */
static bool can_write(const struct run *run)
{
	struct report_file file;
	BUF(why);

	if (!open_report(run, false, &file, &why))
		report_file_discard(&file);
	if (why.len)
		(void)say_error(&why);
	return !why.len;
}

/* The recorder may still begin, as it was asked to, but nobody would end it: it is asked to stop then. */
static void leave(const struct run *run)
{
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	BUF(why);

	(void)request(run, "stop", false, &answer, &why);
	recorder_answer_release(&answer);
}

/* A signal ends the recording. Later, while the report is waited for, it ends this process as others. */
static int collect(const struct run *run)
{
	struct sigaction stop = {.sa_handler = signals_remember}, before[2];
	int code;

	if (!can_write(run))
		return DUET_ANSWER_REFUSED;
	sigaction(SIGINT, &stop, &before[0]);
	sigaction(SIGTERM, &stop, &before[1]);
	code = start(run, "start,quiet");
	if (code && signals_are_asked())
		leave(run);
	if (code)
		return code;
	fprintf(stderr, "Profiling for %llu seconds\n", (unsigned long long)run->options->duration_s);
	fprintf(stderr, "%s\n", await(run));
	sigaction(SIGINT, &before[0], NULL);
	sigaction(SIGTERM, &before[1], NULL);
	signals_forget();
	return report(run, "stop");
}

/* "status", "metrics" or "meminfo" */
static int print_action(const struct run *run, const char *action)
{
	struct recorder_answer answer;
	BUF(why);
	int code = 0, err = request(run, action, false, &answer, &why);

	if (err == -ENOENT && !why.len)
		puts("Profiler is not active");
	else if (err)
		code = say_error(&why);
	else
		fputs(answer.text.data, stdout);
	recorder_answer_release(&answer);
	return code;
}

/* The library's list: programs read it by its headings. */
static int print_list(void)
{
	BUF(text);

	state_print(NULL, NULL, ASPROF_LIST, &text);
	fputs(text.data, stdout);
	return 0;
}

static int act(const struct run *run)
{
	const char *action = run->options->action;

	if (!strcmp(action, "collect"))
		return collect(run);
	if (text_is_word(action, "start resume check"))
		return start(run, action);
	if (text_is_word(action, "stop dump"))
		return report(run, action);
	if (!strcmp(action, "list"))
		return print_list();
	if (text_is_word(action, "status metrics meminfo"))
		return print_action(run, action);
	return jvm_command_run(run->pid, action, run->options->words, run->options->word_count);
}

/* ---- the command ---- */

/* The path must be absolute, and not one of the recorder's own: it is another process, in another directory. */
static char *absolute(const char *file)
{
	char folder[PATH_MAX];
	char *path = NULL;
	BUF(own);

	if (file && *file == '/')
		report_file_path(getpid(), file, &own);
	if (!file || *file == '/')
		return file ? buf_detach(&own) : NULL;
	if (!getcwd(folder, sizeof(folder)) || asprintf(&path, "%s/%s", folder, file) < 0)
		return NULL;
	return path;
}

static int run_on(const struct asprof_options *options, pid_t pid)
{
	struct run run = {.options = options, .pid = pid, .file = absolute(options->file)};
	int code;

	if (process_read_start_ticks(pid, &run.start_ticks) < 0) {
		fprintf(stderr, "Process %d not found\n", pid);
		code = 1;
	} else {
		code = act(&run);
	}
	free(run.file);
	return code;
}

static int run(const struct asprof_options *options)
{
	BUF(why);
	pid_t pid;
	int code;

	if (options->help || !options->target) {
		fputs(asprof_usage, stdout);
		return !options->help;
	}
	pid = applications_find(options->target, &why);
	code = pid > 0 ? run_on(options, pid) : 1;
	text_clean_lines(&why);
	if (why.len)
		fprintf(stderr, "%s\n", why.data);
	return code;
}

int asprof_main(int argc, char **argv)
{
	struct asprof_options options;
	BUF(why);
	int code = 0;

	if (argc == 3 && !strcmp(argv[1], DUET_RECORDER_WORD))
		return recorder_run_for(atoi(argv[2]));
	if (asprof_options_parse(&options, argc, argv, &why) < 0) {
		fprintf(stderr, "%s\n", why.data);
		code = 1;
	} else if (options.version) {
		printf("Async-profiler %s built on duet %s\n", ASPROF_VERSION_SPOKEN, DUET_VERSION);
	} else {
		code = run(&options);
	}
	asprof_options_release(&options);
	return code;
}
