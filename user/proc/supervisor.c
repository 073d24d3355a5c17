/* SPDX-License-Identifier: MIT */
#include "proc/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/box.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/packet.h"

#define STEP_NS (2 * NS_PER_MS)
#define ORPHAN_STEPS 1000 /* how long a supervisor that ends waits for its processes, which need a CPU to end */
#define CHUNK_BYTES (64u << 10)

void helper_answer_release(struct helper_answer *answer)
{
	buf_release(&answer->text);
	io_close(&answer->fd);
}

void helper_answer_init(struct helper_answer *answer)
{
	*answer = (struct helper_answer){.fd = -1};
	buf_init(&answer->text);
}

/* ---- the helper ---- */

static int send_answer(int to, int result, const struct helper_answer *answer)
{
	struct reply reply = {
		.result = result, .text_len = (uint32_t)answer->text.len, .cpu_ns = clock_cpu_ns(), .st = answer->st};
	int err = packet_send(to, &reply, sizeof(reply), answer->fd, 0);

	for (size_t at = 0, len; !err && at < answer->text.len; at += len) {
		len = answer->text.len - at < CHUNK_BYTES ? answer->text.len - at : CHUNK_BYTES;
		err = packet_send(to, answer->text.data + at, len, -1, 0);
	}
	return err;
}

/* Answers tasks until the loader closes the socket. */
static void serve(int loader)
{
	char path[PATH_MAX + 1];
	struct request request;
	struct iovec parts[] = {{&request, sizeof(request)}, {path, PATH_MAX}};
	struct helper_answer answer;
	struct helper_task task;
	ssize_t len;
	int fd, err = 0;

	while (!err && (len = packet_receive_parts(loader, parts, 2, 0, &fd)) >= (ssize_t)sizeof(request)) {
		path[(size_t)len - sizeof(request)] = '\0';
		task = (struct helper_task){
			.charge = &request.charge, .fd = fd, .path = path, .number = request.number};
		helper_answer_init(&answer);
		err = send_answer(loader, request.work(&task, &answer), &answer);
		helper_answer_release(&answer);
		io_close(&fd);
	}
}

/* ---- the supervisor ---- */

/* A helper has the usual signals again. */
static void forget_orphans(void)
{
	sigset_t none;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * To read /proc and memory of all processes, to look up files, and for the links in /proc/PID/map_files, where before
 * Linux 5.9 only CAP_SYS_ADMIN is enough. All workers have no more.
 */
static uint64_t opener_rights(void)
{
	bool is_known = prctl(PR_CAPBSET_READ, CAP_CHECKPOINT_RESTORE, 0, 0, 0) == 1;

	return RIGHT(CAP_SYS_PTRACE) | RIGHT(CAP_DAC_READ_SEARCH) |
	       RIGHT(is_known ? CAP_CHECKPOINT_RESTORE : CAP_SYS_ADMIN);
}

/* Parses what a stranger may have written: it must have nothing to give away. */
static int enter_box(void)
{
	const struct box_limits limits = {.memory_bytes = PARSER_BYTES, .cpu_ns = PARSER_CPU_NS};

	prctl(PR_SET_NAME, "duet-parser");
	return box_enter(BOX_TALK, &limits);
}

/* Forks a worker; the loader gets its socket and pid. The pid, or 0. Returns in the supervisor only. */
static pid_t fork_worker(int orders, bool is_parser)
{
	pid_t pid, keeper = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	pid = fork();
	if (!pid) {
		child_end_with(keeper, SIGKILL);
		forget_orphans();
		close(orders);
		close(pair[0]);
		if (is_parser ? enter_box() : box_enter_opener())
			_exit(1);
		serve(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	if (pid > 0)
		(void)packet_send(orders, &pid, sizeof(pid), pair[0], 0);
	close(pair[0]);
	return pid > 0 ? pid : 0;
}

bool supervisor_await_end(pid_t child, int steps)
{
	for (int i = 0; i < steps; i++) {
		pid_t ended = waitpid(child, NULL, WNOHANG);

		if (ended < 0)
			return true;
		if (!ended)
			clock_sleep(STEP_NS);
	}
	return false;
}

static void on_child(int signo)
{
	(void)signo; /* ends ppoll() */
}

/* Collects what helpers left to init, too. A container's init may be a JVM, which would never do that. */
static void adopt_orphans(void)
{
	const struct sigaction action = {.sa_handler = on_child};
	sigset_t child;

	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL); /* ppoll() takes it */
	sigaction(SIGCHLD, &action, NULL);
}

/* Collects those that have ended. Stores 0 if the helper is one of them. */
static void collect(pid_t *helper_pid)
{
	pid_t ended;

	while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
		if (ended == *helper_pid)
			*helper_pid = 0;
}

/* Returns false when the loader has closed the socket. */
static bool await_order(int orders, pid_t *opener, struct order *ret)
{
	struct pollfd order = {.fd = orders, .events = POLLIN};
	sigset_t none;

	sigemptyset(&none);
	while (ppoll(&order, 1, NULL, &none) <= 0)
		collect(opener);
	collect(opener);
	return recv(orders, ret, sizeof(*ret), 0) == sizeof(*ret);
}

/* Returns false when no worker can be made. */
static bool obey(int orders, const struct order *order, pid_t *opener)
{
	switch (order->kind) {
	case ORDER_OPENER:
		if (*opener)
			kill(*opener, SIGKILL);
		*opener = fork_worker(orders, false);
		return *opener > 0;
	case ORDER_PARSER:
		return fork_worker(orders, true) > 0;
	case ORDER_END:
		if (order->pid > 0 && !waitpid(order->pid, NULL, WNOHANG)) /* it is a child that runs */
			kill(order->pid, SIGKILL);
	}
	return true;
}

/* The supervisor's loop. It alone waits for the workers, so no pid is reused before kill(). */
static void keep(int orders)
{
	pid_t current = 0;
	bool goes_on = true;
	struct order order;

	adopt_orphans();
	while (goes_on && await_order(orders, &current, &order))
		goes_on = obey(orders, &order, &current);
	if (current)
		kill(current, SIGKILL);
	(void)supervisor_await_end(-1, ORPHAN_STEPS);
}

/* Closes everything inherited from the loader: rings, locks, and pipes on whose end a process waits. */
static void shed_inheritance(int orders)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_NAME, "duet-reader");
	(void)rights_narrow(opener_rights());
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	/* These signals reach the whole process group. The loader decides when the supervisor ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the error is reported */
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	dup2(orders, 3);
	closefrom(4);
}

void supervise(int orders)
{
	shed_inheritance(orders);
	keep(3);
}
