/* SPDX-License-Identifier: MIT */
#include "limits/overhead.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "collect/engines.h"
#include "collect/tables/unwinding.h"
#include "event/options.h"
#include "jvms/jvms.h"
#include "proc/allowance.h"
#include "proc/helper.h"
#include "sym/symbols.h"

#define LOOK_NS NS_PER_SEC
#define FIRST_LOOK_NS (NS_PER_SEC / 4)
#define FIRST_LOOKS 10 /* these looks come sooner than others, to find the rate */
#define SPREAD_NS (600 * NS_PER_SEC)
#define SMOOTH 0.4 /* weight of the last look in the mean */
#define AIM 0.8 /* part of the limit that a new rate aims at */
#define CALM 0.55 /* part of the limit; below it for CALM_LOOKS in a row, the rate may grow again */
#define CALM_LOOKS 5
#define OVER_LOOKS 2 /* looks above the limit in a row before the rate falls: one busy look alone does not count */
#define FAR_OVER 2 /* times the limit: the rate falls at once */
#define STEP_MAX 4 /* largest factor by which the rate changes in one look */

void pace_init(struct pace *pace, double max_percent, uint64_t every_max)
{
	*pace = (struct pace){.max_percent = max_percent, .every = 1, .is_fresh = true};
	pace->every_max = every_max > UINT32_MAX ? UINT32_MAX : every_max ? (uint32_t)every_max : 1;
}

uint64_t pace_wait_ns(const struct pace *pace)
{
	return pace->looks < FIRST_LOOKS ? FIRST_LOOK_NS : LOOK_NS;
}

/* Returns the part of the due work that counts for this look, and adds the new one-time work to what is due. */
static uint64_t take_due(struct pace *pace, const struct pace_spent *spent)
{
	uint64_t part = (uint64_t)((double)pace->due_ns * (double)spent->time_ns / SPREAD_NS);

	part = part < pace->due_ns ? part : pace->due_ns;
	pace->due_ns += spent->once_ns - part;
	return part;
}

static bool change(struct pace *pace, double every)
{
	uint32_t before = pace->every;

	pace->calm = pace->over = 0;
	pace->every = every >= pace->every_max ? pace->every_max : every > 1 ? (uint32_t)every : 1;
	pace->is_fresh = pace->every != before;
	return pace->is_fresh;
}

/* Returns true if the rate must fall. `percent` is that of this look alone. */
static bool is_too_much(struct pace *pace, double percent)
{
	pace->over = percent > pace->max_percent ? pace->over + 1 : 0;
	return pace->percent > pace->max_percent &&
	       (pace->over >= OVER_LOOKS || pace->percent > FAR_OVER * pace->max_percent);
}

/* Part of the cost does not come from samples, so one step may not be enough: the next looks take more. */
bool pace_look(struct pace *pace, const struct pace_spent *spent)
{
	uint64_t all_ns = spent->time_ns * spent->cpus;
	double percent, factor;

	percent = all_ns ? 100.0 * (double)(spent->sampling_ns + take_due(pace, spent)) / (double)all_ns : 0;
	pace->percent += (pace->is_fresh ? 1 : SMOOTH) * (percent - pace->percent);
	pace->is_fresh = false;
	pace->looks++;
	if (pace->max_percent <= 0)
		return false;
	factor = pace->percent / (AIM * pace->max_percent);
	if (is_too_much(pace, percent))
		return change(pace, pace->every * (factor < STEP_MAX ? factor : STEP_MAX) + 1);
	if (pace->percent > CALM * pace->max_percent)
		pace->calm = 0;
	else if (pace->every > 1 && ++pace->calm >= CALM_LOOKS)
		return change(pace, pace->every * (factor > 1.0 / STEP_MAX ? factor : 1.0 / STEP_MAX));
	return false;
}

#define AGENT_START_NS (2 * NS_PER_SEC) /* an agent reports the existing code and methods within this time */
/*
 * Estimates of kernel work that none of duet's clocks measures, for 2 GHz with mitigations on. A tick is a timer
 * interrupt with perf's part of it. A count is perf's part alone. A signal is the way into its handler and back.
 */
#define TICK_COST_NS 1000
#define COUNT_COST_NS 200
#define SIGNAL_COST_NS 2000
/*
 * Estimate of kernel work in a process that maps a file, forks or executes, with --host: tests/bench/mapping_cost
 * measured 130 to 150 ns on Linux 6.18. A thousand processes a second with a dozen records each cost 0.2 % of a CPU; a
 * quiet host has a hundredth of that.
 */
#define MAPPING_COST_NS 150

void overhead_open(struct overhead *overhead, const struct jvms *jvms)
{
	const struct event_spec *clock = event_list_clock(&jvms->options->events);

	*overhead = (struct overhead){.jvms = jvms, .cpus = jvms->of.cpus};
	pace_init(&overhead->pace, jvms->options->max_overhead,
		  clock ? OVERHEAD_SLOWEST_NS / clock->interval : OVERHEAD_MOST_TICKS);
}

void overhead_release(struct overhead *overhead)
{
	vec_release(&overhead->changes);
}

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_usec * NS_PER_US;
}

uint64_t overhead_usage_ns(const struct rusage *usage)
{
	return timeval_ns(&usage->ru_utime) + timeval_ns(&usage->ru_stime);
}

/* Returns the CPU time of the loader and its children, except the profiled command, which is a child too. */
static uint64_t loader_ns(const struct overhead *overhead)
{
	uint64_t sum = 0;
	const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	struct rusage usage;

	for (size_t i = 0; i < 2; i++)
		if (getrusage(whose[i], &usage) == 0)
			sum += overhead_usage_ns(&usage);
	return sum + helper_cpu_ns() - overhead->command_ns;
}

static uint64_t agent_ns(const struct agent *agent)
{
	return agent->thread_ns + agent->handler_ns;
}

/* Reads the CPU time of the agent's own thread, or of the process that reads the JVM from outside. */
static int read_thread(const struct agent *agent, uint64_t *ret_ns)
{
	if (agent->reader)
		return process_read_thread_cpu(agent->reader, agent->reader, ret_ns);
	return agent->host_tid ? process_read_thread_cpu(agent->origin.process->pid, agent->host_tid, ret_ns) : -ESRCH;
}

/* host_tid is unknown for a thread never sampled, which is cheap. Claims are bounded; neither sum shrinks. */
static void read_agent(struct agent *agent, uint64_t now_ns)
{
	uint64_t handler_ns = agent_handler_ns(agent), thread_ns;

	if (handler_ns > agent->handler_ns)
		agent->handler_ns = handler_ns;
	if (!read_thread(agent, &thread_ns) && thread_ns > agent->thread_ns)
		agent->thread_ns = thread_ns;
	if (now_ns - agent->begun_ns < AGENT_START_NS || !agent->start_ns)
		agent->start_ns = agent->thread_ns;
}

static uint64_t agent_once_ns(const struct agent *agent)
{
	return agent->attach_ns + agent->start_ns;
}

static void add_programs(const struct overhead *overhead, struct overhead_cost *cost)
{
	struct event_list events;

	event_list_expand(&events, &overhead->jvms->options->events);
	for (uint32_t i = 0; i < events.len; i++) {
		struct duet_cost bpf;

		(void)collector_cost(overhead->jvms->of.engine->collector, i, &bpf);
		cost->bpf_ns += bpf.run_ns;
		cost->kernel_ns += bpf.runs * (events.items[i].event->perf.is_clock ? TICK_COST_NS : COUNT_COST_NS);
	}
}

void overhead_cost(const struct overhead *overhead, struct overhead_cost *ret)
{
	uint64_t mappings = collector_mapping_records(overhead->jvms->of.engine->collector);
	const struct agents *agents = &overhead->jvms->agents;

	*ret = (struct overhead_cost){
		.kernel_ns = overhead->signals * SIGNAL_COST_NS + mappings * MAPPING_COST_NS,
		.mappings_ns = mappings * MAPPING_COST_NS,
		.loader_ns = loader_ns(overhead),
		.users_ns = allowance_used_ns(),
		.agents_ns = overhead->gone_ns,
		.once_ns = overhead->gone_once_ns + overhead->jvms->of.unwinding->work_ns +
			   symbols_work_ns(overhead->jvms->of.symbols),
	};
	add_programs(overhead, ret);
	for (size_t i = 0; i < agents->len; i++) {
		ret->agents_ns += agent_ns(agents->items[i]);
		ret->once_ns += agent_once_ns(agents->items[i]);
	}
}

void overhead_note_sample(struct overhead *overhead)
{
	if (overhead->first_sample_ns)
		return;
	overhead->first_sample_ns = clock_monotonic_ns();
	overhead->first_sample_cpu_ns = loader_ns(overhead);
}

void overhead_forget(struct overhead *overhead, const struct agent *agent)
{
	overhead->gone_ns += agent_ns(agent);
	overhead->gone_once_ns += agent_once_ns(agent);
}

uint64_t overhead_sum(const struct overhead_cost *cost)
{
	return cost->bpf_ns + cost->kernel_ns + cost->loader_ns + cost->agents_ns;
}

uint64_t overhead_interval_ns(const struct overhead *overhead)
{
	const struct event_spec *clock = event_list_clock(&overhead->jvms->options->events);

	return clock ? clock->interval * overhead->pace.every : 0;
}

double overhead_rarer(const struct overhead *overhead, uint64_t start_ns, uint64_t end_ns)
{
	double ticks = 0, samples = 0;
	uint64_t from_ns = start_ns;
	uint32_t every = 1;

	for (size_t i = 0; i <= overhead->changes.len; i++) {
		const struct overhead_change *change = i < overhead->changes.len ? &overhead->changes.items[i] : NULL;
		uint64_t until_ns = change && change->time_ns < end_ns ? change->time_ns : end_ns;

		if (until_ns > from_ns) {
			ticks += (double)(until_ns - from_ns);
			samples += (double)(until_ns - from_ns) / every;
			from_ns = until_ns;
		}
		if (change)
			every = change->every;
	}
	return samples > 0 ? ticks / samples : 1;
}

static void report_change(struct overhead *overhead, uint64_t now_ns)
{
	const struct overhead_change row = {
		.time_ns = now_ns, .every = overhead->pace.every, .percent = overhead->pace.percent};
	BUF(events);

	overhead->change_count++;
	if (overhead->changes.len == OVERHEAD_CHANGES)
		memmove(overhead->changes.items, overhead->changes.items + 1, --overhead->changes.len * sizeof(row));
	(void)vec_push(&overhead->changes, row);
	event_list_text(&overhead->jvms->options->events, row.every, &events);
	log_info("%s from now on: duet took %.2f %% of the host's CPU, of %.6g %% allowed", events.data, row.percent,
		 overhead->pace.max_percent);
}

/* The difference, or 0: for a child that has ended, the kernel's two sums may differ by some microseconds. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* What users have been charged is mostly work that is done once. */
struct pace_spent overhead_spent(const struct overhead_cost *before, const struct overhead_cost *now)
{
	uint64_t users_ns = since(now->users_ns, before->users_ns), once_ns = since(now->once_ns, before->once_ns);
	uint64_t all_ns = since(since(overhead_sum(now), overhead_sum(before)),
				users_ns + since(now->mappings_ns, before->mappings_ns));

	once_ns = since(once_ns, users_ns);
	once_ns = once_ns < all_ns ? once_ns : all_ns;
	return (struct pace_spent){.sampling_ns = all_ns - once_ns, .once_ns = once_ns};
}

/* The first call only measures the cost before the first tick. */
void overhead_step(struct overhead *overhead, uint64_t now_ns)
{
	const struct agents *agents = &overhead->jvms->agents;
	const struct engine_in_use *engine = overhead->jvms->of.engine;
	bool is_first = !overhead->looked_ns;
	struct overhead_cost cost;
	struct pace_spent spent;

	if (now_ns - overhead->looked_ns < pace_wait_ns(&overhead->pace))
		return;
	for (size_t i = 0; i < agents->len; i++)
		if (agents->items[i]->state == AGENT_RUNNING)
			read_agent(agents->items[i], now_ns);
	overhead_cost(overhead, &cost);
	spent = overhead_spent(&overhead->before, &cost);
	spent.time_ns = now_ns - overhead->looked_ns;
	spent.cpus = overhead->cpus;
	overhead->before = cost;
	overhead->looked_ns = now_ns;
	if (is_first && engine->row->standalone)
		pace_init(&overhead->pace, 0, 1); /* no limit: it cannot sample less often */
	if (is_first || !pace_look(&overhead->pace, &spent))
		return;
	collector_sample_every(engine->collector, overhead->pace.every);
	report_change(overhead, now_ns);
}
