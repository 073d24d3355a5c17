/* SPDX-License-Identifier: MIT */
#include "collect/probe_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/packet.h"

#define TIMEOUT_MS 5000 /* for each probe; one takes some milliseconds, on a busy machine some hundred */
#define END_STEP_NS 2000000
#define END_STEPS 100

/* ---- the process ---- */

static void keep_only(int a, int b)
{
	unsigned int low = (unsigned int)(a < b ? a : b), high = (unsigned int)(a < b ? b : a);

	if (low)
		close_range(0, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
}

/* Returns when the loader closes its end of the socket or exits. */
static void run(int socket, int (*open_probe)(const void *context, size_t i), const void *context, size_t count)
{
	int fd = 0, none;
	char byte;

	prctl(PR_SET_NAME, "duet-probes");
	for (size_t i = 0; fd >= 0 && i < count; i++) {
		int result;

		fd = open_probe(context, i);
		result = fd < 0 ? fd : 0;
		if (packet_send(socket, &result, sizeof(result), fd, 0) < 0)
			return;
	}
	(void)packet_receive(socket, &byte, sizeof(byte), -1, &none);
}

/* Signals of the terminal are for the loader. */
static void ignore_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_IGN);
}

/* ---- the loader ---- */

static int start(struct probe_process *process, int (*open_probe)(const void *context, size_t i), const void *context,
		 size_t count, int kept)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	process->socket = pair[0];
	process->pid = fork();
	if (!process->pid) {
		ignore_signals();
		keep_only(pair[1], kept);
		run(pair[1], open_probe, context, count);
		_exit(0);
	}
	close(pair[1]);
	if (process->pid > 0)
		return 0;
	close(pair[0]);
	*process = (struct probe_process){0};
	return -EAGAIN;
}

static int receive(int socket, int *ret_fd)
{
	int result = 0;
	ssize_t len = packet_receive(socket, &result, sizeof(result), TIMEOUT_MS, ret_fd);

	if (len != sizeof(result))
		return len < 0 ? (int)len : -ECHILD;
	if (result < 0)
		return result;
	return *ret_fd < 0 ? -EPROTO : 0;
}

int probe_process_open(struct probe_process *process, int (*open_probe)(const void *context, size_t i),
		       const void *context, size_t count, int kept, int *ret_fds)
{
	int err = start(process, open_probe, context, count, kept);
	size_t got = 0;

	while (!err && got < count) {
		err = receive(process->socket, &ret_fds[got]);
		got += !err;
	}
	if (!err)
		return 0;
	while (got)
		close(ret_fds[--got]);
	probe_process_close(process);
	return err;
}

void probe_process_close(struct probe_process *process)
{
	const struct timespec step = {.tv_nsec = END_STEP_NS};

	if (process->socket <= 0)
		return;
	close(process->socket);
	for (int i = 0; i < END_STEPS && !waitpid(process->pid, NULL, WNOHANG); i++)
		nanosleep(&step, NULL);
	*process = (struct probe_process){0};
}
