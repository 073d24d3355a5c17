/* SPDX-License-Identifier: MIT */
/*
 * A timer on each thread's CPU clock, which signals that thread. Timers are made by raw system calls: musl's
 * timer_create() does not support SIGEV_THREAD_ID, and glibc has no clock id for a thread that is only a tid.
 */
#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/ticking.h"
#include "hotspot/clock.h"

#define SIGNAL_THREAD_ID 4 /* SIGEV_THREAD_ID */

/* The kernel's struct sigevent. */
struct kernel_sigevent {
	union sigval value;
	int signo;
	int notify;
	int tid;
	int pad[11];
};
_Static_assert(sizeof(struct kernel_sigevent) == 64, "the kernel reads 64 bytes");

static struct {
	int signo;
	uint64_t interval_ns;
} ctimer;

static void set_time(struct timespec *time, uint64_t ns)
{
	time->tv_sec = (time_t)(ns / 1000000000u);
	time->tv_nsec = (long)(ns % 1000000000u);
}

/* The handle is the timer's id + 1: the first timer has the id 0. */
static int ctimer_make(int tid)
{
	struct kernel_sigevent event = {.signo = ctimer.signo, .notify = SIGNAL_THREAD_ID, .tid = tid};
	int id;

	if (syscall(SYS_timer_create, clock_of_thread(tid), &event, &id))
		return errno == EINVAL ? -ESRCH : -errno;
	return id + 1;
}

static void ctimer_set(int handle)
{
	struct itimerspec times;

	set_time(&times.it_interval, ctimer.interval_ns);
	set_time(&times.it_value, ticking_first(ctimer.interval_ns));
	syscall(SYS_timer_settime, handle - 1, 0, &times, NULL);
}

static void ctimer_delete(int handle)
{
	syscall(SYS_timer_delete, handle - 1);
}

static const struct tick_source timers = {
	.make = ctimer_make,
	.start = ctimer_set,
	.stop = ctimer_delete,
};

static int ctimer_start(int signo, const struct duet_agent_event *ticks, const char **ret_why)
{
	*ret_why = "no timer could be created on any thread's CPU clock";
	ctimer.signo = signo;
	ctimer.interval_ns = ticks->interval;
	return ticking_start(&timers, signo);
}

/* The kernel signals one expiry, and reports in si_overrun how many more there were. */
static uint64_t ctimer_periods(int tid, const siginfo_t *info)
{
	return info->si_code == SI_TIMER && info->si_overrun > 0 ? 1 + (uint64_t)info->si_overrun : 1;
}

const struct agent_engine engine_ctimer = {
	.id = DUET_ENGINE_CTIMER,
	.standalone = true,
	.take_signal = signals_take_realtime,
	.start = ctimer_start,
	.stop = ticking_stop,
	.release = ticking_release,
	.rescan = ticking_rescan,
	.thread_start = ticking_thread_start,
	.thread_end = ticking_thread_end,
	.periods = ctimer_periods,
};
