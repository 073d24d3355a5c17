/* SPDX-License-Identifier: MIT */
/*
 * The agents of a running session: notices JVMs, attaches agents, retries, and drops agents that are no longer needed.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "session_internal.h"

#define SAMPLE_LANE_MIN (1u << 20)
#define SAMPLE_LANE_MAX (64u << 20)
#define TAP_LANE_BYTES (8u << 20)
/* the agent waits when the lane is full; it holds two polls' worth of a large JVM's code */
#define METADATA_LANE_BYTES (4u << 20)
#define TABLES_BYTES (16u << 20) /* pages are touched only as far as they are filled; libjvm.so takes 1.5 MB */
#define JAVA_SAMPLE_BYTES 2048 /* record of a typical stack, for the size of the lane */
#define FIRST_RETRY_S 2
#define RETRY_GROWTH 4 /* a hung JVM costs at most four attaches: at once, and after 2, 8 and 32 s */
#define RETRIES 3

/* ---- what BPF knows of a JVM ---- */

/* Gives BPF the JVM's newest frame layout. */
void session_tell_layout(struct session *session, struct agent *agent)
{
	struct duet_jvm_entry entry = {.start_ticks = agent->process->start_ticks};

	if (!session->collector || agent->state != AGENT_RUNNING || agent->layout_told || !jvm_layout(agent->jvm))
		return;
	entry.layout = *jvm_layout(agent->jvm);
	agent->layout_told = !collector_describe(session->collector, agent->process->pid, &entry);
}

/* Allows BPF to signal the process. Called when the handler is installed. */
static int allow_signals(struct session *session, struct agent *agent)
{
	struct duet_jvm_target target = {
		.start_ticks = agent->process->start_ticks,
		.handler = agent->handler,
		.signo = (uint32_t)agent->signo,
	};

	process_refresh_maps(agent->process, clock_monotonic_ns(), 0);
	unwinding_publish(session_unwinding(session, agent->process), agent->process);
	if (!session->collector || agent->start.engine == DUET_ENGINE_NONE)
		return 0;
	return collector_allow(session->collector, agent->process->pid, &target);
}

/* ---- failures ---- */

/*
 * Returns false if the failure of this agent may end the command before the recording: then session_start() reports it.
 */
static bool goes_on_without(const struct session *session)
{
	return session->options->host || session->started_ns || session->agents.len > 1 || session->natives;
}

/* Warns only at the first failure, and on_failed() when it gives up: the user can do nothing in between. */
static void plan_retry(struct agent *agent)
{
	struct process *process = agent->process;
	uint64_t delay_s = FIRST_RETRY_S;
	bool is_told = process->attach_failures;

	for (uint32_t i = 0; i < process->attach_failures; i++)
		delay_s *= RETRY_GROWTH;
	process->attach_failures++;
	agent->retry_ns = clock_monotonic_ns() + delay_s * NS_PER_SEC;
	log_print(is_told ? LOG_DEBUG : LOG_WARN, "%s: native frames only, trying again in %d s", agent->why,
		  (int)delay_s);
}

static void on_failed(struct agent *agent)
{
	bool is_ended = agent->error == -ESRCH || process_is_ending(agent->process);

	loader_counters[DUET_LOADER_JVMS_ENDED] += is_ended;
	if (is_ended || agent->process->runtime != agent)
		log_debug("%s", agent->why);
	else if (agent_may_try_again(agent) && agent->process->attach_failures < RETRIES)
		plan_retry(agent);
	else
		log_warn("%s: native frames only", agent->why);
}

/* Warns only once: a host may have hundreds of such JVMs. */
static void note_engine(struct session *session, const struct agent *agent)
{
	if (agent->engine != agent->start.engine && !session->agents.other_engine++)
		log_warn("JVM %d: its ticks are timers, without kernel frames: %s", agent->process->pid, agent->why);
}

/* Tells of events that this JVM gives no samples of. */
static void tell_refused(const struct session *session, const struct agent *agent)
{
	for (uint32_t i = 0; i < agent->start.event_count; i++) {
		const struct event_spec *spec = &session->options->events.items[agent->start.events[i].index];

		if (agent->refused & 1u << i)
			log_warn("JVM %d: no samples of %s: %s", agent->process->pid, spec->event->name,
				 agent->refused_why);
	}
}

static void on_running(struct session *session, struct agent *agent)
{
	if (agent->process->runtime != agent) /* attached before an exec: not for this program */
		return agent_stop(agent);
	allow_signals(session, agent);
	note_engine(session, agent);
	tell_refused(session, agent);
	session->hurry_ns = clock_monotonic_ns() + HURRY_NS;
	if (agent->process->attach_failures)
		log_info("JVM %d: the agent is attached now", agent->process->pid);
}

void session_agent_changed(struct session *session, struct agent *agent, enum agent_state before)
{
	if (agent->state == before)
		return;
	if (agent->vm[0] && agent->process->runtime == agent)
		agent->process->vm = intern_str(&session->profile.strings, agent->vm);
	if (agent->state == AGENT_RUNNING)
		on_running(session, agent);
	if (before == AGENT_RUNNING && session->collector)
		collector_forbid(session->collector, agent->process->pid);
	if (agent->state == AGENT_FAILED && goes_on_without(session))
		on_failed(agent);
}

/*
 * Stops the agent of a JVM that shuts down as soon as all names for its samples are known, so that the JVM waits no
 * longer than needed.
 */
static void let_end(struct session *session, struct agent *agent)
{
	if (!agent->is_ending || agent->state != AGENT_RUNNING)
		return;
	session->hurry_ns = clock_monotonic_ns() + HURRY_NS;
	while (!session_read_rings(session))
		;
	if (!join_holds(session->join, agent))
		agent_stop(agent);
}

static void progress(struct session *session, struct agent *agent, bool readable)
{
	enum agent_state before = agent->state;

	if (readable)
		agent_step(agent);
	else
		agent_expire(agent, clock_monotonic_ns());
	session_agent_changed(session, agent, before);
	before = agent->state;
	let_end(session, agent);
	session_agent_changed(session, agent, before);
}

/* ---- attaching ---- */

/* Warns only once: a host may have hundreds of JVMs. */
static int refuse(struct process *process)
{
	if (!process->refused && !loader_counters[DUET_LOADER_JVMS_REFUSED]++)
		log_warn("JVM %d: --max-memory has no room for its agent: native frames only", process->pid);
	process->refused = true;
	return 0;
}

/* The bytes of a lane for the samples of all events. Nobody knows in advance how many a tap of the JVM takes. */
static uint64_t lane_bytes(const struct session *session)
{
	uint64_t typical = JAVA_SAMPLE_BYTES * (session->options->java_depth / DUET_JAVA_DEPTH), bytes = 0;

	for (size_t i = 0; i < session->options->events.len; i++) {
		const struct event_spec *spec = &session->options->events.items[i];

		if (spec->event->perf.is_clock)
			bytes += NS_PER_SEC / spec->interval * session->cpus * typical;
		else if (!event_has_ticks(spec->event))
			bytes += TAP_LANE_BYTES;
	}
	return bytes < SAMPLE_LANE_MIN ? SAMPLE_LANE_MIN : bytes > SAMPLE_LANE_MAX ? SAMPLE_LANE_MAX : bytes;
}

static void list_agent_events(struct agent_start *start, const struct event_list *list)
{
	for (uint32_t i = 0; i < list->len; i++) {
		const struct event_spec *spec = &list->items[i];

		if (spec->event->agent != DUET_AGENT_EVENT_NONE)
			start->events[start->event_count++] = (struct duet_agent_event){
				.interval = spec->interval, .kind = spec->event->agent, .index = i};
	}
}

int session_attach(struct session *session, struct process *process, enum attach_kind kind,
		   const struct attach_control *control)
{
	bool has_ticks = event_list_has_ticks(&session->options->events);
	struct agent_start start = {
		.engine = has_ticks ? engines[session->engine].agent : DUET_ENGINE_NONE,
		.is_engine_asked = session->options->engine == session->engine,
		.java_depth = session->options->java_depth,
		.tables_bytes = engines[session->engine].standalone ? TABLES_BYTES : 0,
		.sample_lane_bytes = lane_bytes(session),
		.metadata_lane_bytes = METADATA_LANE_BYTES,
	};
	struct agent *agent;

	list_agent_events(&start, &session->options->events);
	if (!budget_take_ring(&session->budget, &start))
		return refuse(process);
	agent = agent_new(process, &session->profile.strings, &start, kind, control);
	if (!agent)
		return -ENOMEM;
	jvm_share_room(agent->jvm, &session->budget.names);
	process->runtime = agent;
	return vec_push(&session->agents, agent);
}

static int attach(struct session *session, struct process *process, enum attach_kind kind)
{
	struct attach_control control;
	int err = attach_control_new(&control, process->pid);

	return err ? err : session_attach(session, process, kind, &control);
}

/* Judges by the mappings as last read. A sample in an unknown library triggers a new read, so this is enough. */
static bool is_jvm(struct process *process)
{
	process->examined_version = process->maps_version + 1;
	return maps_find_file(&process->maps, "libjvm.so") != NULL;
}

static bool is_left_alone(struct session *session, struct process *process)
{
	bool is_listed = owners_is_listed(&session->owners, process, &session->options->leave_alone);

	if (is_listed)
		log_debug("JVM %d: left alone", process->pid);
	return is_listed;
}

void session_notice(struct session *session, struct process *process)
{
	if (process->examined_version == process->maps_version + 1 || session->options->no_attach ||
	    process->runtime || process->exited || process->pid == getpid() || !is_jvm(process))
		return;
	if (is_left_alone(session, process))
		return;
	attach(session, process, session->started_ns ? ATTACH_STARTING : ATTACH_RUNNING);
}

/* Attaches again when the retry is due. If that fails for lack of memory or budget, it was the last try. */
static void try_again(struct session *session, struct agent *agent, uint64_t now_ns)
{
	if (agent->state != AGENT_FAILED || !agent->retry_ns || now_ns < agent->retry_ns)
		return;
	agent->retry_ns = 0;
	loader_counters[DUET_LOADER_JVMS_ENDED] += agent->process->exited;
	/* Its container, user or main class may have been unknown when it was noticed. */
	if (!agent->process->exited && agent->process->runtime == agent && !is_left_alone(session, agent->process))
		attach(session, agent->process, ATTACH_RUNNING);
}

void session_step_agents(struct session *session, const struct pollfd *fds, size_t count)
{
	uint64_t now_ns = clock_monotonic_ns();

	attach_collect(now_ns);
	for (size_t i = 0; i < count; i++) {
		progress(session, session->agents.items[i], fds[i].revents);
		try_again(session, session->agents.items[i], now_ns);
	}
	if (session->started_ns) /* before, session_start() needs the failed agents */
		session_free_useless(session);
}

/* ---- exec ---- */

/*
 * An agent that was attached after the exec belongs to the program that runs now: /proc showed the JVM before this
 * record arrived. The agent on the command line that we started arrives with the exec. All other agents end with the
 * old program.
 */
bool session_agent_survives_exec(const struct session *session, const struct agent *agent, uint64_t exec_ns)
{
	return agent->begun_ns > exec_ns || (agent->process->pid == session->child && agent->state < AGENT_RUNNING);
}

/* Stops the agent in case its JVM still runs: otherwise it would block the next attach. */
void session_drop_agent(struct session *session, struct agent *agent)
{
	enum agent_state before = agent->state;

	join_flush(session->join, agent);
	agent->process->runtime = NULL;
	if (before != AGENT_RUNNING)
		return; /* on_running() stops it when it gets there */
	agent_stop(agent);
	session_agent_changed(session, agent, before);
}
