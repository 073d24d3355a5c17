/* SPDX-License-Identifier: MIT */
/*
 * parked THREADS		so many threads that wait for ever: in poll(2), read(2) and on a futex, by turns
 * parked trap			one such thread, and one whose stack cannot be read: each read of it hangs
 * parked THREADS MS SECONDS	threads that sleep for so long again and again, so many seconds in all; then says
 *				"NAME ns" for each, the time that it had no CPU, and DONE
 *
 * Says READY when all threads wait, and INTERRUPTED when a wait ends that should not.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define THREADS_MAX 32768

static int pipe_ends[2];
static uint32_t never;
static volatile int sink;
static unsigned long nap_ms;
static uint64_t end_ns;

struct sleeper {
	pthread_t thread;
	unsigned index;
	uint64_t ns;
};
static struct sleeper sleepers[THREADS_MAX];

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static __attribute__((noipa)) void in_poll(void)
{
	sink += poll(NULL, 0, -1);
}

static __attribute__((noipa)) void in_read(void)
{
	char byte;

	sink += (int)read(pipe_ends[0], &byte, 1);
}

static __attribute__((noipa)) void in_futex(void)
{
	sink += (int)syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void *waits(void *context)
{
	static void (*const ways[])(void) = {in_poll, in_read, in_futex};
	const struct sleeper *sleeper = context;
	char name[16];

	snprintf(name, sizeof(name), "parked_%u", sleeper->index);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		ways[sleeper->index % 3]();
		puts("INTERRUPTED");
	}
	return NULL;
}

static void *naps(void *context)
{
	const struct timespec time = {(time_t)(nap_ms / 1000), (long)(nap_ms % 1000 * 1000000)};
	uint64_t began_ns = now_ns(CLOCK_MONOTONIC);
	struct sleeper *sleeper = context;
	char name[16];

	snprintf(name, sizeof(name), "napping_%u", sleeper->index);
	pthread_setname_np(pthread_self(), name);
	while (now_ns(CLOCK_MONOTONIC) < end_ns)
		if (nanosleep(&time, NULL))
			puts("INTERRUPTED");
	sleeper->ns = now_ns(CLOCK_MONOTONIC) - began_ns - now_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* Waits with a stack pointer into a page whose faults nobody handles. */
static void *waits_in_trap(void *page)
{
#ifdef __x86_64__
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tmov $34, %%eax\n\tsyscall\n\tmov %%rbx, %%rsp"
			 :
			 : "r"((char *)page + PAGE / 2)
			 : "rax", "rbx", "rcx", "r11", "memory");
#endif
	return page;
}

static int make_trap(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	void *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	pthread_t thread;

	if (fd < 0 || at == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return 0;
	range.range.start = (uintptr_t)at;
	range.range.len = 2 * PAGE;
	return !ioctl(fd, UFFDIO_REGISTER, &range) && !pthread_create(&thread, NULL, waits_in_trap, at);
}

static void start(unsigned count, void *(*run)(void *))
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (unsigned i = 0; i < count; i++) {
		sleepers[i].index = i;
		if (pthread_create(&sleepers[i].thread, &attributes, run, &sleepers[i]))
			abort();
	}
}

static void say_naps(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		pthread_join(sleepers[i].thread, NULL);
		printf("napping_%u %llu\n", i, (unsigned long long)sleepers[i].ns);
	}
	puts("DONE");
}

int main(int argc, char **argv)
{
	int is_trap = argc == 2 && !strcmp(argv[1], "trap");
	unsigned long count = is_trap ? 1 : argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

	if (!count || count > THREADS_MAX || pipe(pipe_ends))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (is_trap && !make_trap())
		puts("REFUSED");
	if (argc == 4) {
		nap_ms = strtoul(argv[2], NULL, 10);
		end_ns = now_ns(CLOCK_MONOTONIC) + strtoul(argv[3], NULL, 10) * 1000000000u;
	}
	start((unsigned)count, argc == 4 ? naps : waits);
	usleep(200000);
	puts("READY");
	if (argc == 4)
		say_naps((unsigned)count);
	else
		pause();
	return 0;
}
