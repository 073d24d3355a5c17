/* SPDX-License-Identifier: MIT */
/*
 * busy THREADS SECONDS [GATE]: threads that use SECONDS of CPU each, by their own clocks, once the file GATE exists.
 * Says READY; then, as TwoBusy.java, "BURNT ns ns", what they have used together and how long it took, and DONE; and
 * waits to be killed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 60 /* seconds after which it ends by itself, if nobody ends it */

static uint64_t wanted_ns;
static uint64_t burnt_ns;
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *burn(void *done)
{
	uint64_t used_ns;

	while ((used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID)) < wanted_ns)
		for (int i = 0; i < 20000; i++)
			sink++;
	__atomic_fetch_add(&burnt_ns, used_ns, __ATOMIC_RELAXED);
	pthread_barrier_wait(done);
	pause(); /* so that /proc still shows it */
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 0;
	uint64_t began_ns;
	pthread_barrier_t done;
	pthread_t thread;

	if (count < 1)
		return 2;
	wanted_ns = (uint64_t)(atof(argv[2]) * 1e9);
	pthread_barrier_init(&done, NULL, (unsigned)count + 1);
	alarm(LIMIT_S);
	puts("READY");
	fflush(stdout);
	while (argc > 3 && access(argv[3], F_OK))
		usleep(20000);
	began_ns = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, burn, &done))
			return 1;
	pthread_barrier_wait(&done);
	printf("BURNT %llu %llu\nDONE\n", (unsigned long long)burnt_ns,
	       (unsigned long long)(now_ns(CLOCK_MONOTONIC) - began_ns));
	fflush(stdout);
	pause();
	return 0;
}
