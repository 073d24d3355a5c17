/* SPDX-License-Identifier: MIT */
/*
 * A timer on each thread's CPU clock, which signals that thread. Timers are made by raw system calls: musl's
 * timer_create() does not support SIGEV_THREAD_ID, and glibc has no clock id for a thread of which only the tid is
 * known.
 *
 * Java threads get their timer in ThreadStart. All others (compiler, GC, native) are found by listing /proc/self/task
 * ten times a second.
 */
#include "clock.h"
#include "engine.h"
#include "libc_versions.h"
#include "pages.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TID_LIMIT (4 << 20) /* the kernel's PID_MAX_LIMIT */
#define SIGNAL_THREAD_ID 4 /* SIGEV_THREAD_ID */
#define CLOCK_OF_THREAD 6 /* CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED, include/linux/posix-timers.h */

/* The kernel's struct sigevent. */
struct kernel_sigevent {
	union sigval value;
	int signo;
	int notify;
	int tid;
	int pad[11];
};
_Static_assert(sizeof(struct kernel_sigevent) == 64, "the kernel reads 64 bytes");

/* Indexed by tid. Pages of unused ids cost nothing. */
struct thread_timer {
	int id_plus_1; /* 0 = no timer */
	unsigned int seen; /* the last scan that found the thread */
};

static struct {
	pthread_mutex_t lock;
	struct thread_timer *timers;
	int *tids; /* threads with a timer, and some that lost theirs since the last scan */
	size_t count;
	size_t room;
	unsigned int scan;
	unsigned int failed;
	int signo;
	uint64_t interval_ns;
} ctimer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void timer_remove(struct thread_timer *timer)
{
	if (timer->id_plus_1)
		syscall(SYS_timer_delete, timer->id_plus_1 - 1);
	timer->id_plus_1 = 0;
}

static void set_time(struct timespec *time, uint64_t ns)
{
	time->tv_sec = (time_t)(ns / 1000000000u);
	time->tv_nsec = (long)(ns % 1000000000u);
}

/*
 * Returns when the first tick comes: at a random point of the first interval. If it came after a whole interval,
 * threads that use less would never be seen, and all others would be credited half an interval too little. The current
 * time is random enough.
 */
static uint64_t first_ns(void)
{
	uint64_t hash = clock_ns() * 0x9e3779b97f4a7c15ull;

	return 1 + (hash >> 16) % ctimer.interval_ns;
}

static int timer_make(int tid)
{
	clockid_t clock = (clockid_t)((~(unsigned int)tid << 3) | CLOCK_OF_THREAD);
	struct kernel_sigevent event = {.signo = ctimer.signo, .notify = SIGNAL_THREAD_ID, .tid = tid};
	struct itimerspec times;
	int id;

	set_time(&times.it_interval, ctimer.interval_ns);
	set_time(&times.it_value, first_ns());
	if (syscall(SYS_timer_create, clock, &event, &id))
		return -errno;
	if (syscall(SYS_timer_settime, id, 0, &times, NULL)) {
		int error = -errno;

		syscall(SYS_timer_delete, id);
		return error;
	}
	ctimer.timers[tid].id_plus_1 = id + 1;
	return 0;
}

static bool make_room(void)
{
	size_t room = ctimer.room ? ctimer.room * 2 : 64;
	int *tids;

	if (ctimer.count < ctimer.room)
		return true;
	tids = realloc(ctimer.tids, room * sizeof(*tids));
	if (!tids)
		return false;
	ctimer.tids = tids;
	ctimer.room = room;
	return true;
}

/* Called with the lock held. A thread that has ended meanwhile is no failure. */
static void add_thread(int tid)
{
	struct thread_timer *timer;
	int error;

	if (tid <= 0 || tid >= TID_LIMIT || !ctimer.timers)
		return;
	timer = &ctimer.timers[tid];
	timer->seen = ctimer.scan;
	if (timer->id_plus_1)
		return;
	error = make_room() ? timer_make(tid) : -ENOMEM;
	if (!error)
		ctimer.tids[ctimer.count++] = tid;
	else if (error != -ESRCH && error != -EINVAL)
		ctimer.failed++;
}

static void remove_unseen(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < ctimer.count; i++) {
		int tid = ctimer.tids[i];
		struct thread_timer *timer = &ctimer.timers[tid];

		if (timer->seen != ctimer.scan)
			timer_remove(timer);
		if (timer->id_plus_1)
			ctimer.tids[kept++] = tid;
	}
	ctimer.count = kept;
}

/*
 * Takes the pending ticks of the agent's own thread. The thread blocks signals, so that none interrupts its system
 * calls, and unblocks this one only here.
 */
static void take_own(void)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, ctimer.signo);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
}

static unsigned int ctimer_rescan(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned int failed;

	take_own();
	pthread_mutex_lock(&ctimer.lock);
	ctimer.scan++;
	while (tasks && (entry = readdir(tasks)) != NULL)
		add_thread(atoi(entry->d_name));
	if (tasks)
		remove_unseen();
	failed = ctimer.failed;
	ctimer.failed = 0;
	pthread_mutex_unlock(&ctimer.lock);
	if (tasks)
		closedir(tasks);
	return failed;
}

static void ctimer_stop(void)
{
	pthread_mutex_lock(&ctimer.lock);
	for (size_t i = 0; i < ctimer.count; i++)
		timer_remove(&ctimer.timers[ctimer.tids[i]]);
	pages_free(ctimer.timers, TID_LIMIT * sizeof(*ctimer.timers));
	free(ctimer.tids);
	ctimer.timers = NULL;
	ctimer.tids = NULL;
	ctimer.count = ctimer.room = 0;
	pthread_mutex_unlock(&ctimer.lock);
	take_own();
}

static int ctimer_start(int signo, uint64_t interval_ns, const char **ret_why)
{
	void *timers = pages_new(TID_LIMIT * sizeof(*ctimer.timers));

	*ret_why = "no memory for the table of timers";
	if (!timers)
		return -errno;
	pthread_mutex_lock(&ctimer.lock);
	ctimer.timers = timers;
	ctimer.signo = signo;
	ctimer.interval_ns = interval_ns;
	pthread_mutex_unlock(&ctimer.lock);
	*ret_why = "no timer could be created on any thread's CPU clock";
	ctimer_rescan();
	if (ctimer.count)
		return 0;
	ctimer_stop();
	return -EPERM;
}

static void ctimer_thread_start(int tid)
{
	pthread_mutex_lock(&ctimer.lock);
	add_thread(tid);
	pthread_mutex_unlock(&ctimer.lock);
}

static void ctimer_thread_end(int tid)
{
	pthread_mutex_lock(&ctimer.lock);
	if (ctimer.timers && tid < TID_LIMIT)
		timer_remove(&ctimer.timers[tid]);
	pthread_mutex_unlock(&ctimer.lock);
}

/* The kernel signals one expiry, and reports in si_overrun how many more there were. */
static uint64_t ctimer_periods(const siginfo_t *info)
{
	return info->si_code == SI_TIMER && info->si_overrun > 0 ? 1 + (uint64_t)info->si_overrun : 1;
}

const struct agent_engine engine_ctimer = {
	.id = DUET_ENGINE_CTIMER,
	.standalone = true,
	.take_signal = engine_take_realtime,
	.start = ctimer_start,
	.stop = ctimer_stop,
	.rescan = ctimer_rescan,
	.thread_start = ctimer_thread_start,
	.thread_end = ctimer_thread_end,
	.periods = ctimer_periods,
};
