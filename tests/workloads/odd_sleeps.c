/* SPDX-License-Identifier: MIT */
/*
 * Threads whose sleeps end in unusual ways:
 *
 *   odd_sleeps exits MS    its threads sleep in in_old() until the process exits
 *   odd_sleeps execs MS    likewise until one of its threads executes this program, whose threads then sleep in
 *                          in_new() until it exits
 *   odd_sleeps forks MS    likewise until it exits; meanwhile it forks, and each child sleeps in in_child()
 *   odd_sleeps leaves MS   likewise, but its first thread ends when the others sleep
 *
 * Each part takes MS milliseconds. Says "FUNCTION ns" for each function: how long all its threads were in it together.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 20
#define CHILDREN 10
#define NAPS 10
#define NAP_MS 100

static volatile int sink;
static volatile uint64_t began_ns[THREADS];
static const char *ms_text;
static long ms;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap(long milliseconds)
{
	const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static __attribute__((noipa)) void in_old(void)
{
	nap(1000000);
	sink++;
}

static __attribute__((noipa)) void in_new(void)
{
	nap(1000000);
	sink++;
}

static __attribute__((noipa)) void in_child(void)
{
	nap(ms);
	sink++;
}

static void (*sleeps)(void);

static void *run(void *began)
{
	*(volatile uint64_t *)began = now_ns();
	sleeps();
	return began;
}

/* The first naps show the process to the profiler, which has prepared it when the threads' only sleep ends. */
static void start(void (*function)(void))
{
	pthread_t thread;

	for (int i = 0; i < NAPS; i++)
		nap(NAP_MS);
	sleeps = function;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, (void *)&began_ns[i]))
			abort();
}

static void say(const char *function)
{
	uint64_t sum = 0, end_ns = now_ns();

	for (int i = 0; i < THREADS; i++)
		sum += began_ns[i] ? end_ns - began_ns[i] : 0;
	printf("%s %llu\n", function, (unsigned long long)sum);
	fflush(stdout);
}

/* Not the first thread, so that it gets another tid by that. */
static void *execute(void *path)
{
	nap(ms);
	say("in_old");
	execl(path, path, "again", ms_text, NULL);
	abort();
}

static void fork_children(void)
{
	uint64_t *slept_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), sum = 0;

	if (slept_ns == MAP_FAILED)
		abort();
	for (int i = 0; i < CHILDREN; i++) {
		if (!fork()) {
			uint64_t from_ns = now_ns();

			in_child();
			slept_ns[i] = now_ns() - from_ns;
			_exit(0);
		}
		nap(20);
	}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < CHILDREN; i++)
		sum += slept_ns[i];
	printf("in_child %llu\n", (unsigned long long)sum);
}

/* Ends the process, whose first thread has ended before. */
static void *outlive(void *unused)
{
	nap(ms);
	say("in_old");
	_exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	pthread_t thread;

	if (argc != 3)
		return 2;
	ms_text = argv[2];
	ms = strtol(ms_text, NULL, 10);
	start(strcmp(what, "again") ? in_old : in_new);
	if (!strcmp(what, "execs")) {
		if (pthread_create(&thread, NULL, execute, argv[0]))
			abort();
		for (;;)
			pause();
	}
	if (!strcmp(what, "leaves")) {
		if (pthread_create(&thread, NULL, outlive, NULL))
			abort();
		pthread_exit(NULL);
	}
	if (!strcmp(what, "forks"))
		fork_children();
	else
		nap(ms);
	say(strcmp(what, "again") ? "in_old" : "in_new");
	_exit(0);
}
