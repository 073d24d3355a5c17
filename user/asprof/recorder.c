/* SPDX-License-Identifier: MIT */
#include "asprof/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asprof/meeting.h"
#include "asprof/recording.h"
#include "asprof/report_file.h"
#include "base/clock.h"
#include "base/log.h"

#define CLIENTS 8 /* a new client replaces the oldest one */
#define STEP_MS 100
#define IDLE_NS (600 * NS_PER_SEC)
#define GONE_NS (10 * NS_PER_SEC) /* time after the end of the process in which its last report can be requested */

struct recorder {
	pid_t pid;
	uint64_t start_ticks;
	int process; /* pidfd */
	int listener;
	int clients[CLIENTS]; /* newest first; -1 = none */
	struct recording recording;
	struct asprof_arguments begun; /* the arguments with which the recording was started */
	uint64_t until_ns; /* timeout or loop; 0: none */
	unsigned int number; /* number of the file, for %n */
	uint64_t used_ns; /* time of the last command or of the last end of a recording */
	uint64_t gone_ns; /* time at which the process had ended; 0: it runs */
};

static volatile sig_atomic_t is_told_to_end;

static void on_term(int signo)
{
	(void)signo;
	is_told_to_end = 1;
}

static unsigned long long seconds_of(const struct recording *recording)
{
	uint64_t end_ns = recording->child ? clock_monotonic_ns() : recording->ended_ns;

	return (end_ns - recording->begun_ns) / NS_PER_SEC;
}

/* ---- the file that the start command named ---- */

static void write_file(struct recorder *recorder)
{
	struct report_file file;
	struct buf path, why;
	int report = -1;

	if (!recorder->begun.file || !recorder->begun.writer)
		return;
	buf_init(&path);
	buf_init(&why);
	report_file_name(recorder->begun.file, recorder->pid, recorder->number++, &path);
	if (!report_file_open(&file, recorder->pid, recorder->start_ticks, path.data, &why)) {
		report = recording_report(&recorder->recording, &recorder->begun, &why);
		if (report >= 0)
			(void)report_file_write(&file, report, &why);
		report_file_discard(&file);
	}
	if (report >= 0)
		close(report);
	if (why.len)
		log_error("process %d: %s", recorder->pid, why.data);
	buf_release(&why);
	buf_release(&path);
}

static void end_recording(struct recorder *recorder)
{
	recording_stop(&recorder->recording);
	recorder->until_ns = 0;
	recorder->used_ns = clock_monotonic_ns();
}

/* ---- commands ---- */

static int refuse(struct meeting_answer *answer, const char *text)
{
	answer->code = ASPROF_REFUSED;
	buf_add_str(&answer->text, text);
	return -EINVAL;
}

static void set_end(struct recorder *recorder)
{
	uint64_t after_ns = recorder->begun.loop_ns ? recorder->begun.loop_ns : recorder->begun.timeout_ns;

	recorder->until_ns = after_ns ? clock_monotonic_ns() + after_ns : 0;
}

/* Takes ownership of `arguments`. */
static void begin(struct recorder *recorder, struct asprof_arguments *arguments, struct meeting_answer *answer)
{
	bool is_resumed = arguments->action == ASPROF_RESUME;
	int err;

	if (recorder->recording.child) {
		(void)refuse(answer, "Profiler already started");
		asprof_arguments_release(arguments);
		return;
	}
	asprof_arguments_release(&recorder->begun);
	recorder->begun = *arguments;
	recorder->number = is_resumed ? recorder->number : 0;
	err = is_resumed ? recording_resume(&recorder->recording, recorder->pid, &recorder->begun, &answer->text)
			 : recording_start(&recorder->recording, recorder->pid, &recorder->begun, &answer->text);
	if (err) {
		answer->code = ASPROF_REFUSED;
		return;
	}
	set_end(recorder);
	if (!recorder->begun.quiet)
		buf_add_str(&answer->text, "Profiling started\n");
}

static void answer_report(struct recorder *recorder, const struct asprof_arguments *arguments,
			  struct meeting_answer *answer)
{
	if (!recorder->recording.parts.len) {
		(void)refuse(answer, "Profiler has not started");
		return;
	}
	answer->report = recording_report(&recorder->recording, arguments, &answer->text);
	if (answer->report < 0)
		answer->code = ASPROF_REFUSED;
}

static void stop(struct recorder *recorder, const struct asprof_arguments *arguments, struct meeting_answer *answer)
{
	bool was_running = recorder->recording.child;

	end_recording(recorder);
	if (arguments->writer)
		answer_report(recorder, arguments, answer);
	else if (was_running)
		buf_printf(&answer->text, "Profiling stopped after %llu seconds. No dump options specified\n",
			   seconds_of(&recorder->recording));
	else
		(void)refuse(answer, "Profiler is not active");
}

static void dump(struct recorder *recorder, const struct asprof_arguments *arguments, struct meeting_answer *answer)
{
	if (arguments->writer)
		answer_report(recorder, arguments, answer);
	else
		(void)refuse(answer, "No output format selected");
}

static void tell_status(const struct recorder *recorder, struct meeting_answer *answer)
{
	if (recorder->recording.child)
		buf_printf(&answer->text, "Profiling is running for %llu seconds\n", seconds_of(&recorder->recording));
	else
		buf_add_str(&answer->text, "Profiler is not active\n");
}

/* begin() takes ownership of the arguments; other commands release them here. */
static void obey(struct recorder *recorder, struct asprof_arguments *arguments, struct meeting_answer *answer)
{
	if (arguments->action == ASPROF_START || arguments->action == ASPROF_RESUME) {
		begin(recorder, arguments, answer);
		return;
	}
	if (arguments->action == ASPROF_STOP)
		stop(recorder, arguments, answer);
	else if (arguments->action == ASPROF_DUMP)
		dump(recorder, arguments, answer);
	else if (arguments->action == ASPROF_STATUS)
		tell_status(recorder, answer);
	else if (arguments->action != ASPROF_NONE)
		(void)refuse(answer, "the recorder does not know this action");
	asprof_arguments_release(arguments);
}

/* Returns false when the client has closed the connection. */
static bool serve(struct recorder *recorder, int client)
{
	struct meeting_answer answer = {.report = -1};
	struct asprof_arguments arguments;
	struct buf question, warnings, why;
	bool goes_on;

	buf_init(&answer.text);
	buf_init(&question);
	buf_init(&warnings);
	buf_init(&why);
	goes_on = !meeting_receive(client, &question);
	if (goes_on && asprof_arguments_parse(&arguments, question.data, &warnings, &why)) {
		answer.code = ASPROF_NOT_UNDERSTOOD;
		buf_add_str(&answer.text, why.data);
	} else if (goes_on) {
		buf_add_str(&answer.text, warnings.data);
		obey(recorder, &arguments, &answer);
		recorder->used_ns = clock_monotonic_ns();
	}
	goes_on = goes_on && !meeting_reply(client, &answer);
	meeting_answer_release(&answer);
	buf_release(&question);
	buf_release(&warnings);
	buf_release(&why);
	return goes_on;
}

/* ---- clients ---- */

static void forget_client(struct recorder *recorder, size_t i)
{
	close(recorder->clients[i]);
	memmove(recorder->clients + i, recorder->clients + i + 1, (CLIENTS - 1 - i) * sizeof(int));
	recorder->clients[CLIENTS - 1] = -1;
}

/* Only the recorder's user and root can enter the folder. */
static void take_client(struct recorder *recorder)
{
	int fd = accept4(recorder->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (recorder->clients[CLIENTS - 1] >= 0)
		close(recorder->clients[CLIENTS - 1]);
	memmove(recorder->clients + 1, recorder->clients, (CLIENTS - 1) * sizeof(int));
	recorder->clients[0] = fd;
}

static void look(struct recorder *recorder)
{
	struct pollfd fds[CLIENTS + 2];

	for (size_t i = 0; i < CLIENTS; i++)
		fds[i] = (struct pollfd){.fd = recorder->clients[i], .events = POLLIN};
	fds[CLIENTS] = (struct pollfd){.fd = recorder->listener, .events = POLLIN};
	fds[CLIENTS + 1] = (struct pollfd){.fd = recorder->gone_ns ? -1 : recorder->process, .events = POLLIN};
	if (poll(fds, CLIENTS + 2, STEP_MS) <= 0)
		return;
	for (size_t i = CLIENTS; i-- > 0;)
		if (fds[i].revents && !serve(recorder, recorder->clients[i]))
			forget_client(recorder, i);
	if (fds[CLIENTS].revents)
		take_client(recorder);
	if (fds[CLIENTS + 1].revents)
		recorder->gone_ns = clock_monotonic_ns();
}

/* ---- timeouts and ends ---- */

static void restart(struct recorder *recorder)
{
	struct buf why;

	buf_init(&why);
	if (recording_start(&recorder->recording, recorder->pid, &recorder->begun, &why))
		log_error("process %d: %s", recorder->pid, why.data);
	else
		set_end(recorder);
	buf_release(&why);
}

static void step(struct recorder *recorder)
{
	bool is_due = recorder->until_ns && clock_monotonic_ns() >= recorder->until_ns;

	if (recording_has_ended(&recorder->recording)) {
		end_recording(recorder);
		write_file(recorder);
	} else if (is_due) {
		end_recording(recorder);
		write_file(recorder);
		if (recorder->begun.loop_ns)
			restart(recorder);
	}
}

static bool is_over(const struct recorder *recorder)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (is_told_to_end)
		return true;
	if (recorder->recording.child)
		return false;
	return now_ns - recorder->used_ns > IDLE_NS || (recorder->gone_ns && now_ns - recorder->gone_ns > GONE_NS);
}

static void run(struct recorder *recorder)
{
	while (!is_over(recorder)) {
		look(recorder);
		step(recorder);
	}
	if (recorder->recording.child) {
		end_recording(recorder);
		write_file(recorder);
	}
	meeting_end(recorder->pid, recorder->start_ticks);
	recording_release(&recorder->recording);
	asprof_arguments_release(&recorder->begun);
}

/* ---- the process ---- */

/*
 * Replaces the standard streams: the terminal of the first command may be closed. Keeps one other descriptor, and
 * returns its new number.
 */
static int detach(int kept)
{
	struct sigaction term = {.sa_handler = on_term};
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

/* Reports to the waiting command whether the recorder has begun; an empty text means yes. */
static void tell_begun(int pipe, const struct buf *why)
{
	(void)!write(pipe, why->data, why->len);
	close(pipe);
}

static void live(pid_t pid, uint64_t start_ticks, int pipe)
{
	struct recorder recorder = {.pid = pid,
				    .start_ticks = start_ticks,
				    .recording = RECORDING_NONE,
				    .used_ns = clock_monotonic_ns()};
	struct buf why;

	pipe = detach(pipe);
	buf_init(&why);
	for (size_t i = 0; i < CLIENTS; i++)
		recorder.clients[i] = -1;
	recorder.process = (int)syscall(SYS_pidfd_open, pid, 0);
	recorder.listener = meeting_listen(pid, start_ticks, &why);
	if (recorder.process < 0 && !why.len)
		buf_printf(&why, "process %d has ended", pid);
	if (recorder.listener == -EADDRINUSE) /* another command has started a recorder meanwhile */
		buf_clear(&why);
	tell_begun(pipe, &why);
	if (recorder.listener >= 0 && recorder.process >= 0)
		run(&recorder);
	buf_release(&why);
}

int recorder_start(pid_t pid, uint64_t start_ticks, struct buf *why)
{
	int between[2], status;
	char text[512];
	ssize_t len;
	pid_t child;

	if (pipe2(between, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (!child) {
		if (fork())
			_exit(0);
		live(pid, start_ticks, between[1]);
		_exit(0);
	}
	close(between[1]);
	if (child > 0)
		waitpid(child, &status, 0);
	len = child < 0 ? -1 : read(between[0], text, sizeof(text) - 1);
	close(between[0]);
	if (len < 0)
		buf_printf(why, "no process for the recorder: %s", strerror(errno));
	else
		buf_add(why, text, (size_t)len);
	return why->len ? -ECHILD : 0;
}
