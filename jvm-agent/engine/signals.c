/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample/sample.h"

/* The first real-time signals belong to the C library, or are popular with other profilers and runtimes. */
#define FIRST_OFFSET 4
#define MAX_THREADS 4096 /* most threads whose status is read, at 15 us each */
#define STATUS_BYTES 4096

static int realtime_signal;

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == sample_handler;
}

/* An ignored SIGPROF is free: signals_leave() ignored it, here or in a process that started this program. */
static bool is_free(int signo, const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) &&
	       (action->sa_handler == SIG_DFL || (signo == SIGPROF && action->sa_handler == SIG_IGN));
}

/*
 * SA_ONSTACK: a thread that registered an alternate stack did so because its own stack is too small for handlers (Go's
 * goroutines crash without it). Java threads have no alternate stack, so for them the flag changes nothing. The handler
 * runs below the interrupted frame, where HotSpot keeps its shadow pages (80 KiB, also with -Xss256k) for such needs;
 * our own frames stay below 4 KiB, and the large buffers are elsewhere.
 *
 * SA_RESTART: the thread's system calls must not fail with EINTR. No SA_NODEFER: a thread takes one sample at a time.
 */
static int take(int signo)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	struct sigaction old;

	if (sigaction(signo, NULL, &old))
		return -errno;
	if (is_ours(&old))
		return signo;
	if (!is_free(signo, &old))
		return -EBUSY;
	action.sa_sigaction = sample_handler;
	sigemptyset(&action.sa_mask);
	return sigaction(signo, &action, NULL) ? -errno : signo;
}

static uint64_t bit(int signo)
{
	return 1ull << (signo - 1);
}

/* Returns the signals that one of our threads blocks; 0 when it is gone. */
static uint64_t blocked_by(int tasks, const char *tid)
{
	char path[300], text[STATUS_BYTES];
	const char *line;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/status", tid);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	line = strstr(text, "\nSigBlk:");
	return line ? strtoull(line + strlen("\nSigBlk:"), NULL, 16) : 0;
}

/* Leaves out a thread that blocks all real-time signals, as ours does: it avoids signals and waits for none. */
static uint64_t without_helpers(uint64_t blocked)
{
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		if (!(blocked & bit(i)))
			return blocked;
	return 0;
}

/*
 * Returns the signals that some thread blocks. A signal that a thread waits for with sigwait() or a signalfd has its
 * default action and looks free, but that thread blocks it. Our handler would take it away.
 */
static uint64_t blocked_somewhere(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	uint64_t blocked = 0;

	for (int i = 0; tasks && i < MAX_THREADS && (entry = readdir(tasks)); i++)
		if (entry->d_name[0] != '.')
			blocked |= without_helpers(blocked_by(dirfd(tasks), entry->d_name));
	if (tasks)
		closedir(tasks);
	return blocked;
}

static int take_first_free(void)
{
	uint64_t blocked = blocked_somewhere();
	int signo = -EBUSY;

	for (int i = SIGRTMIN + FIRST_OFFSET; signo < 0 && i <= SIGRTMAX; i++)
		if (!(blocked & bit(i)))
			signo = take(i);
	return signo;
}

int signals_take_realtime(int wanted, const char **ret_why)
{
	int signo = -EBUSY;

	*ret_why =
		wanted ? "the signal asked for is in use in this JVM" : "every real-time signal is in use in this JVM";
	if (wanted)
		return wanted >= SIGRTMIN && wanted <= SIGRTMAX ? take(wanted) : -EINVAL;
	if (realtime_signal)
		signo = take(realtime_signal);
	if (signo < 0)
		signo = take_first_free();
	if (signo > 0)
		realtime_signal = signo;
	return signo;
}

int signals_take(int signo)
{
	return signo == SIGURG && blocked_somewhere() & bit(SIGURG) ? -EBUSY : take(signo);
}

bool signals_have(int signo)
{
	struct sigaction action;

	return sigaction(signo, NULL, &action) == 0 && is_ours(&action);
}

/* Another profiler's handler, which has just replaced ours, is put back. */
void signals_leave(int signo)
{
	struct sigaction unset = {.sa_handler = signo == SIGPROF ? SIG_IGN : SIG_DFL}, found;

	if (signals_have(signo) && sigaction(signo, &unset, &found) == 0 && !is_ours(&found))
		sigaction(signo, &found, NULL);
}
