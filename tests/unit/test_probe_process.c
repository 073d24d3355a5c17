/* SPDX-License-Identifier: MIT */
/* The process that opens probes, with pipes in the place of probes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/perf_events.h"

#define COUNT 3
#define MUCH_MS 30000
#define HANGS_S 7

struct probes {
	int kept; /* reading end of a pipe */
	int writing; /* must not be open in the process */
	size_t refused, hangs; /* COUNT: none is */
};

/* Returns a copy of `kept`, so that the test sees who still has it. */
static int open_copy(const void *context, size_t i)
{
	const struct probes *probes = context;

	if (i == probes->hangs)
		sleep(HANGS_S);
	if (i == probes->refused)
		return -EACCES;
	if (fcntl(probes->writing, F_GETFD) >= 0)
		return -EBADF;
	return dup(probes->kept);
}

static int open_all(struct probes *probes, int fds[COUNT], struct probe_process *ret_process)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	probes->kept = pipes[0];
	probes->writing = pipes[1];
	*ret_process = (struct probe_process){0};
	return probe_process_open(ret_process, open_copy, probes, COUNT, probes->kept, fds);
}

/* Returns true once nobody has the reading end any more. */
static bool is_forgotten(const struct probes *probes)
{
	struct pollfd end = {.fd = probes->writing};
	uint64_t until_ns = clock_monotonic_ns() + MUCH_MS * NS_PER_MS;

	while (clock_monotonic_ns() < until_ns && !(end.revents & POLLERR))
		poll(&end, 1, 10);
	return end.revents & POLLERR;
}

static void kept_until_the_end(void **state)
{
	struct probes probes = {.refused = COUNT, .hangs = COUNT};
	struct pollfd end;
	struct probe_process process;
	int fds[COUNT];

	assert_int_equal(open_all(&probes, fds, &process), 0);
	close(probes.kept);
	for (int i = 0; i < COUNT; i++)
		close(fds[i]);
	end = (struct pollfd){.fd = probes.writing};
	poll(&end, 1, 100);
	assert_false(end.revents & POLLERR); /* the process has them */
	probe_process_close(&process);
	assert_true(is_forgotten(&probes));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it was collected */
	assert_int_equal(errno, ECHILD);
	probe_process_close(&process); /* does nothing */
	close(probes.writing);
}

static void refused(void **state)
{
	struct probes probes = {.refused = 1, .hangs = COUNT};
	struct probe_process process;
	int fds[COUNT];

	assert_int_equal(open_all(&probes, fds, &process), -EACCES);
	close(probes.kept);
	assert_true(is_forgotten(&probes));
	close(probes.writing);
}

static void never_answers(void **state)
{
	struct probes probes = {.refused = COUNT, .hangs = 2};
	uint64_t begun_ns = clock_monotonic_ns();
	struct probe_process process;
	int fds[COUNT];

	assert_int_equal(open_all(&probes, fds, &process), -ETIMEDOUT);
	assert_true(clock_monotonic_ns() - begun_ns < MUCH_MS * NS_PER_MS);
	close(probes.kept);
	assert_true(is_forgotten(&probes)); /* once it hangs no more */
	close(probes.writing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_until_the_end),
		cmocka_unit_test(refused),
		cmocka_unit_test(never_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
