/* SPDX-License-Identifier: MIT */
/*
 * A recording may last for months. This frees what belongs to processes that have ended, unless a sample still needs
 * it.
 */
#include "jvms/jvms.h"

#include "base/clock.h"
#include "join/decided.h"
#include "subject/owners.h"
#include "sym/symbols.h"

/* for this long after an agent has started, its names are compared with its reader's */
#define COMPARE_NS (30 * NS_PER_SEC)
#define SWEEP_NS (30 * NS_PER_SEC) /* interval of the search for processes that ended without an exit record */

/* ---- agents ---- */

typedef bool (*agent_test)(const struct jvms *jvms, const struct agent *agent);

/* Returns true for a reader whose JVM has had an agent for a short while, see runtime/alike.h. */
static bool is_compared(const struct agent *reader)
{
	const struct agent *agent = jvm_process(reader->process)->agent;

	return agent && agent->outside == reader && agent->state == AGENT_RUNNING &&
	       clock_monotonic_ns() - agent->begun_ns < COMPARE_NS;
}

static bool is_over(const struct jvms *jvms, const struct agent *agent)
{
	bool is_left = agent->process->exited || jvm_process(agent->process)->agent != agent;

	return is_left && (agent->state == AGENT_GONE || agent->state == AGENT_FAILED) && !is_compared(agent) &&
	       (!agent->retry_ns || agent->process->exited) && !decided_awaits(jvms->of.decided, agent);
}

/*
 * Returns true for a failed agent that can be freed at once: the join holds no sample of it, and either it was replaced
 * or its process ended before it had a ring. A busy host may start a JVM every second.
 */
static bool is_useless(const struct jvms *jvms, const struct agent *agent)
{
	bool is_left = jvm_process(agent->process)->agent != agent || (agent->process->exited && !agent->ring);

	return is_left && agent->state == AGENT_FAILED && !agent->retry_ns && !decided_awaits(jvms->of.decided, agent);
}

static void forget_agent(struct jvm_process *process, const struct agent *agent)
{
	if (process->agent == agent)
		process->agent = agent->outside;
	if (!process->agent || process->agent->outside != agent)
		return;
	jvm_set_other(process->agent->jvm, NULL);
	process->agent->outside = NULL;
}

/* Frees the agent and adds its losses to those of the recording. */
static void free_agent(struct jvms *jvms, struct agent *agent)
{
	for (enum duet_agent_counter c = 0; c < DUET_AGENT_COUNTER_MAX; c++)
		jvms->agents.gone_lost[c] += agent_lost(agent, c);
	forget_agent(jvm_process(agent->process), agent);
	join_forget(jvms->of.decided->join, agent);
	jvms->of.forget(jvms->of.context, agent);
	agent_free(agent);
}

static void free_agents(struct jvms *jvms, agent_test is_done)
{
	size_t kept = 0;

	for (size_t i = 0; i < jvms->agents.len; i++) {
		struct agent *agent = jvms->agents.items[i];

		if (is_done(jvms, agent))
			free_agent(jvms, agent);
		else
			jvms->agents.items[kept++] = agent;
	}
	jvms->agents.len = kept;
}

void jvms_free_useless(struct jvms *jvms)
{
	free_agents(jvms, is_useless);
}

/* ---- processes ---- */

static void find_ended(struct jvms *jvms)
{
	uint64_t now_ns = clock_monotonic_ns(), ticks;

	if (now_ns - jvms->swept_ns < SWEEP_NS)
		return;
	jvms->swept_ns = now_ns;
	for (size_t i = 0; i < jvms->of.processes->all.len; i++) {
		struct process *process = jvms->of.processes->all.items[i];

		if (!process->exited &&
		    (process_read_start_ticks(process->pid, &ticks) < 0 || ticks != process->start_ticks)) {
			process->exited = true;
			unwinding_forget(jvms->of.unwinding, process);
		}
	}
}

static bool has_agent(const struct jvms *jvms, const struct process *process)
{
	for (size_t i = 0; i < jvms->agents.len; i++)
		if (jvms->agents.items[i]->process == process)
			return true;
	return false;
}

static bool is_target(const struct jvms *jvms, const struct process *process)
{
	for (size_t i = 0; i < jvms->of.pid_count; i++)
		if (jvms->of.pids[i] == process->pid)
			return true;
	return false;
}

/* Frees only processes that had ended by the previous call: their last samples have arrived since. */
static bool is_done(void *context, struct process *process)
{
	struct jvms *jvms = context;
	bool was_exited = jvm_process(process)->was_exited;

	jvm_process(process)->was_exited = process->exited;
	if (!was_exited || has_agent(jvms, process) || is_target(jvms, process))
		return false;
	symbols_forget_process(jvms->of.symbols, process);
	return true;
}

/* ---- shared caches ---- */

/* Returns true if samples of an ended JVM still wait for names. These need its files, which cannot be opened again. */
static bool has_waiting_dead(const struct jvms *jvms)
{
	for (size_t i = 0; i < jvms->agents.len; i++)
		if (jvms->agents.items[i]->process->exited && decided_awaits(jvms->of.decided, jvms->agents.items[i]))
			return true;
	return false;
}

void jvms_release_dead(struct jvms *jvms)
{
	free_agents(jvms, is_over);
	find_ended(jvms);
	process_table_sweep(jvms->of.processes, is_done, jvms);
	if (has_waiting_dead(jvms))
		return;
	symbols_trim(jvms->of.symbols);
	containers_trim(&jvms->of.owners->containers);
}
