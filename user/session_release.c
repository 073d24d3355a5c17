/* SPDX-License-Identifier: MIT */
/*
 * A recording may last for months. This frees what belongs to processes that have ended, unless a sample still needs
 * it.
 */
#include "base/clock.h"
#include "session_internal.h"

#define SWEEP_NS (30 * NS_PER_SEC) /* interval of the search for processes that ended without an exit record */

/* ---- agents ---- */

typedef bool (*agent_test)(const struct session *session, const struct agent *agent);

static bool is_over(const struct session *session, const struct agent *agent)
{
	bool is_left = agent->process->exited || agent->process->runtime != agent;

	return is_left && (agent->state == AGENT_GONE || agent->state == AGENT_FAILED) &&
	       !join_holds(session->join, agent);
}

/*
 * Returns true for a failed agent that can be freed at once: the join holds no sample of it, and it was replaced or its
 * process ended before it had a ring. A busy host may start a JVM every second.
 */
static bool is_useless(const struct session *session, const struct agent *agent)
{
	bool is_left = agent->process->runtime != agent || (agent->process->exited && !agent->ring);

	return is_left && agent->state == AGENT_FAILED && !agent->retry_ns && !join_holds(session->join, agent);
}

/* Frees the agent and adds its losses to those of the recording. */
static void free_agent(struct session *session, struct agent *agent)
{
	for (enum duet_agent_counter c = 0; c < DUET_AGENT_COUNTER_MAX; c++)
		session->agents.gone_lost[c] += agent_lost(agent, c);
	if (agent->process->runtime == agent)
		agent->process->runtime = NULL;
	budget_give_ring(&session->budget, agent);
	overhead_forget(&session->overhead, agent);
	join_forget(session->join, agent);
	agent_free(agent);
}

static void free_agents(struct session *session, agent_test is_done)
{
	size_t kept = 0;

	for (size_t i = 0; i < session->agents.len; i++) {
		struct agent *agent = session->agents.items[i];

		if (is_done(session, agent))
			free_agent(session, agent);
		else
			session->agents.items[kept++] = agent;
	}
	session->agents.len = kept;
}

void session_free_useless(struct session *session)
{
	free_agents(session, is_useless);
}

/* ---- processes ---- */

static void find_ended(struct session *session)
{
	uint64_t now_ns = clock_monotonic_ns(), ticks;

	if (now_ns - session->swept_ns < SWEEP_NS)
		return;
	session->swept_ns = now_ns;
	for (size_t i = 0; i < session->processes.all.len; i++) {
		struct process *process = session->processes.all.items[i];

		if (!process->exited &&
		    (process_read_start_ticks(process->pid, &ticks) < 0 || ticks != process->start_ticks)) {
			process->exited = true;
			unwinding_forget(&session->unwinding, process);
		}
	}
}

static bool has_agent(const struct session *session, const struct process *process)
{
	for (size_t i = 0; i < session->agents.len; i++)
		if (session->agents.items[i]->process == process)
			return true;
	return false;
}

static bool is_target(const struct session *session, const struct process *process)
{
	for (size_t i = 0; i < session->options->pids.len; i++)
		if (session->options->pids.items[i] == process->pid)
			return true;
	return false;
}

/* Frees only processes that had ended by the previous call: their last samples have arrived since. */
static bool is_done(void *context, struct process *process)
{
	struct session *session = context;
	bool was_exited = process->was_exited;

	process->was_exited = process->exited;
	if (!was_exited || has_agent(session, process) || is_target(session, process))
		return false;
	symbols_forget_process(session->symbols, process);
	return true;
}

/* ---- shared caches ---- */

/* Samples of an ended JVM that wait for names still need its files, which cannot be opened again. */
static bool has_waiting_dead(const struct session *session)
{
	for (size_t i = 0; i < session->agents.len; i++)
		if (session->agents.items[i]->process->exited && join_holds(session->join, session->agents.items[i]))
			return true;
	return false;
}

void session_release_dead(void *context)
{
	struct session *session = context;

	free_agents(session, is_over);
	find_ended(session);
	process_table_sweep(&session->processes, is_done, session);
	if (has_waiting_dead(session))
		return;
	symbols_trim(session->symbols);
	containers_trim(&session->owners.containers);
}
