/* SPDX-License-Identifier: MIT */
#include "cmd/work.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/box.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/packet.h"
#include "base/signals.h"
#include "cmd/inputs.h"

/* The limits. Where each stack is repeated, a MB becomes 256 MB of output (readers/limits.c). */
#define FREE_MB 64u /* of memory, and times the stored bytes of the inputs */
#define MEMORY_TIMES 50u
#define FREE_SECONDS 2u /* of CPU time, and for each whole MB */
#define SECONDS_PER_MB 1u
#define SECONDS_PER_MB_REPEATED 3u
#define RELAY_BYTES 65536

static int channel = -1; /* the child's socket */
static bool is_reported; /* in the child: the limit of memory was */

/* Of the parent, for the work that runs. */
struct server {
	const struct work *work;
	int channel;
	pid_t child;
	pid_t relay; /* of the last input that is no file; 0: none */
	uint32_t input; /* the last one that was opened */
	uint64_t codes; /* a bit for each file of --code that was opened */
	uint64_t *stored; /* bytes of all inputs so far; the relay adds to them too */
};

static unsigned int seconds_per_mb(const struct work *work)
{
	return work->repeats ? SECONDS_PER_MB_REPEATED : SECONDS_PER_MB;
}

static struct box_limits limits_of(const struct work *work, uint64_t stored)
{
	return (struct box_limits){
		.memory_bytes = ((uint64_t)FREE_MB << 20) + MEMORY_TIMES * stored,
		.cpu_ns = (FREE_SECONDS + (stored >> 20) * seconds_per_mb(work)) * NS_PER_SEC,
	};
}

/* ---- the child ---- */

bool work_is_boxed(void)
{
	return channel >= 0;
}

struct work_question work_question(enum work_kind kind, uint32_t number)
{
	return (struct work_question){.kind = kind, .number = number};
}

static int send_question(const struct work_question *question)
{
	return packet_send(channel, question, offsetof(struct work_question, text) + strlen(question->text) + 1, -1, 0);
}

int work_ask(const struct work_question *question)
{
	int fd, answer, err = work_is_boxed() ? send_question(question) : -EPERM;

	if (err)
		return err;
	if (packet_receive(channel, &answer, sizeof(answer), -1, &fd) != sizeof(answer))
		return -EIO;
	return fd >= 0 ? fd : answer;
}

static void send_message(enum log_level level, const char *text)
{
	struct work_question question = work_question(WORK_MESSAGE, level);

	strncat(question.text, text, sizeof(question.text) - 1);
	(void)send_question(&question);
}

static int ask_temporary(void)
{
	const struct work_question question = work_question(WORK_TEMPORARY, 0);

	return work_ask(&question);
}

bool work_report_memory(int err)
{
	const struct work_question question = work_question(WORK_NO_MEMORY, 0);

	if (err != -ENOMEM || !work_is_boxed())
		return false;
	if (!is_reported)
		(void)work_ask(&question);
	is_reported = true;
	return true;
}

/* Nothing that a terminal shows comes from the child itself. */
static int close_standard(void)
{
	IO_FD(null) = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool is_sanitized = false;

#ifdef __SANITIZE_ADDRESS__
	is_sanitized = true; /* and writes to stderr what it finds */
#endif
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || (isatty(STDOUT_FILENO) && dup2(null, STDOUT_FILENO) < 0) ||
	    (!is_sanitized && dup2(null, STDERR_FILENO) < 0))
		return -errno;
	return 0;
}

static int enter(const struct work *work, int socket)
{
	const struct box_limits limits = limits_of(work, 0);
	int err = close_standard();

	child_keep_only(STDERR_FILENO + 1, socket, work->file > STDERR_FILENO ? work->file : socket);
	if (!err)
		err = box_enter(BOX_TALK | BOX_OUTPUT, &limits);
	if (err)
		return err;
	channel = socket;
	log_set_writer(send_message);
	io_open_unlinked_by(ask_temporary);
	return 0;
}

/* Does not return. */
static void run(const struct work *work, int socket, pid_t parent)
{
	BUF(walls);
	int code;

	child_end_with(parent, SIGKILL);
	code = enter(work, socket);
	if (!code) {
		box_describe(box_lacks(), &walls);
		log_debug("recordings are read with %s", walls.data);
		code = work->run(work->context);
		(void)work_report_memory(code);
	}
	_exit(code < 0 ? 1 : code);
}

/* ---- limits ---- */

static const char *input_name(const struct server *server)
{
	const struct inputs *inputs = server->work->inputs;

	return server->input < inputs->len ? inputs->items[server->input].path : "the recording";
}

/* The input has so many bytes more. */
static void grow(const struct server *server, uint64_t bytes)
{
	const struct box_limits limits =
		limits_of(server->work, __atomic_add_fetch(server->stored, bytes, __ATOMIC_RELAXED));

	(void)box_limit(server->child, &limits);
}

/* Gives the child what a pipe or a device has, and counts it. Does not return. */
static void relay(const struct server *server, int from, int to)
{
	static char bytes[RELAY_BYTES];
	ssize_t len = 1;

	while (len > 0) {
		len = read(from, bytes, sizeof(bytes));
		if (len < 0 && errno == EINTR)
			len = 1;
		else if (len > 0)
			grow(server, (uint64_t)len);
		if (len > 0 && io_write_all(to, bytes, (size_t)len) < 0)
			break;
	}
	_exit(0);
}

static void end_relay(struct server *server)
{
	int status;

	if (server->relay <= 0)
		return;
	kill(server->relay, SIGKILL);
	(void)child_await(server->relay, &status);
	server->relay = 0;
}

/* Takes ownership of the descriptor. Returns the one that the child reads, or -errno. */
static int open_relay(struct server *server, int from)
{
	int ends[2], err = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
	pid_t parent = getpid();

	end_relay(server);
	if (!err)
		server->relay = fork();
	if (!err && !server->relay) {
		child_end_with(parent, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		close(ends[0]);
		close(server->channel);
		relay(server, from, ends[1]);
	}
	if (!err && server->relay < 0)
		err = -errno;
	close(from);
	if (err)
		return err;
	close(ends[1]);
	return ends[0];
}

/* A hole of a file is no bytes. Takes ownership of the descriptor, and returns one, or -errno. */
static int meter(struct server *server, int fd)
{
	uint64_t stored;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return open_relay(server, fd);
	stored = (uint64_t)st.st_blocks * 512;
	grow(server, stored < (uint64_t)st.st_size ? stored : (uint64_t)st.st_size);
	return fd;
}

/* ---- the parent ---- */

static int answer_message(const struct work *work, const struct work_question *question)
{
	if (question->number <= LOG_DEBUG)
		log_print((enum log_level)question->number, "%s", question->text);
	return 0;
}

static int answer_temporary(const struct work *work, const struct work_question *question)
{
	return io_open_unlinked();
}

static work_answerer *const answerers[WORK_KINDS] = {
	[WORK_MESSAGE] = answer_message,
	[WORK_TEMPORARY] = answer_temporary,
	[WORK_INPUT] = inputs_answer,
	[WORK_OUTPUT] = outputs_answer,
	[WORK_OUTPUT_END] = outputs_answer_end,
	[WORK_SOURCE] = source_answer,
	[WORK_CODE] = disassembly_answer_code,
	[WORK_DISASSEMBLY] = disassembly_answer,
	[WORK_DISASSEMBLY_END] = disassembly_answer_end,
};

/* Names the file, the limit and the way out. */
static void report_limit(const struct server *server, bool is_time)
{
	const unsigned long long kb = *server->stored >> 10;
	const struct box_limits limits = limits_of(server->work, *server->stored);
	BUF(limit);

	if (is_time)
		buf_printf(&limit, "CPU time is needed than %llu s, which are %u s and %u s for each MB",
			   (unsigned long long)(limits.cpu_ns / NS_PER_SEC), FREE_SECONDS,
			   seconds_per_mb(server->work));
	else
		buf_printf(&limit, "memory is needed than %llu MB, which are %u MB and %u times the size",
			   (unsigned long long)(limits.memory_bytes >> 20), FREE_MB, MEMORY_TIMES);
	log_error("%s: more %s of the %llu kB that were read: it is damaged or made to harm, or holds much in few "
		  "bytes; unpack it if it is compressed, or convert less at once",
		  input_name(server), limit.data, kb);
}

/* Counts what the child is given, a file of --code once. Returns as meter(). */
static int meter_input(struct server *server, const struct work_question *question, int fd)
{
	uint64_t bit = 1ull << question->number % 64;

	if (question->kind == WORK_INPUT)
		server->input = question->number;
	else if (question->kind != WORK_CODE || server->codes & bit)
		return fd;
	else
		server->codes |= bit;
	return meter(server, fd);
}

/* Returns true if it was answered. */
static bool answer(struct server *server, const struct work_question *question)
{
	int fd = 0, err = 0;

	if (question->kind == WORK_NO_MEMORY)
		report_limit(server, false);
	else if (question->kind < WORK_KINDS)
		fd = answerers[question->kind](server->work, question);
	if (fd > 0)
		fd = meter_input(server, question, fd);
	if (question->kind != WORK_MESSAGE)
		err = packet_send(server->channel, &fd, sizeof(fd), fd > 0 ? fd : -1, 0);
	if (fd > 0)
		close(fd);
	return !err;
}

static void serve(struct server *server)
{
	static struct work_question question;
	ssize_t len;
	int fd;

	do {
		len = packet_receive(server->channel, &question, sizeof(question), -1, &fd);
		io_close(&fd);
		if (len <= (ssize_t)offsetof(struct work_question, text))
			return;
		question.text[len - (ssize_t)offsetof(struct work_question, text) - 1] = '\0';
	} while (answer(server, &question));
}

/* Returns the exit code, for a child that has ended. Ends as the child has where somebody has ended both. */
static int conclude(const struct server *server, int status)
{
	int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0, err = outputs_finish(!signo);
	sigset_t ending;

	if (!signo)
		return WEXITSTATUS(status) ? WEXITSTATUS(status) : err ? 1 : 0;
	signals_ending(&ending);
	if (signo == SIGXCPU)
		report_limit(server, true);
	else if (signo == SIGPIPE || sigismember(&ending, signo))
		raise(signo);
	else
		log_error("%s: reading it was ended by signal %d (%s), and nothing is written: please report this, "
			  "with the file",
			  input_name(server), signo, strsignal(signo));
	return 1;
}

static int run_child(struct server *server)
{
	pid_t parent = getpid();
	int ends[2], status = 0, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return log_fail(1, "no socket to work on the recording: %s", strerror(errno));
	server->channel = ends[0];
	server->child = fork();
	if (!server->child)
		run(server->work, ends[1], parent);
	close(ends[1]);
	if (server->child < 0) {
		close(ends[0]);
		return log_fail(1, "no process to work on the recording: %s", strerror(errno));
	}
	serve(server);
	close(ends[0]);
	err = child_await(server->child, &status);
	end_relay(server);
	return err ? log_fail(1, "the process that worked on the recording is lost: %s", strerror(-err))
		   : conclude(server, status);
}

int work_run(const struct work *work)
{
	struct server server = {.work = work};
	int code;

	server.stored = mmap(NULL, sizeof(*server.stored), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (server.stored == MAP_FAILED)
		return log_fail(1, "out of memory");
	code = run_child(&server);
	munmap(server.stored, sizeof(*server.stored));
	return code;
}
