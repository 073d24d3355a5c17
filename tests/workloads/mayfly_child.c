/* SPDX-License-Identifier: MIT */
/*
 * What mayfly.c starts, without libc's beginning: that asks for the CPU's features, which in a virtual machine takes
 * longer than all the rest. Half of them burn 200 us of CPU in burn_long(), the others 100 us in
 * burn_short(): which, tells a number from the page, which takes what was really burned too.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mayfly.h"

#define LONG_NS 200000
#define SHORT_NS 100000
#define FRAME __attribute__((noipa))
#ifdef __x86_64__
#define ENTRY __attribute__((force_align_arg_pointer)) /* nobody has called it */
#else
#define ENTRY
#endif

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec now = {0};

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t burn(uint64_t ns)
{
	uint64_t start = cpu_ns(), now;

	do {
		for (int i = 0; i < 2000; i++)
			sink++;
		now = cpu_ns();
	} while (now - start < ns);
	return now - start;
}

FRAME static uint64_t burn_long(void)
{
	return burn(LONG_NS);
}

FRAME static uint64_t burn_short(void)
{
	return burn(SHORT_NS);
}

void _start(void);

ENTRY void _start(void)
{
	struct mayfly_page *page = (void *)syscall(SYS_mmap, NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED,
						   MAYFLY_PAGE_FD, 0L);
	uint64_t number = __atomic_fetch_add(&page->children, 1, __ATOMIC_RELAXED);
	int is_short = number * 0x9e3779b97f4a7c15ull >> 63; /* in an order with which no tick can be in step */

	__atomic_fetch_add(&page->burned_ns[is_short], is_short ? burn_short() : burn_long(), __ATOMIC_RELAXED);
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}
