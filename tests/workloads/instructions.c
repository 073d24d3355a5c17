/* SPDX-License-Identifier: MIT */
/*
 * A function whose instructions take known parts of its time: two loops of the same chain of dependent instructions,
 * the first with three times as many turns as the second. Both together take microseconds: no timer is in step with
 * them. Says READY and runs until it is killed, at most a minute.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define LIMIT_S 60
#define TURNS 100ull

#if defined(__x86_64__)
#define LOOP "1:\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0\n\tdec %1\n\tjnz 1b\n"
#elif defined(__aarch64__)
#define LOOP "1:\n\tmul %0, %0, %0\n\tmul %0, %0, %0\n\tmul %0, %0, %0\n\tmul %0, %0, %0\n" \
	"\tsubs %1, %1, #1\n\tb.ne 1b\n"
#endif

__attribute__((noipa)) uint64_t two_loops(uint64_t value)
{
	uint64_t often = 3 * TURNS, seldom = TURNS;

	__asm__ volatile(LOOP : "+r"(value), "+r"(often) : : "cc");
	__asm__ volatile(LOOP : "+r"(value), "+r"(seldom) : : "cc");
	return value;
}

int main(void)
{
	uint64_t value = 3;

	alarm(LIMIT_S);
	puts("READY");
	fflush(stdout);
	for (;;)
		value = two_loops(value | 1);
}
