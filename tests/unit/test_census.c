/* SPDX-License-Identifier: MIT */
/* What processes use: a child with known work, and a name that looks like the rest of its line in /proc. */
#include "subject/host.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define NAME ") S 1 (x"
#define ROWS_MAX 10
#define INTERVAL_NS (300 * NS_PER_MS)

static pid_t child;

static int setup(void **state)
{
	child = fork();
	if (child)
		return child < 0;
	prctl(PR_SET_NAME, NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

static int teardown(void **state)
{
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) != child;
}

/* Steps until the profile has `count` rows of the child, at most for 10 s. Returns the last of them. */
static const struct profile_usage *await_rows(struct census *census, size_t count)
{
	const struct timespec moment = {.tv_nsec = 5 * NS_PER_MS};
	const struct profile *profile = census->profile;
	uint64_t end_ns = clock_monotonic_ns() + 10 * NS_PER_SEC;
	size_t seen = 0, found = 0;

	while (found < count && clock_monotonic_ns() < end_ns) {
		census_step(census, clock_monotonic_ns());
		for (; found < count && seen < profile->usages.len; seen++)
			found += profile->usages.items[seen].pid == (uint32_t)child;
		nanosleep(&moment, NULL);
	}
	assert_int_equal(found, count);
	return &profile->usages.items[seen - 1];
}

static uint64_t cpu_ns(const struct profile_usage *usage)
{
	return usage->user_ns + usage->system_ns;
}

/* The load is what the CPU time has grown by between two looks. On a busy machine it may not grow between the first. */
static void a_busy_child(void **state)
{
	struct profile profile;
	struct profile_usage first, second;
	struct census census;

	assert_int_equal(profile_init(&profile), 0);
	census_open(&census, &profile, INTERVAL_NS);
	census.memory_bytes = 1; /* each look has a row, however little of the CPU the child has had */
	first = *await_rows(&census, 1);
	assert_string_equal(intern_text(&profile.strings, first.name), NAME);
	assert_int_equal(first.parent, getpid());
	assert_int_equal(first.uid, getuid());
	assert_int_equal(first.threads, 1);
	assert_int_equal(first.state, 'R');
	assert_true(first.command);
	assert_in_range(first.started_ms, clock_realtime_ns() / NS_PER_MS - 60000, clock_realtime_ns() / NS_PER_MS);
	assert_true(first.resident_bytes && first.resident_bytes < first.size_bytes);
	assert_true(first.anonymous_bytes + first.file_bytes + first.shared_bytes <= 2 * first.resident_bytes);
	for (size_t rows = 2; rows < ROWS_MAX; rows++) {
		second = *await_rows(&census, rows);
		if (cpu_ns(&second) > cpu_ns(&first))
			break;
		first = second;
	}
	assert_true(cpu_ns(&second) > cpu_ns(&first));
	assert_true(second.time_ns - first.time_ns >= INTERVAL_NS / 2);
	assert_float_equal((double)second.load_ppm,
			   (double)(cpu_ns(&second) - cpu_ns(&first)) * 1e6 / (double)(second.time_ns - first.time_ns),
			   2);
	census_release(&census);
	profile_release(&profile);
}

/* Nothing is added to a window that has ended, nor without an interval. */
static void no_looks(void **state)
{
	struct profile profile;
	struct census census;

	assert_int_equal(profile_init(&profile), 0);
	census_open(&census, &profile, 0);
	census_step(&census, clock_monotonic_ns() + NS_PER_SEC);
	assert_int_equal(census_wait_ms(&census, clock_monotonic_ns(), 77), 77);
	assert_int_equal(profile.usages.len, 0);
	census_open(&census, &profile, INTERVAL_NS);
	assert_in_range(census_wait_ms(&census, clock_monotonic_ns(), 1000), 1, INTERVAL_NS / NS_PER_MS / 2 + 1);
	profile.until_ns = 1;
	census_step(&census, clock_monotonic_ns() + NS_PER_SEC);
	assert_null(census.folder);
	census_release(&census);
	profile_release(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_busy_child, setup, teardown),
		cmocka_unit_test(no_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
