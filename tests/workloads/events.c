/* SPDX-License-Identifier: MIT */
/*
 * What events count, a known number of times in known functions:
 *
 *   events GATE faults N        one_page() touches N new pages, three_pages() 3 N
 *   events GATE storm SECONDS   uses so much CPU, with a page fault every 50 us: "BURNT ns ns", and how long it took
 *
 * Says READY, begins when the file GATE exists, and ends with DONE.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 256 /* at once */

static long rounds;
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* None of them is there, nor comes with another. */
static volatile char *new_pages(size_t count)
{
	char *pages = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		abort();
	madvise(pages, count * PAGE, MADV_NOHUGEPAGE);
	return pages;
}

static __attribute__((noinline)) void one_page(volatile char *at)
{
	at[0] = 1;
	sink++;
}

static __attribute__((noinline)) void three_pages(volatile char *at)
{
	for (int i = 0; i < 3; i++)
		at[i * PAGE] = 1;
	sink++;
}

static void faults(void)
{
	for (long done = 0; done < rounds; done += PAGES) {
		volatile char *pages = new_pages(4 * PAGES);

		for (size_t i = 0; i < PAGES && done + (long)i < rounds; i++) {
			one_page(pages + i * 4 * PAGE);
			three_pages(pages + (i * 4 + 1) * PAGE);
		}
		munmap((void *)pages, 4 * PAGES * PAGE);
	}
}

static void storm(uint64_t wanted_ns)
{
	uint64_t from_ns = now_ns(CLOCK_MONOTONIC), began_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t used_ns = began_ns, next_ns = began_ns;

	while (used_ns - began_ns < wanted_ns) {
		volatile char *pages = new_pages(PAGES);

		for (size_t i = 0; i < PAGES; i++) {
			one_page(pages + i * PAGE);
			for (next_ns += 50000; used_ns < next_ns; used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID))
				sink++;
		}
		munmap((void *)pages, PAGES * PAGE);
	}
	printf("BURNT %llu %llu\n", (unsigned long long)(now_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns),
	       (unsigned long long)(now_ns(CLOCK_MONOTONIC) - from_ns));
}

static int run(const char *what)
{
	if (!strcmp(what, "faults"))
		faults();
	else if (!strcmp(what, "storm"))
		storm((uint64_t)rounds * 1000000000u);
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	int code;

	rounds = argc == 4 ? atol(argv[3]) : 0;
	if (rounds <= 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("READY");
	while (access(argv[1], F_OK))
		usleep(1000);
	code = run(argv[2]);
	puts("DONE");
	return code;
}
