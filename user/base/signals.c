/* SPDX-License-Identifier: MIT */
#include "base/signals.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define GRACE_NS (700 * NS_PER_MS) /* what others may still send when this process was asked to end */
#define LOOK_MS 100 /* a signal that is blocked ends no poll() */

static const int ending[] = {SIGHUP,  SIGINT,	 SIGQUIT, SIGALRM, SIGTERM, SIGUSR1,  SIGUSR2,
			     SIGXCPU, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSTKFLT};

#define ENDING (sizeof(ending) / sizeof(*ending))

static pid_t owner;

/* Not for who has pressed Ctrl-C, or has closed the pipe. Children are silent. */
static void say(int signo)
{
	const char *name = sigabbrev_np(signo);
	char text[64] = "duet: ended by SIG";

	if (signo == SIGINT || signo == SIGPIPE || getpid() != owner)
		return;
	strcat(strncat(text, name ? name : "RT", 16), "\n");
	(void)!write(STDERR_FILENO, text, strlen(text));
}

/* The signal has its default again, and is raised until the handler returns. */
static void on_end(int signo)
{
	io_remove_temporaries();
	say(signo);
	raise(signo);
}

static void take(int signo)
{
	const struct sigaction end = {.sa_handler = on_end, .sa_flags = SA_RESETHAND};
	struct sigaction old;

	if (sigaction(signo, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		sigaction(signo, &end, NULL);
}

void signals_open(void)
{
	owner = getpid();
	for (size_t i = 0; i < ENDING; i++)
		take(ending[i]);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		take(signo);
	take(SIGPIPE);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* whose parent ignores it could not wait for its own children */
}

void signals_end_with(int signo)
{
	signal(signo, SIG_DFL);
	take(signo);
}

void signals_reset(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

void signals_ending(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	for (size_t i = 0; i < ENDING; i++)
		sigaddset(ret_set, ending[i]);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		sigaddset(ret_set, signo);
}

static volatile sig_atomic_t is_remembered;

void signals_remember(int signo)
{
	is_remembered = 1;
}

void signals_forget(void)
{
	is_remembered = 0;
}

bool signals_are_asked(void)
{
	sigset_t pending;

	return is_remembered || (!sigpending(&pending) &&
				 (sigismember(&pending, SIGINT) > 0 || sigismember(&pending, SIGTERM) > 0));
}

uint64_t signals_limit(uint64_t until_ns)
{
	static uint64_t asked_ns;

	if (!signals_are_asked())
		asked_ns = 0;
	else if (!asked_ns)
		asked_ns = clock_monotonic_ns();
	return asked_ns && until_ns > asked_ns + GRACE_NS ? asked_ns + GRACE_NS : until_ns;
}

int signals_wait(int fd, short events, uint64_t until_ns)
{
	struct pollfd waiting = {.fd = fd, .events = events};

	for (;;) {
		uint64_t end_ns = signals_limit(until_ns), now_ns = clock_monotonic_ns();
		uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns) / NS_PER_MS + 1 : 0;
		int ready = poll(&waiting, 1, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);

		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (!left_ms)
			return end_ns < until_ns ? -EINTR : -ETIMEDOUT;
	}
}
