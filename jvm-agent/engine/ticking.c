/* SPDX-License-Identifier: MIT */
#include "engine/ticking.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "hotspot/clock.h"
#include "jvm/stay.h"
#include "libc_versions.h"
#include "locked.h"
#include "sample/pages.h"

#define FAILED (-1) /* handle of a thread for which no source could be made: it is not tried again */

/* Indexed by tid. Pages of unused ids cost nothing. */
struct ticking_thread {
	int handle; /* 0 = no source */
	unsigned int seen : 31; /* the last scan that found the thread */
	unsigned int listed : 1; /* is in ticking.tids */
};

static struct {
	pthread_mutex_t lock;
	const struct tick_source *source;
	bool running;
	struct ticking_thread *threads;
	int *tids; /* threads with a handle, and some that lost their handle since the last scan */
	size_t count;
	size_t room;
	unsigned int scan : 31;
	unsigned int made; /* sources made since the start */
	unsigned int failed; /* threads without a source, since the last scan */
	int error; /* error of the last of them */
	int signo;
} ticking = {.lock = PTHREAD_MUTEX_INITIALIZER};

int ticking_handle(int tid)
{
	struct ticking_thread *threads = __atomic_load_n(&ticking.threads, __ATOMIC_ACQUIRE);
	int handle = 0;

	if (threads && tid > 0 && tid < STAY_TIDS)
		handle = __atomic_load_n(&threads[tid].handle, __ATOMIC_RELAXED);
	return handle > 0 ? handle : 0;
}

uint64_t ticking_first(uint64_t interval)
{
	uint64_t hash = clock_ns() * 0x9e3779b97f4a7c15ull;

	return 1 + (hash >> 16) % interval;
}

/* Forgets the handle first: a handler that interrupts this thread here must not use what is being freed. */
static void remove_source(struct ticking_thread *thread)
{
	int handle = thread->handle;

	__atomic_store_n(&thread->handle, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (handle <= 0)
		return;
	ticking.source->stop(handle);
	if (ticking.source->free)
		ticking.source->free(handle);
}

static bool make_room(void)
{
	size_t room = ticking.room ? ticking.room * 2 : 64;
	int *tids;

	if (ticking.count < ticking.room)
		return true;
	tids = realloc(ticking.tids, room * sizeof(*tids));
	if (!tids)
		return false;
	ticking.tids = tids;
	ticking.room = room;
	return true;
}

static void count_failure(int error)
{
	ticking.failed++;
	ticking.error = error;
}

/* The handler must find the handle at the first tick. */
static void make_source(int tid, struct ticking_thread *thread)
{
	int handle = ticking.source->make(tid);

	if (handle == -ESRCH) /* the thread has ended */
		return;
	__atomic_store_n(&thread->handle, handle < 0 ? FAILED : handle, __ATOMIC_RELEASE);
	if (!thread->listed)
		ticking.tids[ticking.count++] = tid;
	thread->listed = 1;
	if (handle < 0)
		return count_failure(handle);
	ticking.source->start(handle);
	ticking.made++;
}

/* Called with the lock held. */
static void add_thread(int tid)
{
	if (tid <= 0 || tid >= STAY_TIDS || !ticking.running)
		return;
	ticking.threads[tid].seen = ticking.scan;
	if (ticking.threads[tid].handle)
		return;
	if (make_room())
		make_source(tid, &ticking.threads[tid]);
	else
		count_failure(-ENOMEM);
}

static void remove_unseen(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < ticking.count; i++) {
		int tid = ticking.tids[i];
		struct ticking_thread *thread = &ticking.threads[tid];

		if (thread->seen != ticking.scan)
			remove_source(thread);
		thread->listed = thread->handle != 0;
		if (thread->listed)
			ticking.tids[kept++] = tid;
	}
	ticking.count = kept;
}

/* Called with the lock held. */
static void scan_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	if (!tasks)
		return;
	ticking.scan++;
	while ((entry = readdir(tasks)) != NULL)
		add_thread(atoi(entry->d_name));
	remove_unseen();
	closedir(tasks);
}

/* Takes the pending ticks of the agent's own thread, which blocks all signals, and unblocks this one only here. */
static void take_own(void)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, ticking.signo);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
}

void ticking_rescan(struct stay *stay)
{
	LOCKED(&ticking.lock);

	take_own();
	scan_threads();
	duet_ring_count_all(stay->ring.page, DUET_AGENT_TIMER_FAILED, ticking.failed);
	ticking.failed = 0;
}

/* After a start that failed the table is still there. After a stop with a handler that never ended, it is lost. */
static bool make_table(void)
{
	struct ticking_thread *threads = ticking.count ? NULL : ticking.threads;

	ticking.count = 0;
	if (!threads)
		threads = pages_new(STAY_TIDS * sizeof(*threads));
	__atomic_store_n(&ticking.threads, threads, __ATOMIC_RELEASE);
	return threads;
}

int ticking_start(const struct tick_source *source, int signo)
{
	int error = 0;
	LOCKED(&ticking.lock);

	ticking.source = source;
	ticking.signo = signo;
	ticking.made = ticking.failed = 0;
	ticking.error = -ENOMEM;
	ticking.running = make_table();
	if (ticking.running)
		scan_threads();
	if (!ticking.made) {
		ticking.running = false;
		for (size_t i = 0; i < ticking.count; i++)
			ticking.threads[ticking.tids[i]] = (struct ticking_thread){0};
		ticking.count = 0;
		error = ticking.error;
	}
	return error;
}

void ticking_thread_start(int tid)
{
	LOCKED(&ticking.lock);

	add_thread(tid);
}

void ticking_thread_end(int tid)
{
	LOCKED(&ticking.lock);

	if (ticking.running && tid < STAY_TIDS)
		remove_source(&ticking.threads[tid]);
}

void ticking_stop(void)
{
	LOCKED(&ticking.lock);

	ticking.running = false;
	for (size_t i = 0; i < ticking.count; i++)
		if (ticking.threads[ticking.tids[i]].handle > 0)
			ticking.source->stop(ticking.threads[ticking.tids[i]].handle);
	take_own();
}

void ticking_release(void)
{
	struct ticking_thread *threads = ticking.threads;

	__atomic_store_n(&ticking.threads, NULL, __ATOMIC_RELAXED);
	for (size_t i = 0; i < ticking.count && ticking.source->free; i++)
		if (threads[ticking.tids[i]].handle > 0)
			ticking.source->free(threads[ticking.tids[i]].handle);
	pages_free(threads, STAY_TIDS * sizeof(*threads));
	free(ticking.tids);
	ticking.tids = NULL;
	ticking.count = ticking.room = 0;
}
