/* SPDX-License-Identifier: MIT */
/*
 * setitimer(ITIMER_PROF): one timer for the process. When it expires, the kernel signals the thread that happens to
 * run. The kernel checks the timer only in its own tick (4 ms with HZ=250). It sends one signal however often the timer
 * has expired, and does not report how often. So that number is computed from the process's CPU clock.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

#include "engine.h"
#include "hotspot/clock.h"

static struct {
	uint64_t interval_ns;
	uint64_t taken_ns; /* process CPU time that samples account for so far */
} itimer;

/* Counts the intervals of all threads since the last signal. Threads that run at a time are interrupted in turn. */
static uint64_t itimer_periods(int tid, const siginfo_t *info)
{
	uint64_t taken_ns = __atomic_load_n(&itimer.taken_ns, __ATOMIC_RELAXED);
	uint64_t now_ns = clock_read(CLOCK_PROCESS_CPUTIME_ID), periods;

	(void)info; /* the signal does not say how often the timer expired */
	do {
		periods = now_ns > taken_ns ? (now_ns - taken_ns) / itimer.interval_ns : 0;
	} while (periods && !__atomic_compare_exchange_n(&itimer.taken_ns, &taken_ns,
							 taken_ns + periods * itimer.interval_ns, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return periods;
}

static int itimer_take_signal(int wanted, const char **ret_why)
{
	int signo = signals_take(SIGPROF);

	(void)wanted; /* ITIMER_PROF sends only SIGPROF */
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

static int itimer_start(int signo, const struct duet_agent_event *ticks, const char **ret_why)
{
	int error;

	itimer.interval_ns = ticks->interval;
	itimer.taken_ns = clock_read(CLOCK_PROCESS_CPUTIME_ID);
	error = ticks->interval < 1000 ? -EINVAL : itimer_set(ticks->interval);
	if (error)
		*ret_why = "setitimer(ITIMER_PROF) refused the interval";
	return error;
}

/* If another profiler has replaced our handler, it has set the timer too. Then both are left alone. */
static void itimer_stop(void)
{
	if (!signals_have(SIGPROF))
		return;
	itimer_set(0);
	signals_leave(SIGPROF);
}

const struct agent_engine engine_itimer = {
	.id = DUET_ENGINE_ITIMER,
	.standalone = true,
	.take_signal = itimer_take_signal,
	.start = itimer_start,
	.stop = itimer_stop,
	.periods = itimer_periods,
};
