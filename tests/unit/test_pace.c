/* SPDX-License-Identifier: MIT */
/* A host with known cost: a part for each sample, a part that does not depend on samples, and one-time work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "limits/overhead.h"

#define CPUS 2

struct host {
	double each; /* percent of all CPUs, if every tick is sampled */
	double always; /* percent of all CPUs, whatever the rate */
	unsigned busy; /* number of the look, from 1 on, that finds twice as much; 0 for none */
	unsigned looks;
	uint64_t now_ns;
	uint64_t changed_ns; /* last */
	unsigned changes;
};

/* Of a percent of all CPUs, in this time. */
static uint64_t cpu_ns(double percent, uint64_t time_ns)
{
	return (uint64_t)(percent / 100 * (double)(time_ns * CPUS));
}

/* `once` of it is a percent of all CPUs too. */
static void run(struct host *host, struct pace *pace, double seconds, double once)
{
	uint64_t end_ns = host->now_ns + (uint64_t)(seconds * 1e9);

	while (host->now_ns < end_ns) {
		uint64_t time_ns = pace_wait_ns(pace);
		double part = ++host->looks == host->busy ? 2 : 1;
		const struct pace_spent spent = {
			.sampling_ns = cpu_ns(part * (host->always + host->each / pace->every), time_ns),
			.once_ns = cpu_ns(once, time_ns),
			.time_ns = time_ns,
			.cpus = CPUS,
		};

		host->now_ns += time_ns;
		if (!pace_look(pace, &spent))
			continue;
		host->changed_ns = host->now_ns;
		host->changes++;
	}
}

static void a_start_changes_nothing(void **state)
{
	struct host host = {.each = 0.5, .always = 0.1};
	struct pace pace;

	pace_init(&pace, 1, 1000);
	run(&host, &pace, 3, 18);
	run(&host, &pace, 600, 0);
	assert_int_equal(host.changes, 0);
	assert_true(pace.percent > 0.59 && pace.percent < 0.7);
}

/* A tenth of a CPU for JVMs that start all the time is steady cost, not the cost of a start. */
static void a_start_without_end_counts(void **state)
{
	struct host host = {.each = 0.5, .always = 0.1};
	struct pace pace;

	pace_init(&pace, 1, 1000);
	run(&host, &pace, 3600, 5);
	assert_true(pace.percent > 4.5);
	assert_int_equal(pace.every, 1000);
	run(&host, &pace, 3600, 0);
	assert_int_equal(pace.every, 1);
}

static void steady_within_three_seconds(void **state)
{
	static const double limits[] = {0.15, 0.2, 0.5, 1, 3, 10};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		struct host host = {.each = 8, .always = 0.1};
		struct pace pace;

		pace_init(&pace, limits[i], 1000);
		run(&host, &pace, 30, 0);
		assert_true(host.changed_ns <= 3 * NS_PER_SEC);
		assert_true(pace.percent <= limits[i]);
		assert_true(pace.percent > limits[i] / 2 || pace.every == 1);
	}
}

/* A second in which JVMs start does not change the rate. */
static void steady_beside_a_busy_second(void **state)
{
	for (unsigned busy = 8; busy < 20; busy++) {
		struct host host = {.each = 8, .always = 0.1, .busy = busy};
		struct pace pace;

		pace_init(&pace, 0.5, 1000);
		run(&host, &pace, 60, 0);
		assert_true(host.changed_ns <= 3 * NS_PER_SEC);
	}
}

static void more_often_again_when_it_fits(void **state)
{
	struct host host = {.each = 8, .always = 0.1};
	struct pace pace;

	pace_init(&pace, 1, 1000);
	run(&host, &pace, 10, 0);
	assert_in_range(pace.every, 9, 16);
	host.each = 1;
	run(&host, &pace, 60, 0);
	assert_in_range(pace.every, 1, 2);
}

static void never_less_often_than_the_slowest(void **state)
{
	struct host host = {.each = 8, .always = 5};
	struct pace pace;

	pace_init(&pace, 1, 100);
	run(&host, &pace, 60, 0);
	assert_int_equal(pace.every, 100);
	pace_init(&pace, 1, 0);
	assert_int_equal(pace.every_max, 1);
	pace_init(&pace, 0, 100);
	run(&host, &pace, 60, 0);
	assert_int_equal(pace.every, 1);
}

/* Of a window: as the samples in it, whenever the changes were. */
static void how_rare_samples_were(void **state)
{
	struct overhead_change changes[] = {
		{.time_ns = 100 * NS_PER_SEC, .every = 4},
		{.time_ns = 120 * NS_PER_SEC, .every = 1},
		{.time_ns = 150 * NS_PER_SEC, .every = 10},
	};
	const struct overhead overhead = {.changes = {.items = changes, .len = 3}}, none = {0};

	assert_float_equal(overhead_rarer(&none, NS_PER_SEC, 2 * NS_PER_SEC), 1, 0.001);
	assert_float_equal(overhead_rarer(&overhead, 50 * NS_PER_SEC, 90 * NS_PER_SEC), 1, 0.001);
	assert_float_equal(overhead_rarer(&overhead, 100 * NS_PER_SEC, 110 * NS_PER_SEC), 4, 0.001);
	assert_float_equal(overhead_rarer(&overhead, 90 * NS_PER_SEC, 110 * NS_PER_SEC), 20 / 12.5, 0.001);
	assert_float_equal(overhead_rarer(&overhead, 110 * NS_PER_SEC, 160 * NS_PER_SEC), 50 / 33.5, 0.001);
	assert_float_equal(overhead_rarer(&overhead, 200 * NS_PER_SEC, 260 * NS_PER_SEC), 10, 0.001);
	assert_float_equal(overhead_rarer(&overhead, 200 * NS_PER_SEC, 200 * NS_PER_SEC), 1, 0.001);
}

/* A user who maps files, or starts JVMs, all the time does not have others sampled rarely. */
static void users_pay_for_themselves(void **state)
{
	const struct overhead_cost before = {
		.bpf_ns = 10, .kernel_ns = 100, .mappings_ns = 50, .loader_ns = 1000, .users_ns = 400, .once_ns = 300};
	struct overhead_cost now = before;

	(void)state;
	now.bpf_ns += 5;
	now.kernel_ns += 7;
	now.loader_ns += 20;
	now.once_ns += 8;
	assert_int_equal(overhead_spent(&before, &now).sampling_ns, 24);
	assert_int_equal(overhead_spent(&before, &now).once_ns, 8);
	now.kernel_ns += 1000;
	now.mappings_ns += 1000;
	now.loader_ns += 5000;
	now.users_ns += 5000;
	now.once_ns += 4000;
	assert_in_range(overhead_spent(&before, &now).sampling_ns, 24, 32);
	assert_int_equal(overhead_spent(&before, &now).once_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_changes_nothing),
		cmocka_unit_test(a_start_without_end_counts),
		cmocka_unit_test(steady_within_three_seconds),
		cmocka_unit_test(steady_beside_a_busy_second),
		cmocka_unit_test(more_often_again_when_it_fits),
		cmocka_unit_test(never_less_often_than_the_slowest),
		cmocka_unit_test(how_rare_samples_were),
		cmocka_unit_test(users_pay_for_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
