/* SPDX-License-Identifier: MIT */
/*
 * The time that threads have no CPU, where BPF does not see it. With the ticks of CPU time it is the wall clock.
 *
 * A thread of the agent looks at all others in turn. The time since the last look, without the CPU time that the thread
 * has used, is its time off the CPU, whatever it did meanwhile: so sums are exact, and only how they are spread over
 * stacks is sampled. A thread that has used no CPU time still sleeps where it slept: its stack is not walked again, and
 * its sleep is one sample in the end. Of any other thread, the look finds out whether it sleeps now, and walks its
 * stack from outside. Nobody is signalled or woken: calls that a signal would end with EINTR go on. A thread that runs
 * takes its wait for a CPU itself, as a sample of its next tick.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "jvm/stay.h"
#include "libc_versions.h"
#include "locked.h"
#include "own_thread.h"
#include "sample/pages.h"
#include "sample/regs.h"
#include "sample/sample.h"
#include "tap.h"
#include "wait/task.h"

#define THREAD_NAME "duet looks"
#define THREAD_STACK_BYTES (256u << 10)
/* The pause after a turn, at least: in times of the turn's CPU time, and for each thread. */
#define PAUSE_TIMES 50
#define PAUSE_NS 60000
/* A sleep so long is written before it is over: the JVM may be killed. */
#define UNWRITTEN_NS 60000000000ull
/* After this time, a stack whose walk has not reached the thread's entry is walked again: there may be rows now. */
#define POOR_NS 1000000000ull
/* Threads that have slept since the window's begin are walked so many in a turn, and one of 64 more; at its end all. */
#define FIRST_WALKS 8
#define BYTES_OF_TABLE (STAY_TIDS * sizeof(struct off_thread *))

struct off_thread {
	int tid;
	unsigned int scan; /* the last one that found it */
	bool found; /* the last look has found it asleep, or … */
	bool waits; /* … waiting for a CPU where it had slept */
	uintptr_t java_thread; /* 0: none, or not known */
	uint64_t counted_ns; /* until when its time is counted, off the CPU and on it */
	uint64_t cpu_ns; /* its CPU time until then */
	uint64_t waited_ns; /* how long it had waited for a CPU when that was read last */
	uint64_t since_ns; /* when it was found to sleep as it does */
	uint64_t off_ns; /* time off the CPU that is in no sample yet */
	uint64_t runnable_ns; /* the part of it in which the thread waited for a CPU */
	struct sample_kept *kept; /* the stack of its last sleep, or NULL */
};

static struct tap_event offcpu;

static struct {
	pthread_mutex_t lock; /* guards all members; held for one thread's look at a time */
	pthread_cond_t changed;
	bool runs;
	pthread_t looker;
	int looker_tid, agent_tid; /* they are not looked at */
	uint64_t window_ns; /* the begin of the window */
	uint64_t scanned_ns;
	unsigned int scan;
	struct off_thread **by_tid; /* NULL: closed */
	struct off_thread **all;
	size_t count, room;
} off = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- one thread; called with the lock held ---- */

static void write_sleep(struct stay *stay, struct off_thread *thread, uint64_t time_ns)
{
	struct duet_sample *sample = (struct duet_sample *)(thread->kept + 1);

	if (!thread->kept || !thread->off_ns)
		return;
	sample->runnable = lesser(thread->runnable_ns, thread->off_ns);
	sample->flags &= (uint16_t)~DUET_SAMPLE_IDLE;
	if (thread->found && !thread->waits && thread->since_ns <= off.window_ns)
		sample->flags |= DUET_SAMPLE_IDLE;
	sample_write_kept(stay, thread->kept, time_ns, thread->off_ns, SAMPLE_ROOM_MS);
	thread->off_ns = thread->runnable_ns = 0;
}

static struct tap_sample sample_from(uint64_t weight)
{
	return (struct tap_sample){.event = offcpu.index, .weight = weight, .is_off_cpu = true};
}

/*
 * Returns NULL if the thread has run meanwhile. A thread that has woken up and waits for a CPU is where it has slept,
 * but the kernel does not say where that is (pc 0): only its Java frames are known. Returns NULL if it has none.
 */
static struct sample_kept *keep(struct stay *stay, const struct off_thread *thread, const struct task_sleep *sleep,
				bool sleeps)
{
	struct tap_sample from = sample_from(0);
	struct sample_thread whose = {.java_thread = thread->java_thread, .tid = (uint32_t)thread->tid};
	const struct regs at = {.pc = sleep->pc, .sp = sleep->sp};
	struct state_attribute function;
	struct sample_kept *kept;

	if (sleep->function[0]) {
		from.attribute_bytes = state_attribute_set(&function, sleep->function);
		from.attributes = &function;
	}
	/* it may have ended, and its tid be another's */
	if (whose.java_thread && jvmstructs_thread_id(whose.java_thread) != thread->tid)
		whose.java_thread = 0;
	kept = sample_keep_sleeper(stay, &from, &whose, &at, malloc);
	if (kept && clock_read(clock_of_thread(thread->tid)) == thread->cpu_ns &&
	    (sleeps || ((const struct duet_sample *)(kept + 1))->user_depth))
		return kept;
	free(kept);
	return NULL;
}

/* Returns how long the thread has waited for a CPU since the last call, up to `most`. *ret_is_known: it is known. */
static uint64_t waited_since(struct off_thread *thread, uint64_t most, bool *ret_is_known)
{
	uint64_t now_ns = 0, since_ns = 0;

	*ret_is_known = task_waited(thread->tid, &now_ns);
	if (now_ns > thread->waited_ns)
		since_ns = now_ns - thread->waited_ns;
	thread->waited_ns = now_ns;
	return lesser(since_ns, most);
}

/* `kept`: its stack, which the thread owns from now on; `since_ns`: when it was awake last, as far as known. */
static void is_found(struct stay *stay, struct off_thread *thread, uint64_t now_ns, uint64_t since_ns, uint64_t off_ns,
		     struct sample_kept *kept, bool waits)
{
	bool is_known;
	uint64_t waited_ns = waited_since(thread, off_ns + thread->off_ns, &is_known), now_waits_ns = waited_ns;
	/* Of two looks that find its stack, each counts for half of the time between them. */
	uint64_t before_ns = thread->found ? off_ns / 2 : 0;

	if (thread->found) { /* who waits now has waited last */
		now_waits_ns = waits ? lesser(waited_ns, off_ns - before_ns) : 0;
		thread->off_ns += before_ns;
		thread->runnable_ns += waited_ns - now_waits_ns;
		thread->found = false;
		write_sleep(stay, thread, now_ns);
	}
	thread->off_ns += off_ns - before_ns;
	thread->runnable_ns = now_waits_ns;
	free(thread->kept);
	thread->kept = kept;
	thread->found = true;
	thread->waits = waits;
	thread->since_ns = since_ns;
}

/*
 * The thread runs, or its stack is not known. The time that it has slept since the last look is added to the sleep
 * before, or else to the next sleep that is found. The time that it has waited for a CPU is added to its next tick.
 */
static void goes_on(struct stay *stay, struct off_thread *thread, uint64_t now_ns, uint64_t off_ns, bool sleeps)
{
	bool is_known;
	uint64_t waited_ns = waited_since(thread, off_ns + thread->off_ns, &is_known);

	if (!is_known && !sleeps)
		waited_ns = off_ns;
	thread->since_ns = 0;
	thread->off_ns += off_ns - waited_ns;
	__atomic_fetch_add(&stay->waited_ns[thread->tid], waited_ns, __ATOMIC_RELAXED);
	if (thread->found) {
		thread->found = false;
		write_sleep(stay, thread, now_ns);
	}
}

static bool is_poor(const struct off_thread *thread)
{
	const struct duet_sample *sample = (const struct duet_sample *)(thread->kept + 1);

	return thread->off_ns >= POOR_NS && !(sample->flags & DUET_SAMPLE_USER_COMPLETE);
}

/*
 * CPU time that is ahead of the clock, because this thread had to wait between reading the two, is counted once.
 * *walks: how many threads may be walked that have not run since the last look. Others are always walked.
 */
static void look(struct stay *stay, struct off_thread *thread, uint64_t until_ns, size_t *walks)
{
	uint64_t cpu_ns = clock_read(clock_of_thread(thread->tid)), now_ns = clock_ns(), before_ns = thread->counted_ns;
	uint64_t ran_ns = cpu_ns - thread->cpu_ns, since_ns, off_ns;
	struct task_sleep sleep;
	struct sample_kept *kept;
	bool sleeps;

	if (now_ns > until_ns)
		now_ns = until_ns;
	if (cpu_ns < thread->cpu_ns) /* it has ended */
		return;
	off_ns = now_ns > before_ns + ran_ns ? now_ns - before_ns - ran_ns : 0;
	thread->counted_ns = before_ns + ran_ns + off_ns;
	thread->cpu_ns = cpu_ns;
	since_ns = ran_ns ? now_ns : thread->since_ns ? thread->since_ns : before_ns;
	if (!ran_ns && ((thread->found && !thread->waits && !is_poor(thread)) || !*walks)) {
		thread->off_ns += off_ns;
		thread->since_ns = since_ns;
		if (thread->found && thread->off_ns > UNWRITTEN_NS)
			write_sleep(stay, thread, now_ns);
		return;
	}
	*walks -= !ran_ns;
	sleeps = task_sleeps(thread->tid, &sleep);
	kept = keep(stay, thread, &sleep, sleeps);
	if (kept)
		is_found(stay, thread, now_ns, since_ns, off_ns, kept, !sleeps);
	else
		goes_on(stay, thread, now_ns, off_ns, sleeps);
}

/* Writes what is left: to the last sleep, or without a stack if this is the thread itself. */
static void write_rest(struct stay *stay, struct off_thread *thread, uint64_t time_ns, bool is_own)
{
	struct tap_sample from;
	uint64_t waited_ns;

	if (!thread->kept && !is_own)
		return;
	waited_ns = __atomic_exchange_n(&stay->waited_ns[thread->tid], 0, __ATOMIC_RELAXED);
	thread->off_ns += waited_ns;
	thread->runnable_ns += waited_ns;
	from = sample_from(thread->off_ns);
	if (thread->kept)
		write_sleep(stay, thread, time_ns);
	else if (thread->off_ns)
		sample_without_stack(stay, &from, time_ns);
}

/* ---- all threads ---- */

static struct off_thread *find_thread(int tid)
{
	return off.by_tid && tid > 0 && tid < STAY_TIDS ? off.by_tid[tid] : NULL;
}

static bool make_room(void)
{
	size_t room = off.room ? off.room * 2 : 64;
	struct off_thread **all;

	if (off.count < off.room)
		return true;
	all = realloc(off.all, room * sizeof(*all));
	if (!all)
		return false;
	off.all = all;
	off.room = room;
	return true;
}

/* Call with the lock held. `born_ns`: since when the thread is there, or is counted. Returns NULL without memory. */
static struct off_thread *add_thread(int tid, uint64_t born_ns, uint64_t cpu_ns)
{
	struct off_thread *thread = find_thread(tid);

	if (thread || !off.by_tid || tid <= 0 || tid >= STAY_TIDS || tid == off.looker_tid || tid == off.agent_tid ||
	    !make_room())
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->counted_ns = born_ns;
	thread->cpu_ns = cpu_ns;
	(void)task_waited(tid, &thread->waited_ns);
	thread->scan = off.scan;
	off.all[off.count++] = thread;
	off.by_tid[tid] = thread;
	return thread;
}

static void remove_thread(size_t index)
{
	struct off_thread *thread = off.all[index];

	off.all[index] = off.all[--off.count];
	off.by_tid[thread->tid] = NULL;
	free(thread->kept);
	free(thread);
}

static void look_at_all(struct stay *stay, uint64_t until_ns, size_t walks)
{
	bool is_more = stay;

	for (size_t i = 0; is_more; i++) {
		LOCKED(&off.lock);

		is_more = i < off.count;
		if (is_more)
			look(stay, off.all[i], until_ns, &walks);
	}
}

/* A thread that was born since the last scan is there since the middle between the two, on average. */
static void scan_threads(bool is_first)
{
	DIR *tasks = opendir("/proc/self/task");
	uint64_t now_ns = clock_ns(), born_ns = is_first ? now_ns : off.scanned_ns + (now_ns - off.scanned_ns) / 2;
	struct dirent *entry;

	off.scan += tasks != NULL;
	while (tasks && (entry = readdir(tasks)) != NULL) {
		int tid = atoi(entry->d_name);
		LOCKED(&off.lock);
		struct off_thread *thread =
			add_thread(tid, born_ns, is_first ? clock_read(clock_of_thread(tid)) : 0);

		if (thread)
			thread->scan = off.scan;
	}
	off.scanned_ns = now_ns;
	if (tasks)
		closedir(tasks);
}

static void rescan(void)
{
	STAY(stay);

	scan_threads(false);
	for (size_t i = off.count; stay && i-- > 0;) {
		LOCKED(&off.lock);

		if (i >= off.count || off.all[i]->scan == off.scan)
			continue;
		write_rest(stay, off.all[i], off.all[i]->counted_ns, false);
		remove_thread(i);
	}
}

/* Called on the thread itself when it starts or ends, and for each Java thread on the agent's. */
static void note_thread(int tid, uintptr_t java_thread)
{
	STAY(stay);
	LOCKED(&off.lock);
	struct off_thread *thread = find_thread(tid);
	size_t i = 0, walks = 0;

	if (stay && !thread && java_thread)
		thread = add_thread(tid, clock_ns(), clock_read(clock_of_thread(tid)));
	if (!stay || !thread)
		return;
	thread->java_thread = java_thread;
	if (java_thread)
		return;
	look(stay, thread, UINT64_MAX, &walks);
	write_rest(stay, thread, clock_ns(), true);
	while (off.all[i] != thread)
		i++;
	remove_thread(i);
}

/* ---- the thread that looks ---- */

/*
 * Looks at threads that have run use 2 % of a CPU at most, those at many that sleep less than 1 %. Periods of the same
 * length could keep pace with a program that does everything periodically.
 */
static uint64_t pause_ns(uint64_t cost_ns)
{
	uint64_t ns = offcpu.every.interval, hash = clock_ns() * 0x9e3779b97f4a7c15ull;

	if (ns < cost_ns * PAUSE_TIMES)
		ns = cost_ns * PAUSE_TIMES;
	if (ns < off.count * PAUSE_NS)
		ns = off.count * PAUSE_NS;
	return ns * 3 / 4 + (hash >> 16) % (ns / 2 + 1);
}

/* Call with the lock held. */
static void wait_for(uint64_t ns)
{
	uint64_t until_ns = clock_ns() + ns;
	const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
				       .tv_nsec = (long)(until_ns % 1000000000)};

	while (off.runs && !pthread_cond_timedwait(&off.changed, &off.lock, &until))
		;
}

static void *looker_main(void *unused)
{
	prctl(PR_SET_NAME, THREAD_NAME);
	pthread_mutex_lock(&off.lock);
	off.looker_tid = (int)syscall(SYS_gettid);
	while (off.runs) {
		uint64_t begun_ns = clock_read(CLOCK_THREAD_CPUTIME_ID);
		size_t walks = FIRST_WALKS + off.count / 64;

		pthread_mutex_unlock(&off.lock);
		{
			STAY(stay);

			look_at_all(stay, UINT64_MAX, walks);
		}
		pthread_mutex_lock(&off.lock);
		wait_for(pause_ns(clock_read(CLOCK_THREAD_CPUTIME_ID) - begun_ns));
	}
	pthread_mutex_unlock(&off.lock);
	return NULL;
}

/* It never calls the JVM. */
static int start_looker(void)
{
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&off.changed, &clock);
	pthread_condattr_destroy(&clock);
	off.runs = true;
	return -own_thread_start(&off.looker, THREAD_STACK_BYTES, looker_main, NULL);
}

static void stop_looker(void)
{
	pthread_mutex_lock(&off.lock);
	off.runs = false;
	pthread_cond_broadcast(&off.changed);
	pthread_mutex_unlock(&off.lock);
	pthread_join(off.looker, NULL);
	pthread_cond_destroy(&off.changed);
}

static void forget_all(void)
{
	LOCKED(&off.lock);

	while (off.count)
		remove_thread(off.count - 1);
	free(off.all);
	pages_free(off.by_tid, BYTES_OF_TABLE);
	off.all = NULL;
	off.by_tid = NULL;
	off.room = 0;
	off.looker_tid = 0;
}

/* ---- the tap ---- */

static int start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	STAY(stay);
	uint64_t *waited_ns = stay ? pages_new(STAY_TIDS * sizeof(*waited_ns)) : NULL;
	struct off_thread **by_tid = waited_ns ? pages_new(BYTES_OF_TABLE) : NULL;
	int error;

	*ret_why = "no memory for the table of threads";
	if (!by_tid) {
		pages_free(waited_ns, STAY_TIDS * sizeof(*waited_ns));
		return -ENOMEM;
	}
	off.agent_tid = (int)syscall(SYS_gettid);
	offcpu.index = event->index; /* before the first look */
	offcpu.every.interval = event->interval;
	stay->waited_event = event->index;
	__atomic_store_n(&stay->waited_ns, waited_ns, __ATOMIC_RELEASE);
	pthread_mutex_lock(&off.lock);
	off.by_tid = by_tid;
	pthread_mutex_unlock(&off.lock);
	off.window_ns = clock_ns();
	scan_threads(true);
	off.window_ns = clock_ns(); /* who sleeps all the time, does so since the scan */
	*ret_why = "no thread could be started that looks at the others";
	error = start_looker();
	if (error)
		forget_all();
	return error;
}

/* The looks may have been ahead. */
static void write_until(struct stay *stay, struct off_thread *thread, uint64_t ended_ns)
{
	uint64_t later_ns = thread->counted_ns > ended_ns ? lesser(thread->counted_ns - ended_ns, thread->off_ns) : 0;

	thread->off_ns -= later_ns;
	write_rest(stay, thread, ended_ns, false);
	thread->off_ns += later_ns;
	thread->found = false;
}

/* Writes what each thread has slept up to this time. Its stack is walked anew in the next window. */
static void flush(uint64_t ended_ns)
{
	STAY(stay);

	look_at_all(stay, ended_ns, SIZE_MAX);
	for (size_t i = 0; stay && i < off.count; i++) {
		LOCKED(&off.lock);

		if (i >= off.count)
			break;
		write_until(stay, off.all[i], ended_ns);
	}
	off.window_ns = ended_ns;
}

static void stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	STAY(stay);

	stop_looker();
	look_at_all(stay, ended_ns, SIZE_MAX);
	for (size_t i = 0; stay && i < off.count; i++) {
		LOCKED(&off.lock);

		if (i < off.count)
			write_rest(stay, off.all[i], ended_ns, false);
	}
	forget_all();
}

const struct agent_tap tap_offcpu = {
	.kind = DUET_AGENT_EVENT_OFFCPU,
	.event = &offcpu,
	.start = start,
	.stop = stop,
	.rescan = rescan,
	.flush = flush,
	.note_thread = note_thread,
};
