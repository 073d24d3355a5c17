/* SPDX-License-Identifier: MIT */
/*
 * What duet costs the host, measured by itself, and --max-overhead, which makes it sample less often until that is what
 * it may cost. Perf events go on ticking as they were asked to; BPF makes a sample of one in `every`, and lets it weigh
 * as much as all of them: weights stay exact through every change.
 */
#ifndef OVERHEAD_H
#define OVERHEAD_H

#include <stdint.h>

#include "base/vec.h"
#include "limits/pace.h"

#define OVERHEAD_TICK_MIN_NS (1000ull * 1000) /* with a budget: faster ticks alone would cost more than most allow */
#define OVERHEAD_SLOWEST_NS (1000ull * 1000 * 1000)
#define OVERHEAD_MOST_TICKS 100000 /* where no event is a clock */
#define OVERHEAD_CHANGES 64 /* the last ones are kept for the output */

struct agent;
struct rusage;
struct session;

/* CPU time so far. */
struct overhead_cost {
	uint64_t once_ns; /* of loader_ns and agents_ns below: attaching, tables and names, which come once for each */
	uint64_t bpf_ns; /* the sampling program */
	uint64_t kernel_ns; /* the timer's interrupts, the signals and the records of mappings, estimated */
	uint64_t loader_ns; /* with the children that attach */
	uint64_t agents_ns; /* their own threads, and the handler in the JVMs' */
};

struct overhead_change {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t every; /* from then on, of so many intervals one makes a sample */
	double percent; /* of the host's CPU, which was why */
};

struct overhead {
	struct pace pace;
	uint64_t signals; /* sent */
	struct overhead_cost before; /* as of the last look … */
	uint64_t looked_ns; /* … which was then */
	uint64_t gone_ns; /* what agents had taken that were freed */
	uint64_t gone_once_ns;
	struct vec(struct overhead_change) changes;
	uint64_t change_count;
};

void overhead_open(struct session *session);
void overhead_release(struct session *session);
void overhead_step(struct session *session, uint64_t now_ns);
void overhead_cost(const struct session *session, struct overhead_cost *ret);
void overhead_forget(struct session *session, const struct agent *agent); /* it is freed, its cost remains */
uint64_t overhead_usage_ns(const struct rusage *usage);
uint64_t overhead_sum(const struct overhead_cost *cost); /* ns */
uint64_t overhead_interval_ns(const struct session *session); /* of the event that is a clock, in force; 0: none is */

#endif
