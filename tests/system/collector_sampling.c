/* SPDX-License-Identifier: MIT */
/*
 * The kernel half with C processes of which the truth is known: how much CPU time they used, and where their signal
 * handler found them. Needs the right to use BPF; without it, says why and skips.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/tables/unwind_tables.h"
#include "event/options.h"
#include "proc/process.h"
#include "system/collector_or_skip.h"
#include "system/precedence.h"

#define MAX_HITS 200000u
#define ODD_NS (997 * NS_PER_US) /* not in step with the scheduler, whose ticks end the turns on a busy machine */
#define THREADS 2
#define SIGNO (SIGRTMIN + 5)
#ifdef __x86_64__
#define SYSCALL_BYTES 2 /* of the instruction, which a restarted call runs again */
#else
#define SYSCALL_BYTES 4
#endif

/* What the handler saw. The handler runs in the child; the test reads this. */
struct hit {
	uint64_t time_ns;
	uint64_t cookie;
	uint64_t pc;
	uint64_t sp;
	uint32_t tid;
};

struct shared {
	uint32_t count;
	uint32_t ready; /* set by the child: its handler is installed */
	uint32_t go; /* set by the test: burn time from here */
	uint32_t stop;
	uint32_t interrupted; /* system calls that returned EINTR */
	uint64_t missed_ns; /* time in which no ticks could come, see compute_and_look() */
	struct hit hits[MAX_HITS];
};

struct sample {
	uint64_t time_ns;
	uint64_t cookie;
	uint64_t pc;
	uint64_t sp;
	uint32_t tid;
	uint16_t flags;
	uint16_t no_signal;
	uint16_t kernel_depth;
	uint16_t user_depth;
};

struct recording {
	struct vec(struct sample) samples;
	unsigned execs;
	unsigned exits;
	uint64_t bad;
};

struct child {
	pid_t pid;
	struct shared *shared;
};

/* ---- the child that is observed ---- */

static struct shared *own;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	uint32_t index = __atomic_fetch_add(&own->count, 1, __ATOMIC_RELAXED);
	struct hit *hit = &own->hits[index];

	if (index >= MAX_HITS)
		return;
	hit->time_ns = clock_monotonic_ns();
	hit->cookie = (uint64_t)info->si_value.sival_ptr;
	hit->tid = (uint32_t)gettid();
#ifdef __x86_64__
	hit->pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	hit->sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
#else
	hit->pc = uc->uc_mcontext.pc;
	hit->sp = uc->uc_mcontext.sp;
#endif
}

static void other_handler(int signo)
{
	__atomic_fetch_add(&own->count, 1, __ATOMIC_RELAXED);
}

static void install(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGNO, &action, NULL);
}

static bool stopped(void)
{
	return __atomic_load_n(&own->stop, __ATOMIC_RELAXED);
}

static void *compute(void *unused)
{
	volatile uint64_t sum = 0;

	while (!stopped())
		for (unsigned i = 0; i < 100000; i++)
			sum += i;
	return unused;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

/*
 * While the host of a virtual machine runs something else on its CPU, the CPU stands still, and the kernel may count
 * that as the thread's CPU time. Then the thread's clock jumps between two looks, and ticks that were due meanwhile
 * come as one. How many were due depends on when the jump began. So this sums the time beyond one tick.
 */
static void *compute_and_look(void *unused)
{
	volatile uint64_t sum = 0;
	uint64_t before = thread_cpu_ns(), now, missed_ns = 0;

	for (; !stopped(); before = now) {
		for (unsigned i = 0; i < 10000; i++)
			sum += i;
		now = thread_cpu_ns();
		missed_ns += now - before > ODD_NS ? now - before - ODD_NS : 0;
	}
	__atomic_fetch_add(&own->missed_ns, missed_ns, __ATOMIC_RELAXED);
	return unused;
}

static void *read_and_compute(void *unused)
{
	volatile uint64_t sum = 0;
	char bytes[16384];
	FILE *zero = fopen("/dev/zero", "r");

	while (!stopped()) {
		if (read(fileno(zero), bytes, sizeof(bytes)) < 0 && errno == EINTR)
			own->interrupted++;
		for (unsigned i = 0; i < 2000; i++)
			sum += i;
	}
	fclose(zero);
	return unused;
}

/* Each thread blocks until the other has answered, in reads that the signal interrupts and the kernel restarts. */
static int ping_fds[2], pong_fds[2];

static void *ping_pong(void *leads)
{
	int in = leads ? pong_fds[0] : ping_fds[0];
	int out = leads ? ping_fds[1] : pong_fds[1];
	char c = 1;

	if (leads && write(out, &c, 1) != 1)
		return NULL;
	while (!stopped())
		if (read(in, &c, 1) != 1 || write(out, &c, 1) != 1)
			own->interrupted++;
	return write(out, &c, 1) == 1 ? own : NULL; /* the other thread may be waiting */
}

static void *poll_nothing(void *unused)
{
	struct pollfd none = {.fd = -1};

	while (!stopped())
		if (poll(&none, 1, 0) < 0 && errno == EINTR)
			own->interrupted++;
	return unused;
}

static void wait_for(const uint32_t *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void ready(void)
{
	__atomic_store_n(&own->ready, 1, __ATOMIC_RELEASE);
	wait_for(&own->go);
}

static void run_threads(void *(*body)(void *))
{
	pthread_t threads[THREADS];

	ready();
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, body, i ? own : NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static void busy_main(void)
{
	take_precedence();
	run_threads(compute_and_look);
}

static void handler_main(void)
{
	install(on_signal);
	run_threads(read_and_compute);
}

static void ping_pong_main(void)
{
	install(on_signal);
	if (pipe(ping_fds) == 0 && pipe(pong_fds) == 0)
		run_threads(ping_pong);
	_exit(1);
}

static void stolen_main(void)
{
	signal(SIGNO, other_handler);
	run_threads(compute);
}

static void blocked_main(void)
{
	sigset_t set;

	install(on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGNO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	run_threads(compute);
}

static void poll_main(void)
{
	install(on_signal);
	run_threads(poll_nothing);
}

static void exec_main(void)
{
	uint64_t end;

	install(on_signal);
	ready();
	for (end = clock_monotonic_ns() + NS_PER_MS; clock_monotonic_ns() < end;)
		;
	execl("/bin/true", "true", (char *)NULL);
	_exit(127);
}

/* ---- the process that observes ---- */

static struct shared *map_shared(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(shared, MAP_FAILED);
	return shared;
}

static void child_start(struct child *child, void (*body)(void))
{
	memset(child->shared, 0, offsetof(struct shared, hits));
	own = child->shared;
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0)
		body();
	wait_for(&child->shared->ready);
}

static void child_go(struct child *child)
{
	__atomic_store_n(&child->shared->go, 1, __ATOMIC_RELEASE);
}

/* CPU time of the child in nanoseconds; fails the test when it was killed. */
static uint64_t child_stop(struct child *child)
{
	struct rusage usage;
	int status;

	__atomic_store_n(&child->shared->stop, 1, __ATOMIC_RELAXED);
	child_go(child);
	assert_int_equal(wait4(child->pid, &status, 0, &usage), child->pid);
	if (WIFSIGNALED(status))
		print_error("child killed by signal %d\n", WTERMSIG(status));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return ((uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		(uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)) *
	       1000;
}

/* Opens the collector for one child, or with NULL for every process. */
static struct collector *open_or_skip(const struct child *child, uint64_t interval_ns, bool no_cookie)
{
	const struct event_list events = {{{.event = event_by_name("cpu"), .interval = interval_ns}}, 1};
	const struct options asked = {.interval_pairing = no_cookie};
	struct collector_options options = {
		.asked = &asked,
		.events = &events,
		.user_depth = DUET_MAX_STACK,
		.targets = child ? &child->pid : NULL,
		.target_count = 1,
	};

	return collector_or_skip(&options);
}

static void keep(void *context, const struct duet_record *record)
{
	const struct duet_sample *sample = (const void *)record;
	struct recording *recording = context;

	if (record->type == DUET_RECORD_EXEC)
		recording->execs++;
	else if (record->type == DUET_RECORD_EXIT)
		recording->exits++;
	else
		vec_push(&recording->samples, (struct sample){
						      .time_ns = record->time_ns,
						      .tid = record->tid,
						      .cookie = sample->cookie,
						      .pc = sample->user_pc,
						      .sp = sample->user_sp,
						      .flags = sample->flags,
						      .no_signal = sample->no_signal,
						      .kernel_depth = sample->kernel_depth,
						      .user_depth = sample->user_depth,
					      });
}

static void drain(struct collector *collector, struct recording *recording)
{
	int count;

	do {
		count = collector_read(collector, keep, recording, 1000, &recording->bad);
		assert_true(count >= 0);
	} while (count == 1000);
}

static void record_for(struct collector *collector, struct recording *recording, uint64_t ns)
{
	uint64_t end = clock_monotonic_ns() + ns;

	while (clock_monotonic_ns() < end) {
		usleep(50000);
		drain(collector, recording);
	}
}

static void allow(struct collector *collector, pid_t pid, void *handler)
{
	struct duet_jvm_target target = {.handler = (uintptr_t)handler, .signo = (uint32_t)SIGNO};

	assert_int_equal(process_read_start_ticks(pid, &target.start_ticks), 0);
	assert_int_equal(collector_allow(collector, pid, &target), 0);
}

static void print_cost(const struct collector *collector)
{
	struct duet_cost cost;

	assert_int_equal(collector_cost(collector, COLLECTOR_ALL_EVENTS, &cost), 0);
	if (cost.runs)
		print_message("%llu runs of the program, %llu ns each\n", (unsigned long long)cost.runs,
			      (unsigned long long)(cost.run_ns / cost.runs));
}

/* Returns what the handler of this thread saw first at or after the sample, or with the sample's cookie. */
static const struct hit *find_hit(const struct shared *shared, const struct sample *sample, bool by_cookie)
{
	uint32_t count = shared->count < MAX_HITS ? shared->count : MAX_HITS;

	for (uint32_t i = 0; i < count; i++) {
		const struct hit *hit = &shared->hits[i];

		if (hit->tid != sample->tid)
			continue;
		if (by_cookie ? hit->cookie == sample->cookie : hit->time_ns >= sample->time_ns)
			return hit;
	}
	return NULL;
}

struct outcome {
	unsigned signalled, kernel, missing, restarted, different, not_signalled;
};

static bool is_restarted(const struct hit *hit, const struct sample *sample)
{
	return sample->flags & DUET_SAMPLE_KERNEL && hit->sp == sample->sp && hit->pc == sample->pc - SYSCALL_BYTES;
}

static void compare_one(struct outcome *outcome, const struct sample *sample, const struct hit *hit)
{
	outcome->signalled++;
	outcome->kernel += !!(sample->flags & DUET_SAMPLE_KERNEL);
	if (!hit)
		outcome->missing++;
	else if (is_restarted(hit, sample))
		outcome->restarted++;
	else
		outcome->different += hit->pc != sample->pc || hit->sp != sample->sp;
}

static struct outcome compare(const struct recording *recording, const struct shared *shared, bool by_cookie)
{
	struct outcome outcome = {0};

	for (size_t i = 0; i < recording->samples.len; i++) {
		const struct sample *sample = &recording->samples.items[i];

		if (sample->flags & DUET_SAMPLE_SIGNALLED)
			compare_one(&outcome, sample, find_hit(shared, sample, by_cookie));
		else
			outcome.not_signalled++;
	}
	return outcome;
}

/* ---- tests ---- */

/* Records the child for a while; its own values stay in child->shared. Returns its CPU time. */
static uint64_t record_child(struct collector *collector, struct child *child, struct recording *recording, uint64_t ns)
{
	uint64_t cpu_ns;

	assert_int_equal(collector_start(collector), 0);
	child_go(child);
	record_for(collector, recording, ns);
	cpu_ns = child_stop(child);
	collector_stop(collector);
	drain(collector, recording);
	assert_int_equal(recording->bad, 0);
	return cpu_ns;
}

/*
 * BPF samples CPUs: n ticks of threads that had a CPU for a part p of the time have a standard error of sqrt(n (1 -
 * p)). Five times that occurs once in two million runs.
 */
static bool is_chance(double error_ns, double cpu_ns, double wall_ns)
{
	double idle = 1 - cpu_ns / wall_ns / THREADS;

	return error_ns <= 0 || error_ns * error_ns <= 25.0 * ODD_NS * cpu_ns * (idle > 0 ? idle : 0);
}

static void samples_add_up_to_cpu_time(void **state)
{
	struct child child = {.shared = *state};
	struct recording recording = {0};
	struct collector *collector;
	uint64_t cpu_ns, sampled_ns, wall_ns;
	double error_ns;

	child_start(&child, busy_main);
	collector = open_or_skip(&child, ODD_NS, false);
	wall_ns = clock_monotonic_ns();
	cpu_ns = record_child(collector, &child, &recording, 2 * NS_PER_SEC);
	wall_ns = clock_monotonic_ns() - wall_ns;
	sampled_ns = recording.samples.len * ODD_NS + child.shared->missed_ns;
	print_message("CPU time %.3f s, samples %.3f s, %.3f s of them of ticks that could not come: %.2f %%\n",
		      cpu_ns / 1e9, sampled_ns / 1e9, child.shared->missed_ns / 1e9, 100.0 * sampled_ns / cpu_ns);
	print_cost(collector);
	error_ns = (double)llabs((long long)(sampled_ns - cpu_ns));
	assert_true(is_chance(error_ns - 0.03 * (double)cpu_ns, (double)cpu_ns, (double)wall_ns));
	assert_int_equal(recording.exits, 1);
	collector_close(collector);
	vec_release(&recording.samples);
}

static void handler_sees_what_was_sampled(void **state, void (*body)(void), bool by_cookie)
{
	struct child child = {.shared = *state};
	struct recording recording = {0};
	struct collector *collector;
	struct outcome outcome;

	child_start(&child, body);
	collector = open_or_skip(&child, NS_PER_MS, !by_cookie);
	if (by_cookie && !collector_facts(collector).uses_cookie) {
		collector_close(collector);
		child_stop(&child);
		print_message("skipped: no cookies before Linux 6.13\n");
		skip();
	}
	allow(collector, child.pid, on_signal);
	record_child(collector, &child, &recording, 3 * NS_PER_SEC);
	outcome = compare(&recording, child.shared, by_cookie);
	print_message("%s: %u signalled, %u of them in the kernel: %u without a record, %u different, %u restarted; "
		      "%u not signalled\n",
		      by_cookie ? "cookie" : "interval", outcome.signalled, outcome.kernel, outcome.missing,
		      outcome.different, outcome.restarted, outcome.not_signalled);
	print_cost(collector);
	assert_true(outcome.signalled > 100 && outcome.kernel > 10);
	assert_int_equal(outcome.missing, 0);
	/* one may differ by chance */
	assert_true((outcome.different - (outcome.different > 0)) * 1000 <= outcome.signalled);
	assert_int_equal(child.shared->interrupted, 0);
	collector_close(collector);
	vec_release(&recording.samples);
}

static void cookie_pairs(void **state)
{
	handler_sees_what_was_sampled(state, handler_main, true);
}

static void interval_pairs(void **state)
{
	handler_sees_what_was_sampled(state, handler_main, false);
}

/* The handler finds a blocking call about to run again, one instruction before the sample's pc. */
static void restarted_calls_step_back(void **state)
{
	handler_sees_what_was_sampled(state, ping_pong_main, false);
}

/* All samples have this reason, and no handler ever ran. */
static void never_signalled(void **state, void (*body)(void), enum duet_no_signal why)
{
	struct child child = {.shared = *state};
	struct recording recording = {0};
	struct collector *collector;
	unsigned refused = 0;

	child_start(&child, body);
	collector = open_or_skip(&child, NS_PER_MS, false);
	allow(collector, child.pid, on_signal);
	record_child(collector, &child, &recording, NS_PER_SEC / 2);
	for (size_t i = 0; i < recording.samples.len; i++)
		refused += recording.samples.items[i].no_signal == why;
	print_message("%u of %zu refused\n", refused, recording.samples.len);
	assert_true(refused > 10);
	assert_int_equal(child.shared->interrupted, 0);
	if (why != DUET_NO_SIGNAL_SYSCALL)
		assert_int_equal(child.shared->count, 0);
	collector_close(collector);
	vec_release(&recording.samples);
}

static void stolen_handler_is_left_alone(void **state)
{
	never_signalled(state, stolen_main, DUET_NO_SIGNAL_STOLEN);
}

static void blocked_signal_is_not_sent(void **state)
{
	never_signalled(state, blocked_main, DUET_NO_SIGNAL_BLOCKED);
}

static void poll_is_not_interrupted(void **state)
{
	never_signalled(state, poll_main, DUET_NO_SIGNAL_SYSCALL);
}

static void strangers_get_no_signal(void **state)
{
	struct child child = {.shared = *state};
	struct recording recording = {0};
	struct collector *collector;

	child_start(&child, handler_main);
	collector = open_or_skip(NULL, NS_PER_MS, false);
	record_child(collector, &child, &recording, NS_PER_SEC / 2);
	assert_true(recording.samples.len > 100);
	assert_int_equal(child.shared->count, 0);
	collector_close(collector);
	vec_release(&recording.samples);
}

/* After exec there is no handler, so a signal that arrives then would kill the new program. */
static void exec_kills_nobody(void **state)
{
	struct child child = {.shared = *state};
	struct recording recording = {0};
	struct collector *collector = open_or_skip(NULL, 100 * NS_PER_US, false);

	assert_int_equal(collector_start(collector), 0);
	for (unsigned i = 0; i < 300; i++) {
		child_start(&child, exec_main);
		allow(collector, child.pid, on_signal);
		child_go(&child);
		child_stop(&child);
		assert_int_equal(collector_forbid(collector, child.pid), -ENOENT);
		drain(collector, &recording);
	}
	print_message("300 execs under 10 kHz, %u execs and %u exits reported\n", recording.execs, recording.exits);
	assert_true(recording.execs >= 300 && recording.exits >= 300);
	collector_close(collector);
	vec_release(&recording.samples);
}

static void note_exec(void *context, const struct duet_record *record)
{
	pid_t *pid = context;

	if (record->type == DUET_RECORD_EXEC && (pid_t)record->tgid == *pid)
		*pid = 0;
}

/* Whatever is known of the process elsewhere, those with tables are the loader's. */
static void exec_of_a_process_with_tables_is_reported(void **state)
{
	struct child child = {.shared = *state};
	struct collector *collector = open_or_skip(NULL, 1000 * NS_PER_SEC, false);
	uint64_t ticks, bad = 0;

	child_start(&child, exec_main);
	assert_int_equal(process_read_start_ticks(child.pid, &ticks), 0);
	assert_int_equal(unwind_tables_publish(collector_facts(collector).tables, child.pid, ticks, NULL, 0), 0);
	child_go(&child);
	child_stop(&child);
	assert_true(collector_read(collector, note_exec, &child.pid, INT32_MAX, &bad) > 0);
	assert_int_equal(child.pid, 0);
	collector_close(collector);
}

static int make_shared(void **state)
{
	*state = map_shared();
	return 0;
}

static int drop_shared(void **state)
{
	return munmap(*state, sizeof(struct shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_add_up_to_cpu_time),
		cmocka_unit_test(cookie_pairs),
		cmocka_unit_test(interval_pairs),
		cmocka_unit_test(restarted_calls_step_back),
		cmocka_unit_test(stolen_handler_is_left_alone),
		cmocka_unit_test(blocked_signal_is_not_sent),
		cmocka_unit_test(poll_is_not_interrupted),
		cmocka_unit_test(strangers_get_no_signal),
		cmocka_unit_test(exec_kills_nobody),
		cmocka_unit_test(exec_of_a_process_with_tables_is_reported),
	};

	return cmocka_run_group_tests(tests, make_shared, drop_shared);
}
