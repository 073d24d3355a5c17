/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait in known functions for a time that they measure themselves:
 *
 *   sleeps GATE SECONDS
 *
 * Says READY, begins when the file GATE exists, and says "NAME ns n" for each of its threads, which has the name of the
 * function in which it waits: the time that it had no CPU, and the number of calls that ended with EINTR. Then DONE.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define FAULTS 4096

static uint64_t end_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipe_ends[2], socket_ends[2], faults_fd = -1;
static volatile char *pages;
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns 0.2 to 25 ms, mostly short. */
static long some_us(unsigned *seed)
{
	return rand_r(seed) % 8 ? 200 + rand_r(seed) % 3000 : 10000 + rand_r(seed) % 15000;
}

static int nap(long us)
{
	struct timespec time = {.tv_nsec = us * 1000};

	return nanosleep(&time, NULL);
}

/* ---- waits; each returns what its call does ---- */

static __attribute__((noipa)) int in_nanosleep(unsigned *seed)
{
	return nap(some_us(seed)) + (int)(sink & 0);
}

static __attribute__((noipa)) int in_poll(unsigned *seed)
{
	struct timespec time = {.tv_nsec = some_us(seed) * 1000};

	return ppoll(NULL, 0, &time, NULL) + (int)(sink & 0);
}

static __attribute__((noipa)) int in_select(unsigned *seed)
{
	struct timeval time = {.tv_usec = some_us(seed)};

	return select(0, NULL, NULL, NULL, &time) + (int)(sink & 0);
}

static __attribute__((noipa)) int in_epoll(unsigned *seed)
{
	static int epoll = -1;
	struct epoll_event event;

	if (epoll < 0)
		epoll = epoll_create1(EPOLL_CLOEXEC);
	return epoll_wait(epoll, &event, 1, (int)(some_us(seed) / 1000 + 1)) + (int)(sink & 0);
}

static __attribute__((noipa)) int in_lock(unsigned *seed)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	sink++;
	return 0;
}

static __attribute__((noipa)) int in_pipe(unsigned *seed)
{
	char byte;

	return (int)read(pipe_ends[0], &byte, 1) + (int)(sink & 0);
}

static __attribute__((noipa)) int in_socket(unsigned *seed)
{
	char byte;

	return (int)recv(socket_ends[0], &byte, 1, 0) + (int)(sink & 0);
}

static __attribute__((noipa)) int in_fault(unsigned *seed)
{
	static size_t next;

	if (next == FAULTS)
		return nap(1000);
	sink += (uint64_t)pages[next++ * PAGE];
	return 0;
}

/* Waits only for a CPU, of which it has its share. */
static __attribute__((noipa)) int in_turns(unsigned *seed)
{
	for (int i = 0; i < 200000; i++)
		sink++;
	return 0;
}

/* ---- threads that end the waits ---- */

static void *ends_waits(void *context)
{
	unsigned seed = 7;

	for (;;) {
		pthread_mutex_lock(&lock);
		nap(some_us(&seed));
		if (write(pipe_ends[1], "", 1) != 1 || write(socket_ends[1], "", 1) != 1)
			abort();
		pthread_mutex_unlock(&lock);
		nap(200);
	}
	return NULL;
}

static void *ends_faults(void *context)
{
	unsigned seed = 9;
	struct uffd_msg message;

	while (read(faults_fd, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_zeropage zero = {
			.range = {.start = message.arg.pagefault.address & ~(PAGE - 1ull), .len = PAGE},
		};

		nap(some_us(&seed));
		if (ioctl(faults_fd, UFFDIO_ZEROPAGE, &zero))
			abort();
	}
	return NULL;
}

/* Pages whose faults ends_faults() handles. Returns false if the kernel refuses. */
static int make_pages(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	void *at = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	faults_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults_fd < 0 || at == MAP_FAILED || ioctl(faults_fd, UFFDIO_API, &api))
		return 0;
	madvise(at, FAULTS * PAGE, MADV_NOHUGEPAGE);
	range.range.start = (uintptr_t)at;
	range.range.len = FAULTS * PAGE;
	pages = at;
	return !ioctl(faults_fd, UFFDIO_REGISTER, &range);
}

/* ---- the threads ---- */

struct waiter {
	const char *name;
	int (*wait)(unsigned *seed);
	int shares_cpu;
	uint64_t ns, interrupted;
	pthread_t thread;
};

static struct waiter waiters[] = {
	{.name = "in_nanosleep", .wait = in_nanosleep},
	{.name = "in_poll", .wait = in_poll},
	{.name = "in_select", .wait = in_select},
	{.name = "in_epoll", .wait = in_epoll},
	{.name = "in_lock", .wait = in_lock},
	{.name = "in_pipe", .wait = in_pipe},
	{.name = "in_socket", .wait = in_socket},
	{.name = "in_fault", .wait = in_fault},
	{.name = "in_turns", .wait = in_turns, .shares_cpu = 1},
	{.name = "in_turns", .wait = in_turns, .shares_cpu = 1},
	{.name = "in_turns", .wait = in_turns, .shares_cpu = 1},
	{.name = "in_turns", .wait = in_turns, .shares_cpu = 1},
};

static void share_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void *waits(void *context)
{
	struct waiter *waiter = context;
	unsigned seed = (unsigned)(uintptr_t)waiter;
	uint64_t began_ns = now_ns(CLOCK_MONOTONIC);

	pthread_setname_np(pthread_self(), waiter->name);
	if (waiter->shares_cpu)
		share_cpu(); /* which waits, too */
	while (now_ns(CLOCK_MONOTONIC) < end_ns)
		waiter->interrupted += waiter->wait(&seed) < 0 && errno == EINTR;
	waiter->ns = now_ns(CLOCK_MONOTONIC) - began_ns - now_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void run(uint64_t seconds)
{
	pthread_t other;

	end_ns = now_ns(CLOCK_MONOTONIC) + seconds * 1000000000u;
	if (pipe(pipe_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends) ||
	    pthread_create(&other, NULL, ends_waits, NULL))
		abort();
	if (make_pages() && pthread_create(&other, NULL, ends_faults, NULL))
		abort();
	for (size_t i = 0; i < sizeof(waiters) / sizeof(*waiters); i++)
		if ((waiters[i].wait != in_fault || pages) &&
		    pthread_create(&waiters[i].thread, NULL, waits, &waiters[i]))
			abort();
	for (size_t i = 0; i < sizeof(waiters) / sizeof(*waiters); i++) {
		if (waiters[i].thread)
			pthread_join(waiters[i].thread, NULL);
		printf("%s %llu %llu\n", waiters[i].name, (unsigned long long)waiters[i].ns,
		       (unsigned long long)waiters[i].interrupted);
	}
}

int main(int argc, char **argv)
{
	long seconds = argc == 3 ? atol(argv[2]) : 0;

	if (seconds <= 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("READY");
	while (access(argv[1], F_OK))
		usleep(1000);
	run((uint64_t)seconds);
	puts("DONE");
	return 0;
}
