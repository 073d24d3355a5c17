/* SPDX-License-Identifier: MIT */
/* The way of a record from BPF's ring or an agent's ring into the join, and from there into the profile. */
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "collect/collector.h"
#include "collect/sleepers/sleepers.h"
#include "duet_jvm.h"
#include "proc/process.h"
#include "session/internal.h"

#define FORGET_NS (2 * JOIN_WAIT_NS + PENDING_WAIT_NS)
#define READ_PART 256 /* most records that are read before memory is checked */
#define DISORDER_NS NS_PER_MS /* a record is written when its stack was walked, so later than its time */
#define READ_PARTS 4096
#define READ_NS (NS_PER_SEC / 50)

static void on_decided(void *context, struct origin *origin, const struct duet_sample *sample,
		       const struct duet_java_sample *java, enum join_outcome outcome)
{
	struct session *session = context;

	pending_add(&session->pending, &(struct decision){.origin = origin,
							  .process = origin->process,
							  .jvm = agent_of(origin)->jvm,
							  .sample = sample,
							  .java = java,
							  .outcome = outcome});
}

static bool ask_agent(void *context, struct origin *origin, const struct duet_want *wants, size_t count)
{
	struct session *session = context;
	struct agent *agent = agent_of(origin);

	if (agent->state == AGENT_GONE || agent->state == AGENT_FAILED)
		return false;
	jvms_ask(&session->jvms, agent, wants, count);
	return true;
}

int intake_open(struct session *session)
{
	session->intake.short_lived.processes = &session->processes;
	return pending_open(&session->pending, &(struct pending_deps){
						       .sink = {session->options, &session->profile, session->symbols,
								&session->owners, &session->windows.written},
						       .handler = on_decided,
						       .ask = ask_agent,
						       .context = session,
					       });
}

void intake_release(struct session *session)
{
	deep_stacks_release(&session->intake.deep_stacks);
	early_release(&session->intake.early);
	short_lived_release(&session->intake.short_lived);
}

static void empty_rings(void *context)
{
	struct session *session = context;

	collector_keep(session->engine.collector);
	collector_read_mappings(session->engine.collector, &session->intake.short_lived.log,
				&loader_counters[DUET_LOADER_MAPPINGS_LOST]);
}

void intake_begin(struct session *session)
{
	charge_set_pause(empty_rings, session);
	session->pending.sink.has_bpf = !session->engine.row->standalone;
	if (session->engine.row->standalone)
		sink_share_clock(&session->pending.sink, &session->options->events);
	session->intake.short_lived.collector = session->engine.collector;
}

struct process *intake_process(struct session *session, const struct duet_sample *sample)
{
	struct process *process =
		process_get(&session->processes, (pid_t)sample->head.tgid, sample->start_ns / NS_PER_TICK);

	if (!process) {
		loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
		return NULL;
	}
	short_lived_map(&session->intake.short_lived, process, sample);
	jvms_notice(&session->jvms, process);
	if (!collected_of(process)->published_version || sample->flags & DUET_SAMPLE_UNKNOWN_CODE) {
		unwinding_read_maps(&session->unwinding, process);
		unwinding_want(&session->unwinding, process);
	}
	return process;
}

void intake_on_sample(struct session *session, const struct duet_sample *record)
{
	const struct duet_sample *sample = deep_stacks_join(&session->intake.deep_stacks, record);
	struct process *process = intake_process(session, sample);
	enum join_outcome outcome = JOIN_STANDALONE;
	struct agent *agent;

	if (!process)
		return;
	if (sample->role == DUET_ROLE_EARLY)
		return early_add(&session->intake.early, &process->payer, sample);
	overhead_note_sample(&session->overhead);
	agent = agent_in_charge(jvm_process(process)->agent);
	if (agent && sample->flags & DUET_SAMPLE_SIGNALLED) {
		agent->signalled++;
		session->overhead.signals++;
	}
	if (agent && sample->flags & DUET_SAMPLE_JVM && sample->ns_tid != agent->tid) {
		jvms_note_walk(&session->jvms, agent, sample);
		return (void)join_sample(session->pending.join, &agent->origin, sample, clock_monotonic_ns());
	}
	if (agent && sample->ns_tid == agent->tid) {
		agent->host_tid = (pid_t)sample->head.tid;
		outcomes_add_own(&session->pending.sink.outcomes, sample);
		outcome = JOIN_OWN;
	}
	loader_counters[DUET_LOADER_JVM_UNREAD] += jvm_process(process)->is_unread;
	pending_add(&session->pending, &(struct decision){.process = process, .sample = sample, .outcome = outcome});
}

/* The process executed another program: its old JVM has ended, and the new program may be another JVM. */
static void on_exec(struct session *session, const struct duet_process_record *record)
{
	pid_t pid = (pid_t)record->head.tgid;
	struct process *process = process_find(&session->processes, pid);
	bool is_read; /* /proc has shown the new program already */

	if (!process || process->start_ticks != record->start_ns / NS_PER_TICK)
		return; /* the record is of a new process with this pid, which has no sample yet */
	is_read = process->read_ns > record->head.time_ns;
	if (!is_read)
		pending_flush(&session->pending, process);
	jvms_exec(&session->jvms, process, record->head.time_ns);
	owners_exec(process);
	unwinding_forget(&session->unwinding, process);
	if (!is_read)
		process_exec(process);
}

static void on_end(struct session *session, pid_t pid)
{
	struct process *process = process_find(&session->processes, pid);

	if (!process)
		return;
	unwinding_forget(&session->unwinding, process);
	process_exit(process);
}

static void on_slept(struct session *session, const struct duet_slept_record *record)
{
	const struct duet_sample *sample = early_take(&session->intake.early, record);

	if (sample)
		intake_on_sample(session, sample);
	else
		loader_counters[DUET_LOADER_NO_EARLY]++;
}

static void on_kernel_record(void *context, const struct duet_record *record)
{
	struct session *session = context;

	if (record->type == DUET_RECORD_SAMPLE) {
		session->intake.newest_ns = record->time_ns;
		intake_on_sample(session, (const struct duet_sample *)record);
	} else if (record->type == DUET_RECORD_SLEPT)
		on_slept(session, (const struct duet_slept_record *)record);
	else if (record->type == DUET_RECORD_FRAMES)
		deep_stacks_add(&session->intake.deep_stacks, (const struct duet_frames_record *)record);
	else if (record->type == DUET_RECORD_EXEC)
		on_exec(session, (const struct duet_process_record *)record);
	else if (record->type == DUET_RECORD_EXIT)
		on_end(session, (pid_t)record->tgid);
	else if (record->type == DUET_RECORD_CGROUP)
		containers_made(&session->owners.containers, ((const struct duet_cgroup_record *)record)->id,
				((const struct duet_cgroup_record *)record)->path);
}

static void on_agent_sample(struct session *session, struct agent *agent, const struct duet_sample *record)
{
	union claimed_sample claimed;
	const struct duet_sample *sample = claims_take(&session->jvms, agent, record, &claimed);

	if (!sample)
		return;
	overhead_note_sample(&session->overhead);
	session->overhead.signals += !(sample->flags & (DUET_SAMPLE_CALLED | DUET_SAMPLE_OFF_CPU));
	join_sample(session->pending.join, &agent->origin, sample, clock_monotonic_ns());
}

/* A standalone engine ticks, and its agent looks at sleepers, from its own start on, which may be seconds earlier. */
static bool is_early(const struct session *session, uint16_t type, const void *payload)
{
	const struct duet_java_sample *half = payload;
	const struct duet_sample *sample = payload;
	uint64_t time_ns = UINT64_MAX;

	if (type == DUET_AGENT_JAVA_SAMPLE)
		time_ns = half->time_ns;
	else if (type == DUET_AGENT_SAMPLE)
		time_ns = sample->head.time_ns;
	return session->engine.row->standalone && (!session->started_ns || time_ns < session->started_ns);
}

static void on_agent_record(void *context, struct agent *agent, uint16_t type, const void *payload, uint32_t size)
{
	struct session *session = context;

	if (!claims_check(agent, type, payload) || is_early(session, type, payload))
		return;
	if (type == DUET_AGENT_JAVA_SAMPLE)
		join_offer(session->pending.join, &agent->origin, payload, size, clock_monotonic_ns());
	else if (type == DUET_AGENT_SAMPLE)
		on_agent_sample(session, agent, payload);
	else
		deep_stacks_add(&agent->deep_stacks, payload);
}

/* Returns the time until which the ring of all CPUs has been read, if its newest record is of this time. */
static uint64_t before_ns(uint64_t newest_ns)
{
	return newest_ns > DISORDER_NS ? newest_ns - DISORDER_NS : 0;
}

/*
 * Reads BPF's ring in parts and checks memory between them. Deep stacks take a millisecond each, so reading stops after
 * READ_NS: the next call reads on, and the recording may end before it. Returns true when the ring is empty.
 */
static bool read_kernel(struct session *session, uint64_t now_ns)
{
	for (int part = 0; part < READ_PARTS; part++) {
		int got = collector_read(session->engine.collector, on_kernel_record, session, READ_PART,
				      &loader_counters[DUET_LOADER_BAD_RECORD]);

		pending_run(&session->pending, now_ns);
		session->pending.kernel_ns = got < READ_PART ? now_ns : before_ns(session->intake.newest_ns);
		budget_step(&session->budget, now_ns);
		if (got < READ_PART)
			return true;
		if (clock_monotonic_ns() - now_ns > READ_NS)
			return false;
	}
	return false;
}

static bool is_libjvm(const struct mapping_note *note)
{
	return note->kind == MAPPING_NOTE_MAPPED && duet_is_libjvm(note->mapping.path);
}

/* Returns NULL if its user has used up the allowance: it may map libjvm.so thousands of times a second. */
static struct process *process_noted(struct session *session, pid_t pid)
{
	struct process *process = process_find(&session->processes, pid);
	struct charge charge;

	if (process && !process->exited && !charge_begin(&charge, process))
		return NULL;
	if (!process || process->exited)
		charge_begin_unknown(&charge, pid);
	process = process_get(&session->processes, pid, 0);
	if (process)
		charge.payer = process->payer;
	(void)charge_end(&charge);
	return process;
}

/* Looks for JVMs after the first tick, by records that libjvm.so is mapped. Before, the recording's start does. */
static void notice_new_jvms(struct session *session)
{
	const struct mapping_note *note;

	while (session->jvms.is_ticking &&
	       (note = mapping_log_next(&session->intake.short_lived.log, &session->intake.jvms_seen))) {
		struct process *process = is_libjvm(note) ? process_noted(session, note->pid) : NULL;

		if (!process || process->exited)
			continue;
		process_refresh_maps(process, clock_monotonic_ns(), 1);
		if (session->options->host
			    ? selection_has(&session->selection, process) /* the records are of all */
			    : collector_is_target(session->engine.collector, process->pid, process->start_ticks))
			jvms_notice(&session->jvms, process);
	}
}

/* Reads the agents before BPF. So the sample of every Java half that was read is read, too (join.h). */
bool intake_read(struct session *session)
{
	struct intake *intake = &session->intake;
	uint64_t now_ns = clock_monotonic_ns();
	bool all;

	collector_read_mappings(session->engine.collector, &session->intake.short_lived.log,
			     &loader_counters[DUET_LOADER_MAPPINGS_LOST]);
	notice_new_jvms(session);
	jvms_read(&session->jvms, now_ns, FORGET_NS, on_agent_record, session);
	all = read_kernel(session, now_ns);
	if (all)
		intake->read_ns = now_ns;
	else if (intake->newest_ns > intake->read_ns)
		intake->read_ns = intake->newest_ns;
	for (size_t i = 0; i < session->jvms.agents.len; i++)
		agent_ask(session->jvms.agents.items[i]);
	return all;
}

#define PREVIEW_NS (10 * NS_PER_SEC)
#define FIRST_PREVIEW_NS (NS_PER_SEC / 10)
/* The walk begins this long before an edge; at the edge, those are walked that fell asleep since. */
#define AHEAD_NS NS_PER_SEC
#define LATE_AHEAD_NS (NS_PER_SEC / 5) /* the same while processes lack rows for the walk */
/* A walk at the end that takes longer is followed by a second one, for the threads that fell asleep meanwhile. */
#define LONG_WALK_NS (2 * NS_PER_MS)
/* Longest time at the end to prepare processes for the walk, to walk, and to take the samples. */
#define PREPARE_NS (3 * NS_PER_SEC / 10)
#define WALK_NS NS_PER_SEC
#define PASS_NS (NS_PER_SEC / 2)
#define PREPARE_SLICE_NS (20 * NS_PER_MS)
#define BUSY_TIMES 2 /* these are CPU time; on a busy machine the same work takes longer */

/* Returns NULL if the engine or the events do not show threads that sleep. */
static struct sleepers *sleepers_of(const struct session *session)
{
	return session->engine.collector ? collector_sleepers(session->engine.collector) : NULL;
}

static void meet(void *context, const struct duet_sample *sample)
{
	(void)intake_process(context, sample);
}

static void take(void *context, const struct duet_sample *sample)
{
	struct session *session = context;
	const struct process *process = process_find(&session->processes, (pid_t)sample->head.tgid);
	struct charge charge;

	if (process && !charge_begin(&charge, process)) {
		loader_counters[DUET_LOADER_SLEEPERS_FULL]++;
		return;
	}
	intake_on_sample(session, sample);
	if (process)
		(void)charge_end(&charge);
}

/* Some CPU time of duet, or some time. */
struct limit {
	uint64_t cpu_ns, until_ns;
};

static struct limit limit_of(uint64_t cpu_ns)
{
	return (struct limit){charge_all_ns() + cpu_ns, clock_monotonic_ns() + BUSY_TIMES * cpu_ns};
}

static bool is_over(const struct limit *limit)
{
	return charge_all_ns() >= limit->cpu_ns || clock_monotonic_ns() >= limit->until_ns;
}

/* Counts a failure. The first one of the process is explained. */
static void check(int err)
{
	if (err >= 0)
		return;
	if (!loader_counters[DUET_LOADER_SLEEPERS_UNLISTED]++)
		log_warn("some threads that sleep at the end of a window may be missing: listing them failed: %s",
			 strerrordesc_np(-err));
}

/* One slice of it. */
static void preview(struct session *session, struct sleepers *sleepers, uint64_t now_ns)
{
	int more = sleepers_preview(sleepers, meet, session);

	check(more);
	session->edges.is_previewing = more > 0;
	session->edges.prepared_ns = now_ns;
}

/* One slice of it. */
static void walk_ahead(struct session *session, struct sleepers *sleepers, uint64_t edge_ns)
{
	int more = sleepers_walk(sleepers, &session->processes);

	check(more);
	session->edges.is_previewing = false;
	session->edges.is_walking = more > 0;
	session->edges.walked_ns = edge_ns;
	session->is_behind |= more > 0;
}

static void walk_once(struct session *session, struct sleepers *sleepers, const struct limit *limit)
{
	int more;

	while ((more = sleepers_walk(sleepers, &session->processes)) > 0 && !is_over(limit))
		intake_read(session);
	check(more);
	if (more > 0)
		sleepers_stop_walk(sleepers);
}

/*
 * The rings are read after each slice of this, and of pass(). What is left at the limit is counted. After a long walk,
 * those are walked that fell asleep meanwhile.
 */
static void walk(struct session *session, struct sleepers *sleepers)
{
	const struct limit limit = limit_of(WALK_NS);
	bool is_long = session->edges.is_walking;
	uint64_t begun_ns = clock_monotonic_ns();

	session->edges.is_previewing = false;
	session->edges.is_walking = false;
	walk_once(session, sleepers, &limit);
	if (is_long || clock_monotonic_ns() - begun_ns > LONG_WALK_NS)
		walk_once(session, sleepers, &limit);
}

static void pass(struct session *session, struct sleepers *sleepers)
{
	const struct limit limit = limit_of(PASS_NS);
	bool more;

	while ((more = sleepers_pass(sleepers, take, session)) && !is_over(&limit))
		intake_read(session);
	if (more)
		loader_counters[DUET_LOADER_SLEEPERS_FULL] += sleepers_stop_pass(sleepers);
}

/* Returns when the next window or the recording ends, as far as that is known. */
static uint64_t next_edge(const struct session *session)
{
	uint64_t until_ns = session->profile.until_ns ? session->profile.until_ns : UINT64_MAX;
	uint64_t end_ns = session_end_ns(session);

	return until_ns != session->edges.sampled_ns && until_ns < end_ns ? until_ns : end_ns;
}

void sleep_edges_step(struct session *session, uint64_t now_ns)
{
	struct sleepers *sleepers = sleepers_of(session);
	struct sleep_edges *edges = &session->edges;
	uint64_t edge_ns = next_edge(session);
	uint64_t ahead_ns = unwinding_has_work(&session->unwinding) ? LATE_AHEAD_NS : AHEAD_NS;

	if (!sleepers)
		return;
	if (edges->is_previewing || (!edges->is_walking && now_ns - session->started_ns > FIRST_PREVIEW_NS &&
				     now_ns - edges->prepared_ns > PREVIEW_NS))
		preview(session, sleepers, now_ns);
	if (edges->is_walking || (now_ns + ahead_ns >= edge_ns && edges->walked_ns != edge_ns))
		walk_ahead(session, sleepers, edge_ns);
	now_ns = clock_monotonic_ns();
	if (now_ns >= edge_ns && edge_ns == session->profile.until_ns) {
		walk(session, sleepers);
		check(sleepers_ask(sleepers, edge_ns));
		pass(session, sleepers);
		edges->sampled_ns = edge_ns;
	}
}

void sleep_edges_flush(struct session *session)
{
	struct sleepers *sleepers = sleepers_of(session);

	if (!sleepers)
		return;
	walk(session, sleepers);
	check(sleepers_ask(sleepers, clock_monotonic_ns()));
	pass(session, sleepers);
}

void sleep_edges_end(struct session *session)
{
	struct sleepers *sleepers = sleepers_of(session);
	const struct limit limit = limit_of(PREPARE_NS);

	if (!sleepers)
		return;
	while ((!session->edges.prepared_ns || session->edges.is_previewing) && !is_over(&limit))
		preview(session, sleepers, clock_monotonic_ns());
	while (unwinding_has_work(&session->unwinding) && !is_over(&limit)) {
		unwinding_work(&session->unwinding, &session->processes, clock_monotonic_ns() + PREPARE_SLICE_NS);
		intake_read(session);
	}
	walk(session, sleepers);
	check(sleepers_ask(sleepers, clock_monotonic_ns()));
}

void sleep_edges_pass(struct session *session)
{
	struct sleepers *sleepers = sleepers_of(session);

	if (sleepers)
		pass(session, sleepers);
}
