/* SPDX-License-Identifier: MIT */
/*
 * Pairs of threads of which one ends the waits of the other, in a known way:
 *
 *   wakers GATE SECONDS
 *
 * Says READY, begins when the file GATE exists, says DONE, and waits for its end by a signal. The thread by_KIND ends
 * the waits of in_KIND, for the kinds futex, pipe, eventfd, and udp and tcp over the loopback device. A softirq
 * delivers their packets, in the system call of by_KIND. All by_KIND sleep in between, until a timer ends the sleep.
 * The threads "bystander" keep CPUs busy, with packets for nobody: most timers interrupt them, and many softirqs run at
 * the end of their calls.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BYSTANDERS 2

static volatile uint64_t end_ns, sink;
static volatile uint32_t futex_word;
static int pipe_ends[2], event_fd, udp_in, udp_out, udp_none, tcp_in, tcp_out;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the waits and their ends; each function is the thread's only place to wait ---- */

static __attribute__((noipa)) void in_futex(void)
{
	syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, futex_word, NULL, NULL, 0);
	sink++;
}

static void by_futex(void)
{
	futex_word++;
	syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static __attribute__((noipa)) void in_pipe(void)
{
	char byte;

	sink += (uint64_t)read(pipe_ends[0], &byte, 1);
}

static void by_pipe(void)
{
	sink += (uint64_t)write(pipe_ends[1], "", 1);
}

static __attribute__((noipa)) void in_eventfd(void)
{
	uint64_t count;

	sink += (uint64_t)read(event_fd, &count, sizeof(count));
}

static void by_eventfd(void)
{
	const uint64_t one = 1;

	sink += (uint64_t)write(event_fd, &one, sizeof(one));
}

static __attribute__((noipa)) void in_udp(void)
{
	char byte;

	sink += (uint64_t)recv(udp_in, &byte, 1, 0);
}

static void by_udp(void)
{
	sink += (uint64_t)send(udp_out, "", 1, 0);
}

static __attribute__((noipa)) void in_tcp(void)
{
	char byte;

	sink += (uint64_t)recv(tcp_in, &byte, 1, 0);
}

static void by_tcp(void)
{
	sink += (uint64_t)send(tcp_out, "", 1, 0);
}

static __attribute__((noipa)) void naps(unsigned *seed)
{
	struct timespec time = {.tv_nsec = 200000 + rand_r(seed) % 3000000};

	nanosleep(&time, NULL);
	sink++;
}

/* ---- the threads ---- */

static struct pair {
	const char *sleeper, *waker;
	void (*wait)(void);
	void (*end)(void);
} pairs[] = {
	{"in_futex", "by_futex", in_futex, by_futex},
	{"in_pipe", "by_pipe", in_pipe, by_pipe},
	{"in_eventfd", "by_eventfd", in_eventfd, by_eventfd},
	{"in_udp", "by_udp", in_udp, by_udp},
	{"in_tcp", "by_tcp", in_tcp, by_tcp},
};

static void *waits(void *context)
{
	const struct pair *pair = context;

	pthread_setname_np(pthread_self(), pair->sleeper);
	for (;;)
		pair->wait();
	return NULL;
}

static void *wakes(void *context)
{
	const struct pair *pair = context;
	unsigned seed = (unsigned)(uintptr_t)pair;

	pthread_setname_np(pthread_self(), pair->waker);
	while (now_ns() < end_ns) {
		naps(&seed);
		pair->end();
	}
	return NULL;
}

static void *stands_by(void *context)
{
	pthread_setname_np(pthread_self(), "bystander");
	for (;;)
		sink += (uint64_t)send(udp_none, "", 1, 0); /* refused, or dropped */
	return NULL;
}

/* Returns a socket that has a port of the loopback device, and stores it. */
static int open_bound(int type, struct sockaddr_in *ret)
{
	socklen_t size = sizeof(*ret);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(fd, (struct sockaddr *)ret, size) || getsockname(fd, (struct sockaddr *)ret, &size))
		abort();
	return fd;
}

static int open_connected(int type, const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		abort();
	return fd;
}

static void open_sockets(void)
{
	struct sockaddr_in address;
	const int yes = 1;
	int listener;

	udp_in = open_bound(SOCK_DGRAM, &address);
	udp_out = open_connected(SOCK_DGRAM, &address);
	open_bound(SOCK_DGRAM, &address);
	udp_none = open_connected(SOCK_DGRAM, &address);
	listener = open_bound(SOCK_STREAM, &address);
	if (listen(listener, 1))
		abort();
	tcp_out = open_connected(SOCK_STREAM, &address);
	tcp_in = accept(listener, NULL, NULL);
	setsockopt(tcp_out, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static void run(void)
{
	pthread_t thread, wakers[sizeof(pairs) / sizeof(*pairs)];

	for (int i = 0; i < BYSTANDERS; i++)
		if (pthread_create(&thread, NULL, stands_by, NULL))
			abort();
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		if (pthread_create(&thread, NULL, waits, &pairs[i]) ||
		    pthread_create(&wakers[i], NULL, wakes, &pairs[i]))
			abort();
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		pthread_join(wakers[i], NULL);
}

int main(int argc, char **argv)
{
	long seconds = argc == 3 ? atol(argv[2]) : 0;

	event_fd = eventfd(0, EFD_CLOEXEC);
	if (seconds <= 0 || pipe(pipe_ends) || event_fd < 0)
		return 2;
	open_sockets();
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("READY");
	while (access(argv[1], F_OK))
		usleep(1000);
	end_ns = now_ns() + (uint64_t)seconds * 1000000000u;
	run();
	puts("DONE");
	for (;;)
		pause(); /* their ends would wake all of them */
}
