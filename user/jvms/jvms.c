/* SPDX-License-Identifier: MIT */
#include "jvms/jvms.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "attach/children.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/text.h"
#include "event/event.h"
#include "profile/profile.h"
#include "subject/program.h"

#define SAMPLE_LANE_MIN (1u << 20)
#define SAMPLE_LANE_MAX (64u << 20)
#define TAP_LANE_BYTES (8u << 20)
/* the agent waits when the lane is full; it holds two polls' worth of a large JVM's code */
#define METADATA_LANE_BYTES (4u << 20)
#define TABLES_BYTES (16u << 20) /* pages are touched only as far as they are filled; libjvm.so takes 1.5 MB */
#define JAVA_SAMPLE_BYTES 2048 /* record of a typical stack, for the size of the lane */
/* A JVM that is read from outside gets an agent when this share of its last walks was cut. */
#define WALKS_TO_JUDGE 200
#define CUT_PERCENT 3
#define HURRY_NS (NS_PER_SEC / 5) /* a requested name arrives within this time */
/* A JVM that has just begun meets new methods all the time, and may end before they are read. */
#define YOUNG_NS (2 * NS_PER_SEC)
#define LET_END_NS (3 * NS_PER_SEC / 10) /* a JVM that shuts down waits no longer: LAST_WORDS_NS of the agent */
#define LIVES_TO_WAIT 200 /* half a percent of a JVM's life so far is what may be lost at its end */

void jvms_open(struct jvms *jvms, const struct options *options, const struct jvms_deps *of)
{
	jvms->options = options;
	jvms->of = *of;
	jvms->begun_ns = clock_monotonic_ns();
}

void jvms_release(struct jvms *jvms)
{
	for (size_t i = 0; i < jvms->agents.len; i++)
		agent_set_outside(jvms->agents.items[i], NULL);
	for (size_t i = 0; i < jvms->agents.len; i++)
		agent_free(jvms->agents.items[i]);
	children_wait();
	vec_release(&jvms->agents);
}

/* ---- agents and readers from outside ---- */

static void hurry(struct jvms *jvms, uint64_t for_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + for_ns;

	if (jvms->hurry_ns < until_ns)
		jvms->hurry_ns = until_ns;
}

/*
 * Returns after how long names of this JVM may be asked for. A reader cannot name what a JVM ran in this time before it
 * ended, or before it unloaded the classes. Each round of questions costs both processes a wake-up and a system call,
 * more than a name does.
 */
static uint64_t answers_wait_ns(const struct agent *agent, uint64_t now_ns)
{
	uint64_t unloaded_ns = jvm_unloaded_ns(agent->jvm);

	if (!agent->reader || (unloaded_ns && now_ns - unloaded_ns < YOUNG_NS))
		return 0;
	return process_age_ns(agent->origin.process) / LIVES_TO_WAIT;
}

static void expect_answers(struct jvms *jvms, const struct agent *agent, uint64_t now_ns)
{
	uint64_t wait_ms = answers_wait_ns(agent, now_ns) / NS_PER_MS;

	if (wait_ms <= JVMS_HURRY_MS)
		return hurry(jvms, HURRY_NS);
	if (now_ns >= jvms->answers_ns || wait_ms < jvms->answers_ms)
		jvms->answers_ms = wait_ms < UINT_MAX ? (unsigned int)wait_ms : UINT_MAX;
	jvms->answers_ns = now_ns + HURRY_NS;
}

static bool is_in_charge(const struct agent *agent)
{
	return agent_in_charge(jvm_process(agent->origin.process)->agent) == agent;
}

/* Returns true if the agent or reader belongs to the program that its process runs now. */
static bool is_current(const struct agent *agent)
{
	const struct agent *current = jvm_process(agent->origin.process)->agent;

	return current == agent || (current && current->outside == agent);
}

/* ---- what BPF knows of a JVM ---- */

static void tell_layout(struct jvms *jvms, struct agent *agent)
{
	struct duet_jvm_entry entry = {.start_ticks = agent->origin.process->start_ticks};

	if (agent->state != AGENT_RUNNING || agent->layout_published || !jvm_layout(agent->jvm))
		return;
	entry.layout = *jvm_layout(agent->jvm);
	agent->layout_published = !collector_describe(jvms->of.engine->collector, agent->origin.process->pid, &entry);
	jvm_process(agent->origin.process)->is_unread &= !agent->layout_published;
}

/* Allows BPF to signal the process. Called when the handler is installed. */
static int allow_signals(struct jvms *jvms, struct agent *agent)
{
	struct duet_jvm_target target = {
		.start_ticks = agent->origin.process->start_ticks,
		.handler = agent->handler,
		.signo = (uint32_t)agent->signo,
	};

	process_refresh_maps(agent->origin.process, clock_monotonic_ns(), 1);
	if (agent->unwinding.tables)
		unwinding_publish_now(&agent->unwinding, agent->origin.process);
	if (!jvms->of.engine->row->standalone)
		unwinding_want(jvms->of.unwinding, agent->origin.process);
	if ((agent->start.engine == DUET_ENGINE_NONE && !agent->reader) || agent->is_native)
		return 0;
	return collector_allow(jvms->of.engine->collector, agent->origin.process->pid, &target);
}

/* ---- what it has ---- */

/* An agent may replace its reader, so each JVM is counted once. */
static void note_source(struct jvms *jvms, const struct agent *agent)
{
	uint8_t *source = &jvm_process(agent->origin.process)->source;
	uint64_t *count = jvms->agents.sources;

	if (agent->is_native)
		return;
	if (*source != JVM_UNREAD)
		count[*source]--;
	if (*source == JVM_UNREAD)
		*source = agent->reader ? JVM_OUTSIDE : JVM_AGENT;
	else if (*source == JVM_OUTSIDE && !agent->reader)
		*source = JVM_BOTH;
	count[*source]++;
}

static void on_running(struct jvms *jvms, struct agent *agent)
{
	if (!is_current(agent)) /* attached before an exec, so not for this program */
		return agent_stop(agent);
	if (!is_in_charge(agent)) /* a reader that comes too late, see retire_reader() */
		return;
	note_source(jvms, agent);
	owners_note(jvms->of.owners, agent->origin.process);
	if (agent->outside)
		jvm_set_other(agent->jvm, agent->outside->jvm);
	allow_signals(jvms, agent);
	sources_watch_locks(jvms, agent);
	if (agent->engine != agent->start.engine && !jvms->agents.other_engine++) /* a host may have hundreds */
		log_warn("JVM %d: its ticks are timers, without kernel frames: %s", agent->origin.process->pid,
			 agent->why);
	sources_probe(jvms, agent->origin.process);
	sources_report_refused(jvms, agent);
	hurry(jvms, answers_wait_ns(agent, clock_monotonic_ns()) > JVMS_HURRY_MS * NS_PER_MS ? HURRY_NS : YOUNG_NS);
	if (jvm_process(agent->origin.process)->attach_failures)
		log_info("JVM %d: the agent is attached now", agent->origin.process->pid);
	if (agent->is_native) { /* it may have a JVM that the library has not found */
		jvm_process(agent->origin.process)->examined_version = 0;
		jvms_notice(jvms, agent->origin.process);
	}
}

static void agent_changed(struct jvms *jvms, struct agent *agent, enum agent_state before)
{
	const struct agent *current = jvm_process(agent->origin.process)->agent;
	bool is_replaced = agent->reader && current && current != agent && current->state == AGENT_RUNNING;

	if (agent->state == before)
		return;
	if (agent->vm[0] && is_in_charge(agent))
		subject_of(agent->origin.process)->vm = intern_str(&jvms->of.profile->strings, agent->vm);
	if (agent->state == AGENT_RUNNING)
		on_running(jvms, agent);
	if (before == AGENT_RUNNING && !is_replaced) {
		collector_forbid(jvms->of.engine->collector, agent->origin.process->pid);
		jvm_process(agent->origin.process)->has_tlabs = false;
	}
	if (agent->reader && before == AGENT_RUNNING && agent->state == AGENT_GONE)
		readers_replace_later(jvms, agent);
	if (agent->state == AGENT_FAILED)
		readers_note_failure(jvms, agent);
}

/* Stops the agent of a JVM that shuts down once its samples are read and named: the JVM waits for that. */
static void let_end(struct jvms *jvms, struct agent *agent, uint64_t read_ns)
{
	bool is_waiting;

	if (!agent->ending_ns || agent->state != AGENT_RUNNING)
		return;
	hurry(jvms, HURRY_NS);
	is_waiting = read_ns <= agent->ending_ns || agent->origin.awaited || agent->unanswered;
	if (is_waiting && clock_monotonic_ns() <= agent->ending_ns + LET_END_NS)
		return;
	agent_stop(agent);
	agent_changed(jvms, agent, AGENT_RUNNING);
}

void jvms_let_end(struct jvms *jvms, uint64_t read_ns)
{
	for (size_t i = 0; i < jvms->agents.len; i++)
		let_end(jvms, jvms->agents.items[i], read_ns);
}

/* Stops the reader of a JVM whose agent is running, as soon as the reader has answered for the earlier samples. */
static void retire_reader(struct jvms *jvms, struct agent *agent)
{
	struct agent *reader = agent->outside;
	enum agent_state before = reader ? reader->state : AGENT_GONE;

	if (agent->state != AGENT_RUNNING || agent->is_native || before > AGENT_RUNNING || reader->origin.awaited)
		return;
	agent_stop(reader);
	agent_changed(jvms, reader, before);
}

static void progress(struct jvms *jvms, struct agent *agent, bool readable)
{
	enum agent_state before = agent->state;

	if (readable)
		agent_step(agent);
	else
		agent_expire(agent, clock_monotonic_ns());
	agent_changed(jvms, agent, before);
	retire_reader(jvms, agent);
	readers_report_unnamed(jvms, agent);
}

/* ---- attaching ---- */

/* Warns only once: a host may have hundreds of JVMs. */
static int refuse(struct process *process, const char *why)
{
	if (!jvm_process(process)->is_refused && !loader_counters[DUET_LOADER_JVMS_REFUSED]++)
		log_warn("JVM %d: %s: native frames only", process->pid, why);
	jvm_process(process)->is_refused = true;
	return 0;
}

/* Returns the bytes of a lane for the samples of all events. Only the rate of a clock is known in advance. */
static uint64_t lane_bytes(const struct jvms *jvms, const struct process *process)
{
	uint64_t typical = JAVA_SAMPLE_BYTES * (jvms->options->java_depth / DUET_JAVA_DEPTH), bytes = 0;

	for (size_t i = 0; i < jvms->options->events.len; i++) {
		const struct event_spec *spec = &jvms->options->events.items[i];

		if (spec->event->perf.is_clock)
			bytes += NS_PER_SEC / spec->interval * jvms->of.cpus * typical;
		else if (sources_is_agent(jvms, process, spec->event))
			bytes += TAP_LANE_BYTES;
		if (jvms->of.engine->row->standalone && spec->event->also_shows)
			bytes += TAP_LANE_BYTES;
	}
	return bytes < SAMPLE_LANE_MIN ? SAMPLE_LANE_MIN : bytes > SAMPLE_LANE_MAX ? SAMPLE_LANE_MAX : bytes;
}

/* Without BPF, the agent takes the samples of time off the CPU, which wall shows as its own. */
static void add_agent_sleeps(struct agent_start *start, const struct event_spec *spec, uint32_t index)
{
	const struct event *sleeps = spec->event->also_shows;

	if (sleeps && sleeps->agent == DUET_AGENT_EVENT_OFFCPU)
		start->events[start->event_count++] = (struct duet_agent_event){
			.interval = spec->interval, .kind = sleeps->agent, .index = index};
}

static void list_agent_events(const struct jvms *jvms, const struct process *process, struct agent_start *start)
{
	const struct event_spec *clock = event_list_agent_clock(&jvms->options->events);

	for (uint32_t i = 0; i < jvms->options->events.len; i++) {
		const struct event_spec *spec = &jvms->options->events.items[i];
		const struct event_place *place = &spec->event->place;
		struct duet_agent_event *to;

		if (!sources_is_agent(jvms, process, spec->event))
			continue;
		if (jvms->of.engine->row->standalone)
			add_agent_sleeps(start, spec, i);
		if (spec->event->agent == DUET_AGENT_EVENT_CLOCK && spec != clock)
			continue;
		to = &start->events[start->event_count];
		*to = (struct duet_agent_event){.interval = spec->interval, .kind = spec->event->agent, .index = i};
		to->flags = (jvms->options->as_called ? DUET_AGENT_AS_CALLED : 0) |
			    (jvms->options->alloc_native ? DUET_AGENT_WITH_NATIVE : 0) |
			    (jvms->options->ages ? DUET_AGENT_WITH_AGE : 0) |
			    (jvms->options->holders ? DUET_AGENT_WITH_LOCK : 0) |
			    (jvms->options->bpf.compiling ? DUET_AGENT_WITH_COMPILING : 0);
		to->survivors = jvms->options->survivors;
		if (!event_has_ticks(spec->event) && place->name) {
			text_copy_surrogates(to->target, sizeof(to->target), place->name);
			to->threshold_ns = place->offset;
		}
		start->event_count++;
	}
}

/* Adds an agent (NULL: no memory), which describes the process's JVM from now on. Returns 0 or -ENOMEM. */
static int add_agent(struct jvms *jvms, struct process *process, struct agent *agent)
{
	struct agent *before = jvm_process(process)->agent;

	if (!agent)
		return -ENOMEM;
	jvm_set_payer(agent->jvm, &agent->origin.process->payer);
	agent_set_outside(agent, before && !before->reader ? before->outside : before);
	jvm_process(process)->agent = agent;
	return vec_push(&jvms->agents, agent);
}

/* Judges by the mappings as last read. A sample in an unknown library triggers a new read, so this is enough. */
static bool is_jvm(struct process *process)
{
	jvm_process(process)->examined_version = process->maps_version + 1;
	return maps_libjvm(&process->maps) != NULL;
}

int jvms_attach(struct jvms *jvms, struct process *process, enum attach_kind kind, const char *cause,
		const struct attach_control *control)
{
	bool has_ticks = sources_needs_layout(jvms, process);
	const struct engine *engine = jvms->of.engine->row;
	bool has_tables = engine->standalone || jvms->options->alloc_native ||
			  event_list_needs_tables(&jvms->options->events);
	struct attach_control own;
	int err = control ? 0 : attach_control_new(&own, process->pid);
	bool takes_ticks = has_ticks && (engine->standalone ? engine_ticks_for(engine, &jvms->options->events)
							 : !jvms->options->loaded_agent || is_jvm(process));
	struct agent_start start = {
		.payer = process->payer,
		.engine = takes_ticks ? engine->agent : DUET_ENGINE_NONE,
		.is_engine_asked = engine == &engines[jvms->options->engine],
		.java_depth = jvms->options->java_depth,
		.tables_bytes = has_tables ? TABLES_BYTES : 0,
		.sample_lane_bytes = lane_bytes(jvms, process),
		.metadata_lane_bytes = METADATA_LANE_BYTES,
		.newest_fd = collector_newest_fd(jvms->of.engine->collector),
	};

	if (err)
		return err;
	if (jvms->of.engine->collector)
		start.newest = start.newest_fd < 0 ? DUET_NEWEST_UNKNOWN : DUET_NEWEST_SHARED;
	list_agent_events(jvms, process, &start);
	if (!jvms->of.take_ring(jvms->of.context, &start))
		return refuse(process, JVMS_NO_ROOM);
	return add_agent(jvms, process, agent_new(process, &jvms->of.profile->strings, &start, kind, cause,
						  control ? control : &own));
}

static bool is_left_alone(struct jvms *jvms, struct process *process)
{
	bool is_listed = owners_is_listed(jvms->of.owners, process, &jvms->options->leave_alone);

	if (is_listed)
		log_debug("JVM %d: left alone", process->pid);
	return is_listed;
}

const char *jvms_attach_cause(const struct jvms *jvms, const struct process *process)
{
	if (jvms->options->agent == AGENT_NEVER)
		return NULL;
	if (jvms->of.engine->row->standalone)
		return "it takes the samples";
	if (sources_needs_agent(jvms, process))
		return "an event comes from it";
	if (jvms->options->bpf.signals == DUET_SIGNALS_ALWAYS)
		return "--signals always";
	return jvms->options->agent == AGENT_ALWAYS ? "--agent always" : NULL;
}

void jvms_notice(struct jvms *jvms, struct process *process)
{
	const struct agent *agent = jvm_process(process)->agent;
	/* an agent may have begun before its process was a JVM: then nobody reads the JVM yet */
	bool is_read = agent && (!agent->is_native || agent->outside);
	const char *cause, *unread = NULL;

	if (jvm_process(process)->examined_version == process->maps_version + 1 || is_read || process->exited ||
	    clock_monotonic_ns() < jvm_process(process)->notice_ns || process->pid == getpid() || !is_jvm(process))
		return;
	jvms->has_met = true;
	if (!jvms->of.engine->row->standalone && sources_needs_layout(jvms, process))
		unread = readers_start(jvms, process);
	if (agent) /* the library is in the process already, and listens for one loader */
		return;
	cause = jvms_attach_cause(jvms, process);
	if (!cause && jvms->options->agent == AGENT_NEEDED)
		cause = unread;
	if (cause && !is_left_alone(jvms, process))
		jvms_attach(jvms, process, jvms->is_ticking ? ATTACH_STARTING : ATTACH_RUNNING, cause, NULL);
	else if (unread)
		refuse(process, unread);
}

/*
 * Attaches to replace an agent that failed, or a reader whose walks are cut. Checks again whether this JVM may get an
 * agent: its container, user or main class may have been unknown when it was noticed.
 */
static void attach_instead(struct jvms *jvms, struct agent *agent, const char *cause)
{
	if (jvm_process(agent->origin.process)->agent == agent && !agent->origin.process->exited &&
	    !is_left_alone(jvms, agent->origin.process))
		jvms_attach(jvms, agent->origin.process, ATTACH_RUNNING, cause, NULL);
}

void jvms_note_walk(struct jvms *jvms, struct agent *agent, const struct duet_sample *sample)
{
	if (!agent->reader || sample->flags & DUET_SAMPLE_UNKNOWN_CODE)
		return;
	agent->walks++;
	agent->cut += !(sample->flags & DUET_SAMPLE_USER_COMPLETE);
	if (agent->walks < WALKS_TO_JUDGE)
		return;
	if (jvms->options->agent == AGENT_NEEDED && agent->cut > WALKS_TO_JUDGE * CUT_PERCENT / 100)
		attach_instead(jvms, agent, "its walks were cut");
	agent->walks = agent->cut = 0;
}

/* Attaches again, or starts another reader, when that is due. No further try if memory or budget lack. */
static void try_again(struct jvms *jvms, struct agent *agent, uint64_t now_ns)
{
	if (!agent->retry_ns || now_ns < agent->retry_ns)
		return;
	agent->retry_ns = 0;
	if (agent->reader && readers_replace(jvms, agent))
		return;
	loader_counters[DUET_LOADER_JVMS_ENDED] += agent->origin.process->exited;
	attach_instead(jvms, agent, agent->reader ? readers_why_unread(agent) : agent->cause);
}

void jvms_step(struct jvms *jvms, const struct pollfd *fds, size_t count)
{
	uint64_t now_ns = clock_monotonic_ns();

	children_collect(now_ns);
	readers_charge(jvms, now_ns);
	for (size_t i = 0; i < count; i++) {
		progress(jvms, jvms->agents.items[i], fds[i].revents);
		try_again(jvms, jvms->agents.items[i], now_ns);
	}
	if (jvms->is_ticking) /* before that, the start needs the failed agents */
		jvms_free_useless(jvms);
}

/*
 * An agent that was attached after the exec belongs to the program that runs now: /proc showed the JVM before this
 * record arrived. The agent on the command line of a started command arrives with the exec. All other agents end with
 * the old program.
 */
static bool survives_exec(const struct jvms *jvms, const struct agent *agent, uint64_t exec_ns)
{
	return agent->begun_ns > exec_ns || (agent->origin.process->pid == jvms->child && agent->state < AGENT_RUNNING);
}

/* Stops the agent in case its JVM still runs: otherwise it would block the next attach. */
static void drop_agent(struct jvms *jvms, struct agent *agent)
{
	enum agent_state before = agent->state;

	if (before != AGENT_RUNNING && !agent->reader)
		return; /* on_running() stops it later */
	agent_stop(agent);
	agent_changed(jvms, agent, before);
}

void jvms_exec(struct jvms *jvms, struct process *process, uint64_t exec_ns)
{
	struct agent *agent = jvm_process(process)->agent;

	if (!agent || survives_exec(jvms, agent, exec_ns))
		return;
	jvm_process(process)->agent = NULL;
	jvm_process(process)->source = JVM_UNREAD;
	if (agent->outside)
		drop_agent(jvms, agent->outside);
	agent_set_outside(agent, NULL);
	drop_agent(jvms, agent);
}

struct reading {
	void (*handler)(void *context, struct agent *agent, uint16_t type, const void *payload, uint32_t size);
	void *context;
	struct agent *agent;
};

static void on_record(void *context, uint16_t type, const void *payload, uint32_t size)
{
	const struct reading *reading = context;

	reading->handler(reading->context, reading->agent, type, payload, size);
}

void jvms_read(struct jvms *jvms, uint64_t now_ns, uint64_t forget_ns,
	       void (*handler)(void *context, struct agent *agent, uint16_t type, const void *payload, uint32_t size),
	       void *context)
{
	bool forget = now_ns - jvms->forgot_ns > forget_ns;

	if (forget)
		jvms->forgot_ns = now_ns;
	for (size_t i = 0; i < jvms->agents.len; i++) {
		struct reading reading = {handler, context, jvms->agents.items[i]};
		enum agent_state before = reading.agent->state;

		agent_read(reading.agent, on_record, &reading);
		agent_changed(jvms, reading.agent, before);
		tell_layout(jvms, reading.agent);
		if (!forget)
			continue;
		jvm_forget(reading.agent->jvm, now_ns - forget_ns);
		agent_forget_asked(reading.agent);
	}
}

void jvms_ask(struct jvms *jvms, struct agent *agent, const struct duet_want *wants, size_t count)
{
	uint64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; i < count; i++)
		if (agent_want(agent, &wants[i], now_ns))
			expect_answers(jvms, agent, now_ns);
}

unsigned int jvms_pace_ms(const struct jvms *jvms, uint64_t now_ns, unsigned int most_ms)
{
	if (!jvms_settled(jvms) || now_ns < jvms->hurry_ns)
		return JVMS_HURRY_MS;
	return now_ns < jvms->answers_ns && jvms->answers_ms < most_ms ? jvms->answers_ms : most_ms;
}

struct unwinding *jvms_unwinding(struct jvms *jvms, struct process *process)
{
	struct agent *agent = jvm_process(process)->agent;

	return agent && jvms->of.engine->row->standalone ? &agent->unwinding : jvms->of.unwinding;
}

bool jvms_settled(const struct jvms *jvms)
{
	for (size_t i = 0; i < jvms->agents.len; i++)
		if (!agent_settled(jvms->agents.items[i]))
			return false;
	return true;
}

bool jvms_any(const struct jvms *jvms, enum agent_state state, enum jvms_doing doing)
{
	for (size_t i = 0; i < jvms->agents.len; i++) {
		const struct agent *agent = jvms->agents.items[i];

		if (agent->state == state && (doing == JVMS_ANYTHING || agent->is_finishing ||
					      (doing == JVMS_BUSY && agent->unanswered)))
			return true;
	}
	return false;
}

void jvms_finish(struct jvms *jvms, enum duet_message_type type, uint64_t ended_ns)
{
	for (size_t i = 0; i < jvms->agents.len; i++)
		agent_finish(jvms->agents.items[i], type, ended_ns);
}

void jvms_stop(struct jvms *jvms)
{
	for (size_t i = 0; i < jvms->agents.len; i++) {
		collector_forbid(jvms->of.engine->collector, jvms->agents.items[i]->origin.process->pid);
		agent_stop(jvms->agents.items[i]);
		jvms->agents.items[i]->retry_ns = 0;
	}
}

void jvms_flush_unfaithful(const struct jvms *jvms, enum agent_state state, const char *what)
{
	for (size_t i = 0; i < jvms->agents.len; i++) {
		const struct agent *agent = jvms->agents.items[i];

		if (agent->state == state && !agent->reader && !process_is_ending(agent->origin.process))
			log_warn("JVM %d: its agent %s: Java frames may be missing", agent->origin.process->pid, what);
	}
}

void jvms_flush_unwalked(const struct jvms *jvms)
{
	for (size_t i = 0; !jvms->of.engine->row->standalone && i < jvms->agents.len; i++) {
		const struct agent *agent = jvms->agents.items[i];

		if (agent->handler && !jvm_layout(agent->jvm))
			log_warn("JVM %d: its layout of Java frames is unknown: every sample is signalled",
				 agent->origin.process->pid);
	}
}
