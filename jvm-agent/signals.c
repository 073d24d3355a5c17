/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "sample.h"

/* The first ones go to the C library, or are popular with other profilers and runtimes. */
#define FIRST_OFFSET 4

static int realtime_signal;

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == sample_handler;
}

static bool is_free(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

/*
 * SA_ONSTACK: a thread that registered an alternate stack did so because its own is too small for handlers (Go's
 * goroutines crash without it). Java threads have none, so for them it changes nothing: the handler runs below the
 * interrupted frame, where HotSpot keeps its shadow pages (80 KiB, also with -Xss256k) for just such needs; our own
 * frames stay below 4 KiB, the large buffers are elsewhere.
 * SA_RESTART: system calls must not notice. No SA_NODEFER: one sample at a time on a thread.
 */
static int take(int signo)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	struct sigaction old;

	if (sigaction(signo, NULL, &old))
		return -errno;
	if (is_ours(&old))
		return signo;
	if (!is_free(&old))
		return -EBUSY;
	action.sa_sigaction = sample_handler;
	sigemptyset(&action.sa_mask);
	return sigaction(signo, &action, NULL) ? -errno : signo;
}

int signals_take_realtime(int wanted)
{
	int signo = -EBUSY;

	if (wanted)
		return wanted >= SIGRTMIN && wanted <= SIGRTMAX ? take(wanted) : -EINVAL;
	if (realtime_signal)
		signo = take(realtime_signal);
	for (int i = SIGRTMIN + FIRST_OFFSET; signo < 0 && i <= SIGRTMAX; i++)
		signo = take(i);
	if (signo > 0)
		realtime_signal = signo;
	return signo;
}

int signals_take_prof(void)
{
	return take(SIGPROF);
}
