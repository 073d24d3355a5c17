/* SPDX-License-Identifier: MIT */
/*
 * setitimer(ITIMER_PROF): one timer for the process; the kernel signals the
 * thread that happens to run when it expires.
 */
#include "engine.h"

#include <errno.h>
#include <stddef.h>
#include <sys/time.h>

#include "signals.h"

static int itimer_take_signal(int wanted, const char **ret_why)
{
	int signo = signals_take_prof();

	(void)wanted; /* the timer knows no other */
	if (signo < 0)
		*ret_why = "SIGPROF is in use in this JVM, by another profiler or JFR; engine ctimer needs no SIGPROF";
	return signo;
}

static int itimer_set(uint64_t interval_ns)
{
	struct itimerval timer;

	timer.it_interval.tv_sec = (time_t)(interval_ns / 1000000000u);
	timer.it_interval.tv_usec = (suseconds_t)(interval_ns % 1000000000u / 1000u);
	timer.it_value = timer.it_interval;
	return setitimer(ITIMER_PROF, &timer, NULL) ? -errno : 0;
}

static int itimer_start(int signo, uint64_t interval_ns, const char **ret_why)
{
	int error;

	(void)signo;
	error = interval_ns < 1000 ? -EINVAL : itimer_set(interval_ns);
	if (error)
		*ret_why = "setitimer(ITIMER_PROF) refused the interval";
	return error;
}

static void itimer_stop(void)
{
	itimer_set(0);
}

const struct engine engine_itimer = {
	.id = DUET_ENGINE_ITIMER,
	.standalone = true,
	.take_signal = itimer_take_signal,
	.start = itimer_start,
	.stop = itimer_stop,
};
