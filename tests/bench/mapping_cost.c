/* SPDX-License-Identifier: MIT */
/*
 * What one of the kernel's mapping records costs whoever maps a file: MAPPING_COST_NS of user/overhead.c. As root:
 *
 *	make build/tests/bench/mapping_cost && build/tests/bench/mapping_cost [LIBRARY]
 *
 * Rounds with and without the events take turns; nothing else may have such events meanwhile (duet --host, perf).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/tables/mapping_events.h"

#define ROUNDS 401
#define MAPPINGS 100 /* a round: less than what the rings hold */
#define RINGS_BYTES (16u << 20)
#define PAGE 4096

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static double round_ns(int library)
{
	uint64_t start_ns = cpu_ns();

	for (int i = 0; i < MAPPINGS; i++) {
		void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, library, 0);

		if (at != MAP_FAILED)
			munmap(at, PAGE);
	}
	return (double)(cpu_ns() - start_ns) / MAPPINGS;
}

/* Returns the time of a round, in which there are as many records as mappings, or more of other processes. */
static int recorded_round(int library, double *ret_ns)
{
	struct mapping_events *events;
	struct mapping_log log = {0};
	uint64_t lost = 0;
	int err = mapping_events_open(&events, RINGS_BYTES);

	if (err < 0)
		return err;
	*ret_ns = round_ns(library);
	mapping_events_read(events, &log, &lost);
	if (lost || log.count < MAPPINGS)
		printf("of %d records %" PRIu64 " came, %" PRIu64 " had no room\n", MAPPINGS, log.count, lost);
	mapping_log_release(&log);
	mapping_events_close(events);
	return 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/proc/self/exe";
	int library = open(path, O_RDONLY | O_CLOEXEC), err = library < 0 ? -1 : 0;
	static double without[ROUNDS], with[ROUNDS], more[ROUNDS];

	for (int i = 0; !err && i < ROUNDS; i++) {
		without[i] = round_ns(library);
		err = recorded_round(library, &with[i]);
		more[i] = with[i] - without[i];
	}
	if (err < 0) {
		perror(path);
		return 1;
	}
	qsort(without, ROUNDS, sizeof(*without), compare);
	qsort(with, ROUNDS, sizeof(*with), compare);
	qsort(more, ROUNDS, sizeof(*more), compare);
	printf("a mapping and its end: %.0f ns, with its record %.0f ns (medians)\n", without[ROUNDS / 2],
	       with[ROUNDS / 2]);
	printf("a record: %.0f ns (median of differences; quartiles %.0f and %.0f), by minima %.0f ns\n",
	       more[ROUNDS / 2], more[ROUNDS / 4], more[3 * ROUNDS / 4], with[0] - without[0]);
	return 0;
}
