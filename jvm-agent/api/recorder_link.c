/* SPDX-License-Identifier: MIT */
#include "api/recorder_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hotspot/clock.h"
#include "libc_versions.h"
#include "locked.h"
#include "peer/peer.h"

#define PREPARE_MS 10000
#define START_MS 60000 /* for an agent in a JVM that is busy */
#define WAIT_MS 180000 /* for a report of many samples */
#define WHY_MAX 256
#define COPY_BYTES 16384

static struct {
	pthread_mutex_t lock; /* guards all members below */
	struct started_recorder recorder; /* socket -1: none */
	pid_t owner; /* the process that recorder it: a child of fork() has its own */
	/* identity of the socket: the application may have closed the descriptor and use its number itself */
	char identity[32];
	bool records; /* a start was answered, and no stop since */
} link_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .recorder = {.socket = -1}};

/* "socket:[INODE]" */
static void identify(int socket, char ret[32])
{
	char path[32];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", socket);
	length = readlink(path, ret, 31);
	ret[length > 0 ? length : 0] = '\0';
}

static bool is_connected(void)
{
	char now[32];

	if (link_state.recorder.socket < 0 || link_state.owner != getpid())
		return false;
	identify(link_state.recorder.socket, now);
	return !strcmp(now, link_state.identity);
}

/* In a container the JVM itself may be init. Then it must collect the recorder. */
static void forget_recorder(void)
{
	if (is_connected()) {
		close(link_state.recorder.socket);
		waitpid(link_state.recorder.pid, NULL, WNOHANG | __WALL);
	}
	link_state.recorder.socket = -1;
}

static void refuse(struct link_answer *ret, const char *why)
{
	ret->head = (struct duet_answer){.code = DUET_ANSWER_REFUSED, .stream = DUET_ANSWER_STDOUT};
	ret->bytes = strlen(why);
	ret->text = strdup(why);
}

/* Returns false after filling *ret. */
static bool connect_recorder(struct link_answer *ret)
{
	char why[WHY_MAX];

	if (is_connected())
		return true;
	link_state.recorder.socket = -1;
	link_state.records = false;
	if (start_recorder(&link_state.recorder, why, sizeof(why))) {
		link_state.recorder.socket = -1;
		refuse(ret, why);
		return false;
	}
	link_state.owner = getpid();
	identify(link_state.recorder.socket, link_state.identity);
	return true;
}

/* Waits for one of poll()'s `events`. */
static int await(short events, uint64_t until_ns)
{
	struct pollfd fd = {.fd = link_state.recorder.socket, .events = events};

	for (;;) {
		uint64_t now_ns = clock_ns();
		int ready = now_ns < until_ns ? poll(&fd, 1, (int)((until_ns - now_ns) / 1000000) + 1) : 0;

		if (ready > 0)
			return 0;
		if (!ready)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int send_question(const struct duet_question *question, const char *text, uint64_t until_ns)
{
	struct iovec parts[] = {{(void *)(uintptr_t)question, sizeof(*question)},
				{(void *)(uintptr_t)text, strlen(text)}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t sent;

	do
		sent = sendmsg(link_state.recorder.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && (errno == EINTR || (errno == EAGAIN && !await(POLLOUT, until_ns))));
	return sent < 0 ? -errno : 0;
}

static int receive_answer(struct link_answer *ret)
{
	union passed rights;
	char *text = malloc(DUET_RECORDER_TEXT_MAX + 1), *fitted;
	struct iovec parts[] = {{&ret->head, sizeof(ret->head)}, {text, DUET_RECORDER_TEXT_MAX}};
	struct msghdr message = {
		.msg_iov = parts, .msg_iovlen = 2, .msg_control = rights.bytes, .msg_controllen = sizeof(rights.bytes)};
	ssize_t bytes;

	if (!text)
		return -ENOMEM;
	bytes = recvmsg(link_state.recorder.socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (bytes >= 0)
		passed_take(&message, &ret->report, 1);
	if (bytes < (ssize_t)sizeof(ret->head)) {
		if (ret->report >= 0)
			close(ret->report);
		ret->report = -1;
		free(text);
		return bytes < 0 ? -errno : -EPIPE;
	}
	ret->bytes = (size_t)bytes - sizeof(ret->head);
	text[ret->bytes] = '\0';
	fitted = realloc(text, ret->bytes + 1);
	ret->text = fitted ? fitted : text;
	if (ret->head.log_bytes > ret->bytes)
		ret->head.log_bytes = (uint32_t)ret->bytes;
	return 0;
}

static int ask(const struct duet_question *question, const char *text, uint64_t until_ns, struct link_answer *ret)
{
	int error = send_question(question, text, until_ns);

	if (!error)
		error = await(POLLIN, until_ns);
	return error ? error : receive_answer(ret);
}

static bool is_gone(int error)
{
	return error == -EPIPE || error == -ECONNRESET || error == -ECONNREFUSED || error == -ENOTCONN;
}

static void explain(struct link_answer *ret, int error, bool has_recorded)
{
	if (error == -EMSGSIZE)
		refuse(ret, "The arguments are too long");
	else if (is_gone(error) && has_recorded)
		refuse(ret, "The recorder of this process has ended, and its recording is lost: start again");
	else
		refuse(ret, error == -ETIMEDOUT ? "The recorder of this process does not answer"
						: "The recorder of this process has ended: try again");
}

static bool is_start(const char *text)
{
	return !strncasecmp(text, "start", 5) || !strncasecmp(text, "resume", 6);
}

/* The JVM's main method may wait for a start. */
static uint64_t wait_ms(const struct duet_question *question, const char *text)
{
	if (question->kind == DUET_QUESTION_PREPARE)
		return PREPARE_MS;
	return is_start(text) ? START_MS : WAIT_MS;
}

/* A recorder ends after some time without a recording. Then another one replaces it. */
static int ask_or_replace(const struct duet_question *question, const char *text, struct link_answer *ret)
{
	const uint64_t until_ns = clock_ns() + wait_ms(question, text) * 1000000ull;
	int error = ask(question, text, until_ns, ret);

	if (!is_gone(error) || link_state.records)
		return error;
	forget_recorder();
	return connect_recorder(ret) ? ask(question, text, until_ns, ret) : 0;
}

/* Stores whether a recording is under way, which would be lost if the recorder ended. */
static void note_state(const char *text, const struct link_answer *answer)
{
	if (answer->head.code)
		return;
	if (is_start(text))
		link_state.records = true;
	else if (!strncasecmp(text, "stop", 4))
		link_state.records = false;
}

void link_ask(const struct duet_question *question, const char *text, struct link_answer *ret)
{
	LOCKED(&link_state.lock);
	int error;

	*ret = (struct link_answer){.report = -1};
	if (!connect_recorder(ret))
		return;
	error = ask_or_replace(question, text, ret);
	if (error)
		explain(ret, error, link_state.records);
	else
		note_state(text, ret);
	/* a late answer must not be read as the answer of the next question */
	if (error && error != -EMSGSIZE) {
		forget_recorder();
		link_state.records = false;
	}
}

/* Another thread may be waiting for a report. */
void link_ask_if_started(const struct duet_question *question, int wait_s, struct link_answer *ret)
{
	const uint64_t until_ns = clock_ns() + (uint64_t)wait_s * 1000000000;
	struct timespec until;

	*ret = (struct link_answer){.report = -1};
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += wait_s;
	if (pthread_mutex_timedlock(&link_state.lock, &until))
		return;
	if (is_connected() && ask(question, "", until_ns, ret))
		forget_recorder();
	pthread_mutex_unlock(&link_state.lock);
}

bool link_write(int fd, const void *from, size_t count)
{
	const char *bytes = from;

	while (count) {
		ssize_t written = write(fd, bytes, count);

		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0) {
			bytes += written;
			count -= (size_t)written;
		}
	}
	return true;
}

const char *link_reply(const struct link_answer *answer)
{
	return answer->text ? answer->text + answer->head.log_bytes : "";
}

void link_pass_report(const struct link_answer *answer, void (*to)(const char *bytes, size_t count))
{
	char bytes[COPY_BYTES];
	ssize_t more;

	for (off_t at = 0; answer->report >= 0 && (more = pread(answer->report, bytes, sizeof(bytes), at)) > 0;
	     at += more)
		to(bytes, (size_t)more);
}

void link_answer_release(struct link_answer *answer)
{
	if (answer->report >= 0)
		close(answer->report);
	free(answer->text);
	*answer = (struct link_answer){.report = -1};
}
