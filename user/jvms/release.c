/* SPDX-License-Identifier: MIT */
/* Frees what belongs to ended processes, unless a sample needs it: a recording may last for months. */
#include "jvms/jvms.h"

#include "base/clock.h"
#include "join/pending.h"
#include "subject/owners.h"
#include "sym/symbols.h"

/* for this long after an agent has started, its names are compared with its reader's */
#define COMPARE_NS (30 * NS_PER_SEC)
/* After its exit record a process is sampled while it closes its files. */
#define LAST_RECORDS_NS NS_PER_SEC
#define SWEEP_NS (30 * NS_PER_SEC) /* interval of the search for processes that ended without an exit record */

/* ---- agents ---- */

typedef bool (*agent_test)(const struct agent *agent);

/* Returns true for a reader whose JVM has had an agent for a short while, see runtime/alike.h. */
static bool is_compared(const struct agent *reader)
{
	const struct agent *agent = jvm_process(reader->origin.process)->agent;

	return agent && agent->outside == reader && agent->state == AGENT_RUNNING &&
	       clock_monotonic_ns() - agent->begun_ns < COMPARE_NS;
}

static bool is_over(const struct agent *agent)
{
	bool is_left = agent->origin.process->exited || jvm_process(agent->origin.process)->agent != agent;

	return is_left && (agent->state == AGENT_GONE || agent->state == AGENT_FAILED) && !is_compared(agent) &&
	       (!agent->retry_ns || agent->origin.process->exited);
}

/* True for a failed agent that was replaced, or had no ring when its process ended: hosts start many JVMs. */
static bool is_useless(const struct agent *agent)
{
	struct process *process = agent->origin.process;
	bool is_left = jvm_process(process)->agent != agent || (process->exited && !agent->ring);

	return is_left && agent->state == AGENT_FAILED && !agent->retry_ns;
}

/* Drops the references to an agent that is over, but for those of what waits. */
static void leave(const struct agent *agent)
{
	struct jvm_process *process = jvm_process(agent->origin.process);

	if (process->agent == agent)
		process->agent = agent->outside;
	if (process->agent && process->agent->outside == agent)
		agent_set_outside(process->agent, NULL);
}

/* Frees the agent and adds its losses to those of the recording. */
static void free_agent(struct jvms *jvms, struct agent *agent)
{
	for (enum duet_agent_counter c = 0; c < DUET_AGENT_COUNTER_MAX; c++)
		jvms->agents.gone_lost[c] += agent_lost(agent, c);
	jvms->of.on_free(jvms->of.context, agent);
	agent_free(agent);
}

/* Frees the agents that are over, except those that samples still refer to. */
static size_t free_agents(struct jvms *jvms, agent_test is_done)
{
	size_t kept = 0, count = jvms->agents.len;

	for (size_t i = 0; i < count; i++) {
		struct agent *agent = jvms->agents.items[i];
		bool is_free = is_done(agent);

		if (is_free)
			leave(agent);
		if (is_free && !agent->origin.references)
			free_agent(jvms, agent);
		else
			jvms->agents.items[kept++] = agent;
	}
	jvms->agents.len = kept;
	return count - kept;
}

/* The resolver remembers JVMs and processes by address. */
static void forget_freed(struct jvms *jvms, size_t freed)
{
	if (freed)
		resolver_forget(&jvms->of.pending->sink.resolver);
}

void jvms_free_useless(struct jvms *jvms)
{
	forget_freed(jvms, free_agents(jvms, is_useless));
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
			process_exit(process);
			unwinding_forget(jvms->of.unwinding, process);
		}
	}
}

static void forget_process(void *context, struct process *process)
{
	struct jvms *jvms = context;

	symbols_forget_process(jvms->of.symbols, process);
}

/* ---- shared caches ---- */

/* True if samples of an ended process wait. They need its files, which cannot be opened again. */
static bool has_waiting_dead(const struct jvms *jvms)
{
	for (size_t i = 0; i < jvms->agents.len; i++)
		if (jvms->agents.items[i]->origin.process->exited && jvms->agents.items[i]->origin.awaited)
			return true;
	return pending_has_dead(jvms->of.pending);
}

void jvms_release_dead(struct jvms *jvms)
{
	/* BPF's records of this time have been read: what an ended process may still write comes before them */
	uint64_t read_ns = jvms->of.pending->kernel_ns;
	size_t freed = free_agents(jvms, is_over);

	find_ended(jvms);
	if (read_ns > LAST_RECORDS_NS)
		freed += process_table_sweep(jvms->of.processes, read_ns - LAST_RECORDS_NS, forget_process, jvms);
	forget_freed(jvms, freed);
	if (has_waiting_dead(jvms))
		return;
	symbols_trim(jvms->of.symbols);
	containers_trim(&jvms->of.owners->containers);
}
