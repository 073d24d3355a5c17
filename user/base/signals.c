/* SPDX-License-Identifier: MIT */
#include "base/signals.h"

#include <string.h>
#include <unistd.h>

#include "base/io.h"

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
