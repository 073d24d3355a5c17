/* SPDX-License-Identifier: MIT */
/*
 * crowd stacks|processes CPU_SECONDS [SECONDS]: what fills a profiler's memory. "stacks": every few hundred
 * microseconds another stack of 60 frames, of 2^40 that there are. "processes": children of a millisecond, each of
 * another name. Until it has had so much CPU time, with its children's, or the time (40 s) is over: as much work on a
 * busy machine. Says "CPU ns" at its end, and "LIMITED" when its memory is limited.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SEC 1000000000ull
#define DEPTH 60
#define STACK_NS 300000
#define PROCESS_NS 1000000
#define FRAME __attribute__((noipa))

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

FRAME static void spin(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		for (int i = 0; i < 1000; i++)
			sink++;
}

static void left(uint64_t path, int depth);

FRAME static void right(uint64_t path, int depth)
{
	if (!depth)
		spin(STACK_NS);
	else if (path & 1)
		right(path >> 1, depth - 1);
	else
		left(path >> 1, depth - 1);
	sink++;
}

FRAME static void left(uint64_t path, int depth)
{
	if (!depth)
		spin(STACK_NS);
	else if (path & 1)
		right(path >> 1, depth - 1);
	else
		left(path >> 1, depth - 1);
	sink += 2;
}

static void stack(uint64_t number)
{
	left(number * 0x9e3779b97f4a7c15ull >> 4, DEPTH);
}

static void process(uint64_t number)
{
	char name[16];
	pid_t pid = fork();

	if (!pid) {
		snprintf(name, sizeof(name), "crowd-%llu", (unsigned long long)number);
		prctl(PR_SET_NAME, name);
		spin(PROCESS_NS);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static uint64_t cpu_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * NS_PER_SEC +
	       ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

static uint64_t spent_ns(void)
{
	return cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN);
}

int main(int argc, char **argv)
{
	uint64_t most_ns = (argc > 2 ? strtoull(argv[2], NULL, 10) : 10) * NS_PER_SEC;
	uint64_t end = now_ns() + (argc > 3 ? strtoull(argv[3], NULL, 10) : 40) * NS_PER_SEC;
	void (*one)(uint64_t) = argc > 1 && !strcmp(argv[1], "processes") ? process : stack;
	struct rlimit limit;

	for (uint64_t number = (uint64_t)getpid() << 20; spent_ns() < most_ns && now_ns() < end; number++)
		one(number);
	if (!getrlimit(RLIMIT_DATA, &limit) && limit.rlim_cur != RLIM_INFINITY)
		printf("LIMITED %llu\n", (unsigned long long)limit.rlim_cur);
	printf("CPU %llu\n", (unsigned long long)spent_ns());
	return 0;
}
