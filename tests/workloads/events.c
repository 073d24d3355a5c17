/* SPDX-License-Identifier: MIT */
/*
 * What events count, a known number of times in known functions:
 *
 *   events GATE faults N        one_page() touches N new pages, three_pages() 3 N
 *   events GATE switches N      ping() and pong() wait for each other N times; "SWITCHES n m": how often each left
 *                               its CPU
 *   events GATE storm SECONDS   uses so much CPU, with a page fault every 5 us: "BURNT ns ns ns", how long it took, and
 *                               for how long it had a CPU, whether the hypervisor ran that or not; "FAULTS n"
 *   events GATE calls N         ask() makes N system calls, burn() computes between them; each of the two has called
 *                               itself 60 times by then: "BURNT ns ns ns"
 *   events GATE places N        N times: writes the variable watched, calls counted(), passes the static probe
 *                               duet_test:passed while somebody uses it, and writes i % 1000 bytes to /dev/null
 *
 * Says READY, begins when the file GATE exists, and ends with DONE.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 256 /* pages at once */
#define CALLERS 60
#define BURN_STEPS 10000 /* some 20 to 40 us */

static int to_pong[2], to_ping[2];
static long rounds;
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* None of the pages is present, and none arrives together with another one. */
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

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static __attribute__((noinline)) void ping(void)
{
	char byte = 0;

	if (write(to_pong[1], &byte, 1) != 1 || read(to_ping[0], &byte, 1) != 1)
		abort();
	sink++;
}

static __attribute__((noinline)) void pong(void)
{
	char byte;

	if (read(to_pong[0], &byte, 1) != 1 || write(to_ping[1], &byte, 1) != 1)
		abort();
	sink++;
}

static void *pong_all(void *ret_switches)
{
	long before = switches();

	for (long i = 0; i < rounds; i++)
		pong();
	*(long *)ret_switches = switches() - before;
	return NULL;
}

static void ping_all(void)
{
	long before = switches(), others = 0;
	pthread_t thread;

	if (pipe(to_pong) || pipe(to_ping) || pthread_create(&thread, NULL, pong_all, &others))
		abort();
	for (long i = 0; i < rounds; i++)
		ping();
	before = switches() - before;
	pthread_join(thread, NULL);
	printf("SWITCHES %ld %ld\n", before, others);
}

static __attribute__((noipa)) void ask(int callers)
{
	if (callers)
		ask(callers - 1);
	else
		syscall(SYS_getppid);
	sink++;
}

static __attribute__((noipa)) void burn(int callers)
{
	if (callers)
		burn(callers - 1);
	for (int i = callers ? BURN_STEPS : 0; i < BURN_STEPS; i++)
		sink++;
	sink++;
}

/* What a thread has used, and the times from which it is known for how long it had a CPU. */
struct burnt {
	uint64_t cpu_ns, clock_ns, waited_ns;
};

/* While it had none. */
static uint64_t waited_ns(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	unsigned long long ns = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*u %llu", &ns) != 1)
		ns = 0;
	fclose(file);
	return ns;
}

static struct burnt burnt(void)
{
	uint64_t waited = waited_ns();

	return (struct burnt){now_ns(CLOCK_THREAD_CPUTIME_ID), now_ns(CLOCK_MONOTONIC), waited};
}

static void say_burnt(const struct burnt *before)
{
	struct burnt now = burnt();
	uint64_t took_ns = now.clock_ns - before->clock_ns;

	printf("BURNT %llu %llu %llu\n", (unsigned long long)(now.cpu_ns - before->cpu_ns),
	       (unsigned long long)took_ns, (unsigned long long)(took_ns - (now.waited_ns - before->waited_ns)));
}

static void calls(void)
{
	struct burnt before = burnt();

	for (long i = 0; i < rounds; i++) {
		burn(CALLERS);
		ask(CALLERS);
	}
	say_burnt(&before);
}

static void storm(uint64_t wanted_ns)
{
	struct burnt before = burnt();
	uint64_t used_ns = before.cpu_ns, next_ns = used_ns;
	unsigned long touched = 0;

	while (used_ns - before.cpu_ns < wanted_ns) {
		volatile char *pages = new_pages(PAGES);

		for (size_t i = 0; i < PAGES; i++) {
			one_page(pages + i * PAGE);
			for (next_ns += 5000; used_ns < next_ns; used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID))
				sink++;
		}
		munmap((void *)pages, PAGES * PAGE);
		touched += PAGES;
	}
	say_burnt(&before);
	printf("FAULTS %lu\n", touched);
}

volatile long watched;
__attribute__((section(".probes"))) volatile unsigned short passed_users;

__attribute__((noipa)) long counted(long i);
__attribute__((noipa)) long counted(long i)
{
	return sink + (uint64_t)i;
}

/* A static probe: one instruction, which does nothing, and a note with its place, counter and name. */
static __attribute__((noipa)) void pass(void)
{
	if (passed_users)
		__asm__ volatile("1:	nop\n"
				 "	.pushsection .note.stapsdt, \"\", %note\n"
				 "	.balign 4\n"
				 "	.4byte 3f - 2f, 5f - 4f, 3\n"
				 "2:	.asciz \"stapsdt\"\n"
				 "3:	.balign 4\n"
				 "4:	.8byte 1b, 0, passed_users\n"
				 "	.asciz \"duet_test\"\n"
				 "	.asciz \"passed\"\n"
				 "	.asciz \"\"\n"
				 "5:	.balign 4\n"
				 "	.popsection");
	sink++;
}

static void places(void)
{
	static const char bytes[1000];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (long i = 0; i < rounds; i++) {
		watched = i;
		sink = (uint64_t)counted(i);
		pass();
		if (write(null, bytes, (size_t)i % 1000) < 0)
			abort();
	}
	close(null);
}

static int run(const char *what)
{
	if (!strcmp(what, "faults"))
		faults();
	else if (!strcmp(what, "switches"))
		ping_all();
	else if (!strcmp(what, "storm"))
		storm((uint64_t)rounds * 1000000000u);
	else if (!strcmp(what, "calls"))
		calls();
	else if (!strcmp(what, "places"))
		places();
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
