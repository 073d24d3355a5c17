/* SPDX-License-Identifier: MIT */
/*
 * Stacks whose every frame is known: main (or a thread's entry) calls link_30, that link_29, down to link_0, which
 * calls the leaf that the argument chooses. Built without frame pointers; the links differ in what compilers do with a
 * frame: small, large, of variable size, aligned. Says READY and runs until it is killed.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LINK __attribute__((noipa))
#define ROUND 200000u
#define LIMIT_S 60 /* seconds after which it ends by itself, if nobody ends it */

static void (*leaf)(void);
static volatile uint64_t sink;

LINK void touch(volatile char *bytes, size_t len)
{
	bytes[0] = bytes[len - 1] = 1;
}

#define SMALL(n, next)     \
	LINK void link_##n(void) \
	{                  \
		next();    \
		sink++;    \
	}
#define LARGE(n, next)                              \
	LINK void link_##n(void)                  \
	{                                           \
		char bytes[5000 + 100 * n];         \
		touch(bytes, sizeof(bytes));        \
		next();                             \
		touch(bytes, sizeof(bytes));        \
	}
#define VARIABLE(n, next)                           \
	LINK void link_##n(void)                  \
	{                                           \
		size_t len = 100 + sink % 1000;     \
		char *bytes = alloca(len);          \
		touch(bytes, len);                  \
		next();                             \
		touch(bytes, len);                  \
	}
#define ALIGNED(n, next)                            \
	LINK void link_##n(void)                  \
	{                                           \
		char bytes[64] __attribute__((aligned(64))); \
		touch(bytes, sizeof(bytes));        \
		next();                             \
		touch(bytes, sizeof(bytes));        \
	}
/* Many values live across the call, so all registers that a callee saves are pushed, fp's too. */
#define BUSY(n, next)                                                           \
	LINK void link_##n(void)                                              \
	{                                                                       \
		uint64_t a = sink, b = sink, c = sink, d = sink, e = sink, f = sink; \
		next();                                                         \
		sink = a ^ b ^ c ^ d ^ e ^ f;                                   \
	}

LINK void link_0(void)
{
	leaf();
	sink++;
}

/* clang-format off */
SMALL(1, link_0) BUSY(2, link_1) LARGE(3, link_2) VARIABLE(4, link_3) ALIGNED(5, link_4) SMALL(6, link_5)
BUSY(7, link_6) LARGE(8, link_7) VARIABLE(9, link_8) ALIGNED(10, link_9) SMALL(11, link_10) BUSY(12, link_11)
LARGE(13, link_12) VARIABLE(14, link_13) ALIGNED(15, link_14) SMALL(16, link_15) BUSY(17, link_16)
LARGE(18, link_17) VARIABLE(19, link_18) ALIGNED(20, link_19) SMALL(21, link_20) BUSY(22, link_21)
LARGE(23, link_22) VARIABLE(24, link_23) ALIGNED(25, link_24) SMALL(26, link_25) BUSY(27, link_26)
LARGE(28, link_27) VARIABLE(29, link_28) ALIGNED(30, link_29)
/* clang-format on */

/* ---- leaves ---- */

LINK void leaf_compute(void)
{
	for (uint32_t i = 0; i < ROUND; i++)
		sink += i;
}

LINK void leaf_copy(void)
{
	static char from[1 << 16], to[1 << 16];

	for (int i = 0; i < 200; i++) {
		memcpy(to, from, sizeof(to));
		touch(to, sizeof(to));
	}
}

/* So short that it is often in the procedure linkage table. */
LINK void leaf_stub(void)
{
	static volatile size_t len = 1;
	char from[8] = "", to[8];

	for (uint32_t i = 0; i < ROUND; i++) {
		memcpy(to, from, len);
		touch(to, 1);
	}
}

LINK int compare(const void *a, const void *b)
{
	for (uint32_t i = 0; i < 100; i++)
		sink += i;
	return *(const int *)a - *(const int *)b;
}

LINK void leaf_sort(void)
{
	int numbers[1000];

	for (int i = 0; i < 1000; i++)
		numbers[i] = i * 7919 % 1000;
	qsort(numbers, 1000, sizeof(numbers[0]), compare);
	sink += (uint64_t)numbers[3];
}

LINK void handle(int signo)
{
	for (int i = 0; i < 5; i++)
		leaf_compute();
	sink++;
}

/* The handler is entered at any place of the loop. */
LINK void leaf_interrupted(void)
{
	leaf_compute();
	sink++;
}

LINK void leaf_system_call(void)
{
	static char bytes[1 << 16];
	static FILE *zero;

	if (!zero)
		zero = fopen("/dev/zero", "r");
	for (int i = 0; i < 20; i++)
		sink += (uint64_t)read(fileno(zero), bytes, sizeof(bytes));
}

/* Most of it is in the code that the kernel maps into every process. */
LINK void leaf_clock(void)
{
	struct timespec now;

	for (int i = 0; i < 10000; i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
	sink += (uint64_t)now.tv_nsec;
}

/* Deep recursion, which no fixed size may cut. */
LINK void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		leaf_compute();
	sink++;
}

LINK void leaf_deep(void)
{
	recurse(600);
	sink++;
}

LINK void leaf_deeper(void)
{
	recurse(5000);
	sink++;
}

static void interrupt_often(int flags)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART | flags};
	struct itimerval timer = {{0, 3000}, {0, 3000}};
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};

	sigaltstack(&stack, NULL);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &timer, NULL);
}

/* ---- the beginning of the stacks ---- */

LINK void run(void)
{
	for (;;) {
		link_30();
		sink++;
	}
}

LINK void *thread_main(void *unused)
{
	run();
	return unused;
}

#ifndef NATIVE_STATIC
/* A moment after READY, so that a profiler has seen the process without the library. */
static void run_library(const char *path)
{
	void (*entry)(void);
	void *library;

	sleep(2);
	library = dlopen(path, RTLD_NOW);
	*(void **)&entry = library ? dlsym(library, "library_entry") : NULL;
	if (entry)
		entry();
}
#endif

static const struct {
	const char *name;
	void (*leaf)(void);
} leaves[] = {
	{"compute", leaf_compute},
	{"copy", leaf_copy},
	{"stub", leaf_stub},
	{"sort", leaf_sort},
	{"clock", leaf_clock},
	{"deep", leaf_deep},
	{"deeper", leaf_deeper},
	{"system_call", leaf_system_call},
	{"thread", leaf_compute},
	{"signal", leaf_interrupted},
	{"signal_stack", leaf_interrupted},
	{"library", leaf_compute},
};

__attribute__((visibility("default"))) LINK void library_entry(void)
{
	leaf = leaf_compute;
	run();
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "compute";
	pthread_t thread;

	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		if (!strcmp(name, leaves[i].name))
			leaf = leaves[i].leaf;
	if (!leaf)
		return 2;
	alarm(LIMIT_S);
	puts("READY");
	fflush(stdout);
	if (!strcmp(name, "signal") || !strcmp(name, "signal_stack"))
		interrupt_often(strcmp(name, "signal") ? SA_ONSTACK : 0);
#ifndef NATIVE_STATIC
	if (!strcmp(name, "library") && argc > 2)
		run_library(argv[2]);
#endif
	if (!strcmp(name, "thread") && !pthread_create(&thread, NULL, thread_main, NULL))
		pthread_join(thread, NULL);
	else
		run();
	return 1;
}
