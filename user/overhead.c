/* SPDX-License-Identifier: MIT */
#include "overhead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "session_internal.h"

#define LOOK_NS NS_PER_SEC
#define START_NS (2 * NS_PER_SEC) /* names are read and JVMs joined: that comes once */
#define SMOOTH 0.4 /* of the mean, what the last look says */
#define AIM 0.8 /* of the limit */
#define CALM 0.55 /* of the limit; below for CALM_LOOKS in a row, the rate may grow again */
#define CALM_LOOKS 5
/*
 * What the kernel does around our program: a timer interrupt with perf's part of it, and the way of a signal into its
 * handler and back. They are in no clock of ours; 2 GHz, mitigations on.
 */
#define TICK_COST_NS 1000
#define SIGNAL_COST_NS 2000
/*
 * And in whoever maps a file, forks or executes, with --host: tests/bench/mapping_cost measured 130 to 150 ns, on Linux
 * 6.18. A thousand processes a second, of a dozen records each, are 0.2 % of a CPU; a quiet host has a hundredth of it.
 */
#define MAPPING_COST_NS 150

void overhead_open(struct session *session)
{
	struct overhead *overhead = &session->overhead;
	uint64_t slowest = OVERHEAD_SLOWEST_NS / session->options->interval_ns;

	overhead->max_percent = session->options->max_overhead;
	overhead->every = 1;
	overhead->is_fresh = true;
	overhead->every_max = slowest > UINT32_MAX ? UINT32_MAX : slowest ? (uint32_t)slowest : 1;
}

void overhead_release(struct session *session)
{
	vec_release(&session->overhead.changes);
}

/* ---- what it costs ---- */

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_usec * NS_PER_US;
}

uint64_t overhead_usage_ns(const struct rusage *usage)
{
	return timeval_ns(&usage->ru_utime) + timeval_ns(&usage->ru_stime);
}

/* The command that is profiled is a child too. */
static uint64_t loader_ns(const struct session *session)
{
	uint64_t sum = 0;
	const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	struct rusage usage;

	for (size_t i = 0; i < 2; i++)
		if (getrusage(whose[i], &usage) == 0)
			sum += overhead_usage_ns(&usage);
	return sum - session->child_cpu_ns;
}

static uint64_t agent_ns(const struct agent *agent)
{
	return agent->thread_ns + agent->handler_ns;
}

/*
 * Of threads that were never seen running, which cost nothing worth a look, the host's number is not known. What a JVM
 * claims is bounded, and neither sum ever shrinks.
 */
static void read_agent(struct agent *agent)
{
	uint64_t handler_ns = agent_handler_ns(agent), thread_ns;

	if (handler_ns > agent->handler_ns)
		agent->handler_ns = handler_ns;
	if (agent->host_tid && !process_read_thread_cpu(agent->process->pid, agent->host_tid, &thread_ns) &&
	    thread_ns > agent->thread_ns)
		agent->thread_ns = thread_ns;
}

void overhead_cost(const struct session *session, struct overhead_cost *ret)
{
	uint64_t mappings = session->collector ? collector_mapping_records(session->collector) : 0;
	struct duet_cost bpf = {0};

	if (session->collector)
		(void)collector_cost(session->collector, &bpf);
	*ret = (struct overhead_cost){
		.bpf_ns = bpf.run_ns,
		.kernel_ns = bpf.runs * TICK_COST_NS + session->overhead.signals * SIGNAL_COST_NS +
			     mappings * MAPPING_COST_NS,
		.loader_ns = loader_ns(session),
		.agents_ns = session->overhead.gone_ns,
	};
	for (size_t i = 0; i < session->agents.len; i++)
		ret->agents_ns += agent_ns(session->agents.items[i]);
}

void overhead_forget(struct session *session, const struct agent *agent)
{
	session->overhead.gone_ns += agent_ns(agent);
}

uint64_t overhead_sum(const struct overhead_cost *cost)
{
	return cost->bpf_ns + cost->kernel_ns + cost->loader_ns + cost->agents_ns;
}

uint64_t overhead_interval_ns(const struct session *session)
{
	return session->options->interval_ns * session->overhead.every;
}

/* ---- what follows from it ---- */

static void change(struct session *session, uint64_t every, uint64_t now_ns)
{
	struct overhead *overhead = &session->overhead;
	struct overhead_change row = {.time_ns = now_ns, .percent = overhead->percent};

	every = every > overhead->every_max ? overhead->every_max : every ? every : 1;
	overhead->calm = 0;
	if (every == overhead->every)
		return;
	overhead->is_fresh = true;
	overhead->every = (uint32_t)every;
	collector_sample_every(session->collector, overhead->every);
	row.interval_ns = overhead_interval_ns(session);
	overhead->change_count++;
	if (overhead->changes.len == OVERHEAD_CHANGES)
		memmove(overhead->changes.items, overhead->changes.items + 1,
			--overhead->changes.len * sizeof(row));
	(void)vec_push(&overhead->changes, row);
	log_info("a sample every %.6g ms from now on: duet took %.2f %% of the host's CPU, of %.6g %% allowed",
		 (double)row.interval_ns / 1e6, row.percent, overhead->max_percent);
}

/* Not all of the cost comes from samples, so one step does not bring it to the limit: others follow. */
static void adapt(struct session *session, uint64_t now_ns)
{
	struct overhead *overhead = &session->overhead;
	double factor = overhead->percent / (AIM * overhead->max_percent);

	if (overhead->percent > overhead->max_percent)
		return change(session, (uint64_t)(overhead->every * (factor < 4 ? factor : 4)) + 1, now_ns);
	if (overhead->percent > CALM * overhead->max_percent) {
		overhead->calm = 0;
		return;
	}
	if (overhead->every > 1 && ++overhead->calm >= CALM_LOOKS)
		change(session, (uint64_t)(overhead->every * (factor > 0.25 ? factor : 0.25)), now_ns);
}

void overhead_step(struct session *session, uint64_t now_ns)
{
	struct overhead *overhead = &session->overhead;
	struct overhead_cost cost;
	uint64_t spent_ns;
	double percent;

	if (now_ns - overhead->looked_ns < LOOK_NS)
		return;
	for (size_t i = 0; i < session->agents.len; i++)
		if (session->agents.items[i]->state == AGENT_RUNNING)
			read_agent(session->agents.items[i]);
	overhead_cost(session, &cost);
	/* Of a child that has ended the kernel's two sums may differ by some microseconds. */
	spent_ns = overhead_sum(&cost);
	spent_ns -= spent_ns > overhead->before_ns ? overhead->before_ns : spent_ns;
	percent = 100.0 * (double)spent_ns / ((double)(now_ns - overhead->looked_ns) * (double)session->cpus);
	overhead->before_ns = overhead_sum(&cost);
	overhead->looked_ns = now_ns;
	if (now_ns - session->started_ns < START_NS)
		return;
	overhead->percent += (overhead->is_fresh ? 1 : SMOOTH) * (percent - overhead->percent);
	overhead->is_fresh = false;
	if (overhead->max_percent > 0 && session->collector)
		adapt(session, now_ns);
}
