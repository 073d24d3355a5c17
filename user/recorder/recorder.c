/* SPDX-License-Identifier: MIT */
#include "recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/recorder_socket.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/signals.h"
#include "proc/process.h"
#include "recorder/profiling.h"

#define CLIENTS 8 /* a new client replaces the oldest one */
#define STEP_MS 100
#define START_NS (10 * NS_PER_SEC) /* longest wait until a recorder has begun */
#define GONE_NS (10 * NS_PER_SEC) /* time after the end of the process in which its last report can be requested */

struct client {
	int fd; /* -1 = none */
	bool is_library; /* in the process itself */
	bool is_other; /* of another user */
};

struct recorder {
	struct profiling profiling;
	int process; /* pidfd */
	uint64_t stack; /* of the program that the process is, see STAT_STACK */
	int listener; /* -1: there is no place for its name, and only the library asks */
	struct client clients[CLIENTS]; /* newest first */
	bool was_asked; /* by a command, which may ask for its report when the process has ended */
	bool has_swept; /* done once, when nobody asks anything */
	uint64_t gone_ns; /* when the process had ended; 0: it runs */
};

uint64_t recorder_idle_ns = 600 * NS_PER_SEC;

static void forget_client(struct recorder *recorder, size_t i)
{
	close(recorder->clients[i].fd);
	memmove(recorder->clients + i, recorder->clients + i + 1, (CLIENTS - 1 - i) * sizeof(struct client));
	recorder->clients[CLIENTS - 1] = (struct client){.fd = -1};
}

/* The library stays; of the others the oldest goes. */
static void add_client(struct recorder *recorder, int fd, bool is_library, bool is_other)
{
	size_t last = CLIENTS - 1;

	if (recorder->clients[last].is_library && !is_library)
		last--;
	if (recorder->clients[last].fd >= 0)
		forget_client(recorder, last);
	memmove(recorder->clients + 1, recorder->clients, last * sizeof(struct client));
	recorder->clients[0] = (struct client){fd, is_library, is_other};
}

static void take_client(struct recorder *recorder)
{
	int fd = accept4(recorder->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	bool is_other;

	recorder->was_asked |= fd >= 0;
	if (fd >= 0 && recorder_permits(fd, recorder->profiling.pid, &is_other))
		add_client(recorder, fd, false, is_other);
	else if (fd >= 0)
		close(fd);
}

static bool has_library(const struct recorder *recorder)
{
	for (size_t i = 0; i < CLIENTS; i++) {
		struct pollfd fd = {.fd = recorder->clients[i].fd};

		if (fd.fd >= 0 && recorder->clients[i].is_library && !poll(&fd, 1, 0))
			return true;
	}
	return false;
}

/* exec() keeps the process, but gives it another stack. */
static bool is_another_program(struct recorder *recorder)
{
	uint64_t before = recorder->stack;
	struct proc_stat stat;

	if (!proc_stat_of(&stat, recorder->profiling.pid))
		recorder->stack = stat.fields[STAT_STACK];
	return recorder->stack != before;
}

/*
 * Two copies of the library in one process are two profilers, each with its own recorder. One that comes after the
 * first has gone is the first, whose descriptors were closed, or that of another program.
 */
static void adopt(struct recorder *recorder, struct recorder_question *question, struct recorder_answer *answer)
{
	if (has_library(recorder)) {
		answer->code = DUET_ANSWER_REFUSED;
	} else if (question->socket >= 0) {
		if (is_another_program(recorder))
			profiling_forget_program(&recorder->profiling);
		add_client(recorder, question->socket, true, false);
		question->socket = -1;
	}
}

/* A command that was waiting while this process was stopped may have ended, and nobody wants its effect then. */
static bool is_abandoned(int fd, const struct recorder_question *question)
{
	struct pollfd client = {.fd = fd};
	bool is_command =
		question->head.kind == DUET_QUESTION_COMMAND || question->head.kind == DUET_QUESTION_SHARED;

	return is_command && poll(&client, 1, 0) > 0 && client.revents & POLLHUP;
}

/* Returns false when the client has gone. `fd` is not the client's any more when it returns, if another came. */
static bool serve(struct recorder *recorder, struct client client)
{
	int fd = client.fd;
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	struct recorder_question question = {.is_other = client.is_other};
	bool goes_on = !recorder_receive(fd, &question) && !is_abandoned(fd, &question);

	if (goes_on && question.head.kind == DUET_QUESTION_ADOPT && !client.is_other)
		adopt(recorder, &question, &answer);
	else if (goes_on)
		profiling_answer(&recorder->profiling, &question, &answer);
	goes_on = goes_on && !recorder_reply(fd, &answer);
	recorder_answer_release(&answer);
	recorder_question_release(&question);
	return goes_on;
}

static size_t index_of(const struct recorder *recorder, int fd)
{
	size_t i = 0;

	while (i < CLIENTS && recorder->clients[i].fd != fd)
		i++;
	return i;
}

static void serve_client(struct recorder *recorder, int fd)
{
	size_t i = index_of(recorder, fd);

	if (i == CLIENTS || serve(recorder, recorder->clients[i]))
		return;
	i = index_of(recorder, fd);
	if (i < CLIENTS)
		forget_client(recorder, i);
}

static void look(struct recorder *recorder)
{
	struct pollfd fds[CLIENTS + 2 + SERVER_CLIENTS + 1];

	for (size_t i = 0; i < CLIENTS; i++)
		fds[i] = (struct pollfd){.fd = recorder->clients[i].fd, .events = POLLIN};
	fds[CLIENTS] = (struct pollfd){.fd = recorder->listener, .events = POLLIN};
	fds[CLIENTS + 1] = (struct pollfd){.fd = recorder->gone_ns ? -1 : recorder->process, .events = POLLIN};
	server_poll(&recorder->profiling.server, fds + CLIENTS + 2);
	if (poll(fds, sizeof(fds) / sizeof(fds[0]), STEP_MS) <= 0) {
		if (!recorder->has_swept)
			recorder_sweep_sockets();
		recorder->has_swept = true;
		return;
	}
	for (size_t i = CLIENTS; i-- > 0;)
		if (fds[i].fd >= 0 && fds[i].revents)
			serve_client(recorder, fds[i].fd);
	if (fds[CLIENTS].revents)
		take_client(recorder);
	if (fds[CLIENTS + 1].revents) {
		recorder->gone_ns = clock_monotonic_ns();
		server_close(&recorder->profiling.server); /* the next JVM needs the address */
	}
}

/*
 * The first process of a container becomes the parent of the recorder that it has started. A JVM never collects it, so
 * it would stay as a zombie, and so would each one after it.
 */
static bool is_child_of_process(const struct recorder *recorder)
{
	return !recorder->gone_ns && getppid() == recorder->profiling.pid;
}

/* What was recorded is kept for a library as long as its process runs. */
static bool is_over(const struct recorder *recorder)
{
	const struct profiling *profiling = &recorder->profiling;
	bool is_kept = has_library(recorder) && profiling->recording.parts.len;
	uint64_t now_ns = clock_monotonic_ns();

	if (signals_are_asked())
		return true;
	if (profiling_is_running(profiling) || profiling->server.is_open)
		return false;
	if (recorder->gone_ns && (!recorder->was_asked || now_ns - recorder->gone_ns > GONE_NS))
		return true;
	return !is_kept && !is_child_of_process(recorder) && now_ns - profiling->used_ns > recorder_idle_ns;
}

static void run(struct recorder *recorder)
{
	BUF(unheard);

	while (!is_over(recorder)) {
		look(recorder);
		profiling_step(&recorder->profiling);
	}
	signals_forget(); /* the file may take time; the next signal ends its waits */
	profiling_end(&recorder->profiling, &unheard);
	if (recorder->listener >= 0)
		recorder_unlink_socket(recorder->profiling.pid, recorder->profiling.start_ticks);
	profiling_release(&recorder->profiling);
}

static void recorder_init(struct recorder *recorder, pid_t pid, uint64_t start_ticks)
{
	*recorder = (struct recorder){.listener = -1};
	profiling_init(&recorder->profiling, pid, start_ticks);
	for (size_t i = 0; i < CLIENTS; i++)
		recorder->clients[i].fd = -1;
	recorder->process = (int)syscall(SYS_pidfd_open, pid, 0);
	(void)is_another_program(recorder);
}

/*
 * Replaces the standard streams: the terminal of the first command may be closed. Keeps one other descriptor, and
 * returns its new number.
 */
static int detach(int kept)
{
	struct sigaction term = {.sa_handler = signals_remember, .sa_flags = SA_RESTART};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int first = STDERR_FILENO + 1;

	setsid();
	prctl(PR_SET_NAME, "duet-recorder");
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &term, NULL);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	dup2(kept, first);
	closefrom(first + 1);
	(void)!chdir("/");
	return first;
}

/* Reports to the waiting command whether the recorder has begun; an empty text, with its end, means yes. */
static void report_begun(int pipe, const struct buf *why)
{
	(void)!write(pipe, why->data, why->len + 1);
	close(pipe);
}

static void live(pid_t pid, uint64_t start_ticks, int pipe)
{
	struct recorder recorder;
	BUF(why);

	pipe = detach(pipe);
	recorder_init(&recorder, pid, start_ticks);
	recorder.listener = recorder_listen(pid, start_ticks, &why);
	if (recorder.process < 0 && !why.len)
		buf_printf(&why, "process %d has ended", pid);
	if (recorder.listener == -EADDRINUSE) /* another command has started a recorder meanwhile */
		buf_clear(&why);
	report_begun(pipe, &why);
	if (recorder.listener >= 0 && recorder.process >= 0)
		run(&recorder);
}

/* Forks again and ends: the recorder is nobody's child. Does not return. */
static void fork_recorder(pid_t pid, uint64_t start_ticks, int pipe, struct buf *why)
{
	pid_t recorder = fork();

	if (!recorder)
		live(pid, start_ticks, pipe);
	if (recorder < 0) {
		buf_printf(why, "no process for the recorder: %s", strerror(errno));
		report_begun(pipe, why);
	}
	_exit(0);
}

int recorder_start(pid_t pid, uint64_t start_ticks, struct buf *why)
{
	uint64_t until_ns = clock_monotonic_ns() + START_NS;
	int between[2], status;
	char text[512] = "";
	ssize_t len = 0;
	pid_t child;

	if (pipe2(between, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (!child)
		fork_recorder(pid, start_ticks, between[1], why);
	close(between[1]);
	if (child < 0)
		buf_printf(why, "no process for the recorder: %s", strerror(errno));
	else if (!child_await_until(child, &status, until_ns) && !signals_wait(between[0], POLLIN, until_ns))
		len = read(between[0], text, sizeof(text) - 1);
	close(between[0]);
	if (len > 0)
		buf_add_str(why, text);
	else if (!why->len)
		buf_add_str(why, "the recorder ended at once: try again");
	return why->len ? -ECHILD : 0;
}

/* What the process had ignored or blocked must not be so here. */
static void forget_inherited_signals(void)
{
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signals_open();
}

/* The library has our version, or it looks for another executable. */
static int greet(int socket)
{
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	int err;

	buf_add_str(&answer.text, DUET_VERSION);
	err = recorder_reply(socket, &answer);
	recorder_answer_release(&answer);
	return err;
}

/* `asprof` was first. Returns 0, or -errno when its recorder ends, is stopped, or has another library. */
static int hand_over(pid_t pid, uint64_t start_ticks, int socket)
{
	BUF(why);
	IO_FD(connection) = recorder_connect(pid, start_ticks, &why);

	return connection < 0 ? connection : recorder_hand_over(connection, socket);
}

int recorder_run_for(int socket)
{
	struct recorder recorder;
	uint64_t start_ticks = 0;
	struct ucred process;
	socklen_t size = sizeof(process);
	BUF(why);

	forget_inherited_signals();
	socket = detach(socket);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &process, &size) < 0 || greet(socket) < 0 ||
	    process_read_start_ticks(process.pid, &start_ticks) < 0)
		return 1;
	recorder_init(&recorder, process.pid, start_ticks);
	if (recorder.process < 0)
		return 1;
	recorder.listener = recorder_listen(process.pid, start_ticks, &why);
	if (recorder.listener == -EADDRINUSE && !hand_over(process.pid, start_ticks, socket))
		return 0;
	add_client(&recorder, socket, true, false);
	run(&recorder);
	return 0;
}
