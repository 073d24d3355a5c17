/* SPDX-License-Identifier: MIT */
/*
 * The rate changes while a process of known shares runs, and records are kept while others are handled: no tick is lost
 * or counted twice, and the shares stay true.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/collector.h"
#include "event/options.h"
#include "system/collector_or_skip.h"
#include "system/precedence.h"

#define TICK_NS (NS_PER_MS / 5)
#define RUN_NS (5 * NS_PER_SEC)
#define PARTS 3
#define PART_BYTES 256 /* its code is smaller, and there is no other code in this range */
#define STEPS 1000000u

/* Values that the child measures itself. */
struct shared {
	uint64_t spent_ns[PARTS];
	uint32_t go, stop;
};

struct sums {
	struct collector *collector;
	uint64_t ns[PARTS];
	uint64_t all_ns;
	uint64_t samples;
	uint64_t odd; /* weights that are not whole numbers of ticks */
};

static volatile uint64_t sink;

#define PART(name)                                                                                                     \
	__attribute__((noipa, aligned(PART_BYTES))) static void name(void)                                             \
	{                                                                                                              \
		for (unsigned i = 0; i < STEPS; i++)                                                                   \
			sink = sink * 5 + i;                                                                           \
	}
PART(half)
PART(third)
PART(rest)

static void (*const parts[PARTS])(void) = {half, third, rest};
static const unsigned rounds[PARTS] = {5, 3, 2};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

/* In turns of random length, so that no rate can keep step with them. */
static void child_main(struct shared *shared)
{
	uint64_t random = 1;

	take_precedence();
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		usleep(1000);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		unsigned times;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		times = 1 + (unsigned)(random >> 60);
		for (unsigned part = 0; part < PARTS; part++) {
			uint64_t before = cpu_ns();

			for (unsigned i = 0; i < times * rounds[part]; i++)
				parts[part]();
			shared->spent_ns[part] += cpu_ns() - before;
		}
	}
	_exit(0);
}

static void add(void *context, const struct duet_record *record)
{
	const struct duet_sample *sample = (const void *)record;
	struct sums *sums = context;

	if (record->type != DUET_RECORD_SAMPLE)
		return;
	if (sums->samples++ % 16 == 0)
		collector_keep(sums->collector);
	sums->all_ns += sample->weight;
	sums->odd += sample->weight % TICK_NS != 0 || !sample->weight;
	for (unsigned part = 0; part < PARTS; part++)
		if (sample->user_pc - (uintptr_t)parts[part] < PART_BYTES)
			sums->ns[part] += sample->weight;
}

static struct collector *open_or_skip(const pid_t *pid)
{
	const struct event_list events = {{{.event = event_by_name("cpu"), .interval = TICK_NS}}, 1};
	const struct options asked = {.all_user = true};
	struct collector_options options = {
		.asked = &asked, .events = &events, .user_depth = 16, .targets = pid, .target_count = 1};

	return collector_or_skip(&options);
}

/* Records all CPU time of the child. */
static void record(struct collector *collector, struct shared *shared, pid_t pid, struct sums *sums)
{
	static const uint32_t rates[] = {1, 7, 2, 5, 3, 1, 4};
	uint64_t end_ns = clock_monotonic_ns() + RUN_NS, bad = 0;

	assert_int_equal(collector_start(collector), 0);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; clock_monotonic_ns() < end_ns; i++) {
		collector_sample_every(collector, rates[i % (sizeof(rates) / sizeof(*rates))]);
		usleep(37000);
		assert_true(collector_read(collector, add, sums, INT32_MAX, &bad) >= 0);
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	collector_stop(collector);
	assert_true(collector_read(collector, add, sums, INT32_MAX, &bad) >= 0);
	assert_int_equal(bad, 0);
}

static void weights_are_exact_through_changes(void **state)
{
	struct shared *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct collector *collector;
	struct sums sums = {0};
	struct duet_cost cost;
	uint64_t spent_ns = 0;
	pid_t pid;

	assert_ptr_not_equal(shared, MAP_FAILED);
	pid = fork();
	if (!pid)
		child_main(shared);
	collector = open_or_skip(&pid);
	sums.collector = collector;
	record(collector, shared, pid, &sums);

	assert_int_equal(collector_cost(collector, COLLECTOR_ALL_EVENTS, &cost), 0);
	assert_int_equal(sums.all_ns + cost.pending * TICK_NS, cost.ticks * TICK_NS);
	assert_int_equal(sums.odd, 0);
	assert_true(sums.samples < cost.ticks * 3 / 4);
	assert_true(sums.samples > cost.ticks / 7);
	for (unsigned part = 0; part < PARTS; part++)
		spent_ns += shared->spent_ns[part];
	print_message("%llu ticks in %llu samples, %.2f %% of the CPU time\n", (unsigned long long)cost.ticks,
		      (unsigned long long)sums.samples, 100.0 * (double)sums.all_ns / (double)spent_ns);
	for (unsigned part = 0; part < PARTS; part++) {
		double share = 100.0 * (double)sums.ns[part] / (double)sums.all_ns;
		double truth = 100.0 * (double)shared->spent_ns[part] / (double)spent_ns;

		print_message("share %.2f %%, in truth %.2f %%\n", share, truth);
		assert_true(share > truth - 2 && share < truth + 2);
	}
	collector_close(collector);
	munmap(shared, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_exact_through_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
