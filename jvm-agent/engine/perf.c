/* SPDX-License-Identifier: MIT */
/*
 * A perf event on each thread, as the user may open it, which signals that thread. At each tick the kernel writes its
 * own frames into the event's ring; the handler reads them there. It counts CPU time, or page faults in its place. Not
 * context switches: the signal would wake a thread that goes to sleep, and end its system call with EINTR.
 *
 * The event counts time in the kernel too, which needs kernel.perf_event_paranoid <= 1 or CAP_PERFMON. With 2 there
 * would be no ticks in the kernel: of a thread that spends half of its time there, half of the time would be missing.
 *
 * The event says when to sample. How much a sample accounts for, the event's own count says for page faults, and the
 * thread's CPU clock for CPU time. For that the event runs only
 * between the scheduler's hooks: of a thread that sleeps every 100 us it misses a sixth of the CPU time. And ticks in
 * the kernel are lost when the ring is full.
 *
 * The signal is SIGURG. A real-time signal would be queued at each tick, without limit while a thread blocks it. When
 * the user may queue no more (RLIMIT_SIGPENDING), the kernel sends SIGIO instead, which ends the process. It would also
 * end a program that the JVM executes in its place, if a tick came during execve(). SIGURG is never queued twice, and
 * ignored by default.
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/ticking.h"
#include "hotspot/clock.h"
#include "jvm/stay.h"
#include "sample/pages.h"
#include "sample/perf_ring.h"

#define DESCRIPTORS_MOST (1u << 20)

/* Used by the handler of this thread. */
struct perf_thread {
	struct perf_event_mmap_page *ring; /* NULL: no kernel frames */
	uint64_t taken; /* CPU time in ns, or page faults, that samples account for so far */
	bool ticked; /* the first tick, which comes after a part of an interval, is over */
};

static struct {
	struct perf_thread *threads; /* indexed by descriptor, which is the thread's handle */
	int descriptors; /* only descriptors below this number are used: the JVM needs the others */
	bool is_clock; /* false: the ticks are page faults */
	uint64_t interval; /* ns, or page faults */
	unsigned int without_ring; /* threads without a ring, since the last scan */
} perf;

static uint64_t counted(int tid, int fd)
{
	uint64_t count;

	if (perf.is_clock)
		return clock_read(clock_of_thread(tid));
	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static int open_event(int tid, uint64_t first)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = perf.is_clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = first,
		.sample_type = PERF_RING_SAMPLES,
		.disabled = 1,
		.exclude_callchain_user = 1, /* our own walk knows Java */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= perf.descriptors) {
		close((int)fd);
		return -EMFILE;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* Returns NULL above kernel.perf_event_mlock_kb. The kernel does not copy the ring to children of fork(). */
static struct perf_event_mmap_page *map_ring(int fd)
{
	void *ring = mmap(NULL, perf_ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (ring != MAP_FAILED)
		return ring;
	__atomic_fetch_add(&perf.without_ring, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void perf_free(int fd)
{
	if (perf.threads[fd].ring)
		munmap(perf.threads[fd].ring, perf_ring_bytes());
	close(fd);
}

/* `taken`: at the first tick, one interval is due. */
static int perf_make(int tid)
{
	uint64_t first = ticking_first(perf.interval);
	int fd = open_event(tid, first), error;
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};

	if (fd < 0)
		return fd;
	perf.threads[fd] = (struct perf_thread){
		.ring = map_ring(fd),
		.taken = counted(tid, fd) + first - perf.interval,
	};
	if (!fcntl(fd, F_SETOWN_EX, &owner) && !fcntl(fd, F_SETSIG, SIGURG) && !fcntl(fd, F_SETFL, O_ASYNC))
		return fd;
	error = -errno;
	perf_free(fd);
	return error;
}

/* The event stops after the first tick, and the handler starts it again with the whole interval. */
static void perf_begin(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
}

static void perf_end(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

static const struct tick_source events = {
	.make = perf_make,
	.start = perf_begin,
	.stop = perf_end,
	.free = perf_free,
};

static struct perf_thread *thread_of(int tid)
{
	int fd = ticking_handle(tid);

	return fd ? &perf.threads[fd] : NULL;
}

/*
 * There are no ticks until perf_handled(): with a short interval, a tick in each handler would leave the thread no time
 * of its own. Rounds the time: the handler runs a little later than the tick, and the delay varies. What one signal
 * gets too much or too little, the next one gets less or more.
 */
static uint64_t perf_periods(int tid, const siginfo_t *info)
{
	struct perf_thread *thread = thread_of(tid);
	uint64_t now, periods;

	(void)info; /* one signal may stand for many ticks, and does not say how many */
	if (!thread)
		return 0;
	perf_end(ticking_handle(tid));
	now = counted(tid, ticking_handle(tid)) + (perf.is_clock ? perf.interval / 2 : 0);
	periods = (int64_t)(now - thread->taken) > 0 ? (now - thread->taken) / perf.interval : 0;
	thread->taken += periods * perf.interval;
	return periods;
}

static bool perf_next_tick(int tid, uint64_t until_ns, struct kernel_stack *ret)
{
	struct perf_thread *thread = thread_of(tid);

	ret->depth = 0;
	ret->time_ns = 0;
	return thread && thread->ring && perf_ring_take(thread->ring, until_ns, ret);
}

static void perf_handled(int tid)
{
	struct perf_thread *thread = thread_of(tid);
	int fd = ticking_handle(tid);

	if (!thread)
		return;
	if (thread->ring)
		perf_ring_clear(thread->ring);
	if (!thread->ticked)
		ioctl(fd, PERF_EVENT_IOC_PERIOD, &perf.interval);
	thread->ticked = true;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static const char *reason_of(int error)
{
	if (error == -EACCES)
		return "kernel.perf_event_paranoid forbids perf events that see the kernel";
	if (error == -EPERM || error == -ENOSYS)
		return "perf_event_open() is refused: a seccomp filter or a security module forbids it";
	if (error == -EMFILE)
		return "the JVM may not open as many files as it has threads";
	return "perf_event_open() failed for every thread";
}

/* The array is kept for good: handlers may read it at any time. */
static int perf_start(int signo, const struct duet_agent_event *ticks, const char **ret_why)
{
	struct rlimit limit;
	int error;

	*ret_why = "no memory for the table of perf events";
	if (!perf.threads) {
		perf.threads = pages_new(DESCRIPTORS_MOST * sizeof(*perf.threads));
		if (!perf.threads)
			return -ENOMEM;
	}
	perf.descriptors = DESCRIPTORS_MOST;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 4 * 3 < DESCRIPTORS_MOST)
		perf.descriptors = (int)(limit.rlim_cur / 4 * 3); /* leaves a quarter to the JVM */
	perf.is_clock = ticks->kind == DUET_AGENT_EVENT_CLOCK;
	perf.interval = ticks->interval;
	error = ticking_start(&events, signo);
	*ret_why = reason_of(error);
	return error;
}

static int perf_take_signal(int wanted, const char **ret_why)
{
	int signo = signals_take(SIGURG);

	(void)wanted; /* no other signal is as harmless as SIGURG */
	if (signo < 0)
		*ret_why = "SIGURG is in use in this JVM";
	return signo;
}

static void perf_stop(void)
{
	ticking_stop();
	signals_leave(SIGURG);
}

static void perf_rescan(struct stay *stay)
{
	ticking_rescan(stay);
	duet_ring_count_all(stay->ring.page, DUET_AGENT_NO_KERNEL_RING,
			    __atomic_exchange_n(&perf.without_ring, 0, __ATOMIC_RELAXED));
}

const struct agent_engine engine_perf = {
	.id = DUET_ENGINE_PERF,
	.counts = true,
	.standalone = true,
	.instead = &engine_ctimer,
	.take_signal = perf_take_signal,
	.start = perf_start,
	.stop = perf_stop,
	.release = ticking_release,
	.rescan = perf_rescan,
	.thread_start = ticking_thread_start,
	.thread_end = ticking_thread_end,
	.periods = perf_periods,
	.next_tick = perf_next_tick,
	.handled = perf_handled,
};
