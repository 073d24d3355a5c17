/* SPDX-License-Identifier: MIT */
/*
 * Measures what duet costs the host, and implements --max-overhead: duet samples less often until its cost is within
 * the limit. The rate of the perf events does not change. BPF takes a sample at one tick in `every`, and the sample
 * weighs as much as all of these ticks, so weights stay exact across every change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * The arithmetic of --max-overhead: chooses how many ticks one sample accounts for, so that the cost stays within the
 * limit. Fewer samples do not reduce the work that is done once for each file, process and JVM. This work counts too,
 * but spread over the ten minutes that follow. So the start of a recording does not slow sampling down, and on a host
 * where root starts JVMs all the time their cost counts steadily.
 */
struct pace {
	double max_percent; /* of all CPUs; 0 = no limit */
	uint32_t every; /* one tick in this many makes a sample */
	uint32_t every_max;
	double percent; /* of all CPUs: weighted mean of the looks since the rate last changed */
	uint64_t due_ns; /* one-time work that is not counted yet */
	unsigned looks;
	unsigned over; /* looks in a row that found more than the limit */
	unsigned calm; /* looks in a row that found much less than the limit */
	bool is_fresh; /* no look since the last change: the mean belongs to the old rate */
};

/* CPU time since the last look. */
struct pace_spent {
	uint64_t sampling_ns;
	uint64_t once_ns;
	uint64_t time_ns; /* wall-clock time */
	uint64_t cpus;
};

void pace_init(struct pace *pace, double max_percent, uint64_t every_max);
uint64_t pace_wait_ns(const struct pace *pace); /* time from one look to the next */
/* Call when pace_wait_ns() has passed. Returns true if `every` has changed. */
bool pace_look(struct pace *pace, const struct pace_spent *spent);

/* shortest tick with --max-overhead: faster ticks alone would cost more than most limits */
#define OVERHEAD_TICK_MIN_NS (1000ull * 1000)
#define OVERHEAD_SLOWEST_NS (1000ull * 1000 * 1000)
#define OVERHEAD_MOST_TICKS 100000 /* largest `every` when no event is a clock */
#define OVERHEAD_CHANGES 64 /* this many of the latest changes are kept for the output */

struct agent;
struct jvms;
struct rusage;

/* CPU time since the start. */
struct overhead_cost {
	/* part of loader_ns and agents_ns: attaching, tables and names, done once for each process or file */
	uint64_t once_ns;
	uint64_t bpf_ns; /* the sampling programs */
	uint64_t kernel_ns; /* estimate: timer interrupts, signals and records of mappings */
	uint64_t mappings_ns; /* part of kernel_ns: records of mappings */
	uint64_t loader_ns; /* including the children that attach */
	uint64_t users_ns; /* part of loader_ns and agents_ns: what users have been charged */
	uint64_t agents_ns; /* the agents' own threads, and the signal handler on the JVMs' threads */
};

struct overhead_change {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t every; /* from then on, one tick in this many makes a sample */
	double percent; /* share of the host's CPU that caused the change */
};

/*
 * What the rate is to answer for between two looks. What processes make duet do has other limits, those of their users,
 * and fewer samples do not lower it: a user who maps files all the time would have others sampled rarely.
 */
struct pace_spent overhead_spent(const struct overhead_cost *before, const struct overhead_cost *now);

struct overhead {
	struct pace pace;
	const struct jvms *jvms; /* not owned, with the other parts that work */
	uint64_t cpus; /* online */
	/* CPU time of the profiled command, which getrusage() counts as a child's; it is not duet's cost */
	uint64_t command_ns;
	uint64_t signals; /* signals sent to sampled threads */
	struct overhead_cost before; /* cost at the last look */
	uint64_t looked_ns; /* time of the last look */
	uint64_t first_sample_ns; /* time of the first sample; 0: none yet */
	uint64_t first_sample_cpu_ns; /* the loader's CPU time until first_sample_ns */
	uint64_t gone_ns; /* CPU time of agents that were freed */
	uint64_t gone_once_ns;
	struct vec(struct overhead_change) changes;
	uint64_t change_count;
};

void overhead_open(struct overhead *overhead, const struct jvms *jvms);
void overhead_release(struct overhead *overhead);
void overhead_step(struct overhead *overhead, uint64_t now_ns); /* measures when due, and adapts the rate */
void overhead_cost(const struct overhead *overhead, struct overhead_cost *ret); /* since the start */
void overhead_note_sample(struct overhead *overhead); /* call for each sample: notes the cost of the first one */
/* call before the agent is freed: keeps its cost in the sum */
void overhead_forget(struct overhead *overhead, const struct agent *agent);
uint64_t overhead_usage_ns(const struct rusage *usage);
uint64_t overhead_sum(const struct overhead_cost *cost); /* ns */
/*
 * How many times rarer than asked samples were in this time, CLOCK_MONOTONIC: 1, or more. Of the changes that are kept,
 * the first one's time is the earliest that is known.
 */
double overhead_rarer(const struct overhead *overhead, uint64_t start_ns, uint64_t end_ns);
/* current interval of the clock event; 0 = no event is a clock */
uint64_t overhead_interval_ns(const struct overhead *overhead);
