/* SPDX-License-Identifier: MIT */
/* By how much a function costs more by a library's linkage table, where an agent may have put another, than without. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Calls `function`, or what it leads to, and what undoes it. */
typedef void (*extra_loop)(void *function, int calls);

static int64_t extra_turn(extra_loop loop, void *function, int calls)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	loop(function, calls);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
}

/* Returns the median of turns of both, in ps for each call. */
static int64_t extra_ps(extra_loop loop, void *called, void *direct)
{
	enum { TURNS = 101, CALLS = 20000 };
	int64_t extra[TURNS];

	for (int i = 0; i < TURNS; i++) {
		extra[i] = extra_turn(loop, called, CALLS) - extra_turn(loop, direct, CALLS);
		for (int at = i; at && extra[at] < extra[at - 1]; at--) {
			int64_t other = extra[at];

			extra[at] = extra[at - 1];
			extra[at - 1] = other;
		}
	}
	return extra[TURNS / 2] * 1000 / CALLS;
}
