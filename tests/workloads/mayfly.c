/* SPDX-License-Identifier: MIT */
/*
 * mayfly RATE SECONDS: so many children a second, or as many as the machine can, each of them a fork, an exec of
 * mayfly_child.c beside it, and an exit. Says "READY", and at its end "CHILDREN count" and "BURNED long_ns short_ns".
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mayfly.h"

#define NS_PER_SEC 1000000000ull
#define AT_ONCE 4 /* children that may live at the same time: enough to keep the CPUs busy */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static void wait_until(uint64_t time_ns)
{
	struct timespec at = {.tv_sec = (time_t)(time_ns / NS_PER_SEC), .tv_nsec = (long)(time_ns % NS_PER_SEC)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/*
 * At random distances, so that a profiler's ticks do not always find the same half of them. Late children are made up
 * for, up to the number that may live at once.
 */
static void breed(char *child, uint64_t rate, uint64_t seconds)
{
	uint64_t now = now_ns(), end = now + seconds * NS_PER_SEC, step = NS_PER_SEC / rate, next = now, random = now;
	char *argv[] = {child, NULL};
	int alive = 0;
	pid_t pid;

	for (; now < end; now = now_ns()) {
		if (now < next)
			wait_until(next);
		random = random * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's */
		next = (now > next + AT_ONCE * step ? now : next) + (random >> 33) % (2 * step);
		while (alive && waitpid(-1, NULL, alive < AT_ONCE ? WNOHANG : 0) > 0)
			alive--;
		if (!posix_spawn(&pid, child, NULL, NULL, argv, NULL))
			alive++;
	}
	while (alive && waitpid(-1, NULL, 0) > 0)
		alive--;
}

int main(int argc, char **argv)
{
	uint64_t rate = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	int fd = memfd_create("mayfly", 0);
	struct mayfly_page *page;
	char child[4096];

	if (!rate || !seconds || ftruncate(fd, sizeof(*page)) < 0 ||
	    (fd != MAYFLY_PAGE_FD && dup2(fd, MAYFLY_PAGE_FD) < 0))
		return 2;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 2;
	snprintf(child, sizeof(child), "%s_child", argv[0]);
	printf("READY\n");
	fflush(stdout);
	breed(child, rate, seconds);
	printf("CHILDREN %llu\nBURNED %llu %llu\n", (unsigned long long)page->children,
	       (unsigned long long)page->burned_ns[0], (unsigned long long)page->burned_ns[1]);
	return 0;
}
