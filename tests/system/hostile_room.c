/* SPDX-License-Identifier: MIT */
/*
 * hostile_room stacks SECONDS KINDS [STEP]: runs for so long with random stacks: KINDS different ones, and with 0 no
 * two that are equal, in processes of STEP seconds each.
 * hostile_room mappings SECONDS PROCESSES COUNT FILE: so many processes, each with so many executable mappings of FILE.
 * Prints READY. For hostile_room.sh.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 24
#define HOLD_S 0.001 /* time in each stack */
#define PAGE 4096ul
#define HASH(value) (((value) + 1) * 0x9e3779b97f4a7c15ull)

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void step(uint64_t path, int depth);

#define TURN(name) \
	__attribute__((noinline)) static void name(uint64_t path, int depth) \
	{ \
		step(path, depth); \
		__asm__ volatile(""); /* no jump in place of the call */ \
	}

TURN(turn_0)
TURN(turn_1)
TURN(turn_2)
TURN(turn_3)

__attribute__((noinline)) static void hold(void)
{
	double end = now() + HOLD_S;

	while (now() < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

/* Calls one of four functions by the next two bits of the path. */
__attribute__((noinline)) static void step(uint64_t path, int depth)
{
	static void (*const turns[])(uint64_t, int) = {turn_0, turn_1, turn_2, turn_3};

	if (depth)
		turns[path & 3](path >> 2, depth - 1);
	else
		hold();
	__asm__ volatile("");
}

static void run(double end, uint64_t kinds, uint64_t seed)
{
	for (uint64_t i = seed; now() < end; i++)
		step(HASH(kinds ? i % kinds : i) >> 16, DEPTH);
}

static void run_in_processes(double end, double length)
{
	for (uint64_t i = 1; now() < end; i++) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			run(now() + length, 0, HASH((uint64_t)getpid() << 20));
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) < 0)
			return;
	}
}

/* Other pages in between keep the kernel from making one mapping of them. */
static int map_and_run(const char *path, size_t count, double end)
{
	int fd = open(path, O_RDONLY);

	for (size_t i = 0; i < count; i++)
		if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
		    mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			return 1;
	while (now() < end) {
		hold();
		usleep(50000);
	}
	return 0;
}

static void run_with_mappings(double end, int processes, size_t count, const char *path)
{
	for (int i = 0; i < processes; i++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(map_and_run(path, count, end));
		}
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 3 ? atof(argv[2]) : 0);

	puts("READY");
	fflush(stdout);
	if (argc == 4 && !strcmp(argv[1], "stacks"))
		run(end, (uint64_t)atoi(argv[3]), 0);
	else if (argc == 5 && !strcmp(argv[1], "stacks"))
		run_in_processes(end, atof(argv[4]));
	else if (argc == 6 && !strcmp(argv[1], "mappings"))
		run_with_mappings(end, atoi(argv[3]), (size_t)atoi(argv[4]), argv[5]);
	else
		return 2;
	return 0;
}
