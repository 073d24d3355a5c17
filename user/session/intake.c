/* SPDX-License-Identifier: MIT */
#include "session/intake.h"

#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/counters.h"
#include "collect/engines.h"
#include "collect/tables/unwinding.h"
#include "join/pending.h"
#include "jvms/claims.h"
#include "jvms/jvms.h"
#include "jvms/new_jvms.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "proc/process.h"
#include "proc/stat.h"
#include "proc/selection.h"
#include "subject/owners.h"

#define FORGET_NS (2 * JOIN_WAIT_NS + PENDING_WAIT_NS)
#define READ_PART 256 /* most records that are read before memory is checked */
#define DISORDER_NS NS_PER_MS /* a record is written when its stack was walked, so later than its time */
#define READ_PARTS 4096
#define READ_NS (NS_PER_SEC / 50)

/* ---- one sample, decided ---- */

static void on_decided(void *context, struct origin *origin, const struct duet_sample *sample,
		       const struct duet_java_sample *java, enum join_outcome outcome)
{
	struct intake *intake = context;

	pending_add(intake->of.pending, &(struct decision){.origin = origin,
							   .process = origin->process,
							   .jvm = agent_of(origin)->jvm,
							   .sample = sample,
							   .java = java,
							   .outcome = outcome});
}

static bool ask_agent(void *context, struct origin *origin, const struct duet_want *wants, size_t count)
{
	struct intake *intake = context;
	struct agent *agent = agent_of(origin);

	if (agent->state == AGENT_GONE || agent->state == AGENT_FAILED)
		return false;
	jvms_ask(intake->of.jvms, agent, wants, count);
	return true;
}

int intake_open(struct intake *intake, const struct intake_deps *of)
{
	intake->of = *of;
	intake->short_lived.processes = of->processes;
	return pending_open(of->pending,
			    &(struct pending_deps){
				    .sink = {of->options, of->profile, of->symbols, of->owners, of->windows},
				    .handler = on_decided,
				    .ask = ask_agent,
				    .context = intake,
			    });
}

void intake_release(struct intake *intake)
{
	parts_release(&intake->parts);
	early_release(&intake->early);
	short_lived_release(&intake->short_lived);
}

void intake_begin(struct intake *intake)
{
	intake->of.pending->sink.has_bpf = !intake->of.engine->row->standalone;
	intake->short_lived.collector = intake->of.engine->collector;
}

/* ---- records ---- */

struct process *intake_meet(struct intake *intake, const struct duet_sample *sample)
{
	struct process *process =
		process_get(intake->of.processes, (pid_t)sample->head.tgid, sample->start_ns / NS_PER_TICK);

	if (!process) {
		loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
		return NULL;
	}
	short_lived_map(&intake->short_lived, process, sample);
	jvms_notice(intake->of.jvms, process);
	if (!collected_of(process)->published_version || sample->flags & DUET_SAMPLE_UNKNOWN_CODE) {
		unwinding_read_maps(intake->of.unwinding, process);
		unwinding_want(intake->of.unwinding, process);
	}
	return process;
}

void intake_on_sample(struct intake *intake, const struct duet_sample *record)
{
	const struct duet_sample *sample = parts_join(&intake->parts, record);
	struct process *process = intake_meet(intake, sample);
	enum join_outcome outcome = JOIN_STANDALONE;
	struct agent *agent;

	if (!process)
		return;
	if (sample->role == DUET_ROLE_EARLY)
		return early_add(&intake->early, sample);
	overhead_note_sample(intake->of.overhead);
	agent = agent_in_charge(jvm_process(process)->agent);
	if (agent && sample->flags & DUET_SAMPLE_SIGNALLED) {
		agent->signalled++;
		intake->of.overhead->signals++;
	}
	if (agent && sample->flags & DUET_SAMPLE_JVM && sample->ns_tid != agent->tid) {
		jvms_note_walk(intake->of.jvms, agent, sample);
		return (void)join_sample(intake->of.pending->join, &agent->origin, sample, clock_monotonic_ns());
	}
	if (agent && sample->ns_tid == agent->tid) {
		agent->host_tid = (pid_t)sample->head.tid;
		outcomes_add_own(&intake->of.pending->sink.outcomes, sample);
		outcome = JOIN_OWN;
	}
	loader_counters[DUET_LOADER_JVM_UNREAD] += jvm_process(process)->is_unread;
	pending_add(intake->of.pending,
		    &(struct decision){.process = process, .sample = sample, .outcome = outcome});
}

/* The process executed another program: its old JVM has ended, and the new program may be another JVM. */
static void on_exec(struct intake *intake, const struct duet_process_record *record)
{
	pid_t pid = (pid_t)record->head.tgid;
	struct process *process = process_find(intake->of.processes, pid);
	bool is_read; /* /proc has shown the new program already */

	if (!process || process->start_ticks != record->start_ns / NS_PER_TICK)
		return; /* the record is of a new process with this pid, which has no sample yet */
	is_read = process->read_ns > record->head.time_ns;
	if (!is_read)
		pending_flush(intake->of.pending, process);
	jvms_exec(intake->of.jvms, process, record->head.time_ns);
	owners_exec(process);
	unwinding_forget(intake->of.unwinding, process);
	if (!is_read)
		process_exec(process);
}

static void on_end(struct intake *intake, pid_t pid)
{
	struct process *process = process_find(intake->of.processes, pid);

	if (!process)
		return;
	unwinding_forget(intake->of.unwinding, process);
	process_exit(process);
}

static void on_cgroup(struct intake *intake, const struct duet_cgroup_record *record)
{
	containers_made(&intake->of.owners->containers, record->id, record->path);
}

static void on_slept(struct intake *intake, const struct duet_slept_record *record)
{
	const struct duet_sample *sample = early_take(&intake->early, record);

	if (sample)
		intake_on_sample(intake, sample);
	else
		loader_counters[DUET_LOADER_NO_EARLY]++;
}

static void on_kernel_record(void *context, const struct duet_record *record)
{
	struct intake *intake = context;

	if (record->type == DUET_RECORD_SAMPLE) {
		intake->newest_ns = record->time_ns;
		intake_on_sample(intake, (const struct duet_sample *)record);
	} else if (record->type == DUET_RECORD_SLEPT)
		on_slept(intake, (const struct duet_slept_record *)record);
	else if (record->type == DUET_RECORD_FRAMES)
		parts_add(&intake->parts, (const struct duet_frames_record *)record);
	else if (record->type == DUET_RECORD_EXEC)
		on_exec(intake, (const struct duet_process_record *)record);
	else if (record->type == DUET_RECORD_EXIT)
		on_end(intake, (pid_t)record->tgid);
	else if (record->type == DUET_RECORD_CGROUP)
		on_cgroup(intake, (const struct duet_cgroup_record *)record);
}

static void on_agent_sample(struct intake *intake, struct agent *agent, const struct duet_sample *record)
{
	union claimed_sample claimed;
	const struct duet_sample *sample = claims_take(intake->of.jvms, agent, record, &claimed);

	if (!sample)
		return;
	overhead_note_sample(intake->of.overhead);
	intake->of.overhead->signals += !(sample->flags & DUET_SAMPLE_CALLED);
	join_sample(intake->of.pending->join, &agent->origin, sample, clock_monotonic_ns());
}

static void on_agent_record(void *context, struct agent *agent, uint16_t type, const void *payload, uint32_t size)
{
	struct intake *intake = context;

	if (!claims_check(agent, type, payload))
		return;
	if (type == DUET_AGENT_JAVA_SAMPLE)
		join_offer(intake->of.pending->join, &agent->origin, payload, size, clock_monotonic_ns());
	else if (type == DUET_AGENT_SAMPLE)
		on_agent_sample(intake, agent, payload);
	else
		parts_add(&agent->parts, payload);
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
static bool read_kernel(struct intake *intake, uint64_t now_ns)
{
	for (int part = 0; part < READ_PARTS; part++) {
		int got = engine_read(intake->of.engine, on_kernel_record, intake, READ_PART,
				      &loader_counters[DUET_LOADER_BAD_RECORD]);

		pending_run(intake->of.pending, now_ns);
		intake->of.pending->kernel_ns = got < READ_PART ? now_ns : before_ns(intake->newest_ns);
		budget_step(intake->of.budget, now_ns);
		if (got < READ_PART)
			return true;
		if (clock_monotonic_ns() - now_ns > READ_NS)
			return false;
	}
	return false;
}

/* Returns true if the process is to be profiled. The kernel's mapping records are of all processes. */
static bool is_ours(const struct intake *intake, const struct process *process)
{
	if (intake->of.selection)
		return selection_has(intake->of.selection, process);
	return engine_is_target(intake->of.engine, process->pid, process->start_ticks);
}

/* Looks for JVMs after the first tick. Before that, the start of the recording does. */
static void notice_new_jvms(struct intake *intake)
{
	struct process *process;

	while (intake->of.jvms->is_ticking &&
	       (process = new_jvms_next(&intake->short_lived.log, &intake->jvms_seen, intake->of.processes)))
		if (is_ours(intake, process))
			jvms_notice(intake->of.jvms, process);
}

/* Reads the agents before BPF. So the sample of every Java half that was read is read, too (join.h). */
bool intake_read(struct intake *intake)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool all;

	engine_read_mappings(intake->of.engine, &intake->short_lived.log, &loader_counters[DUET_LOADER_MAPPINGS_LOST]);
	notice_new_jvms(intake);
	jvms_read(intake->of.jvms, now_ns, FORGET_NS, on_agent_record, intake);
	all = read_kernel(intake, now_ns);
	if (all)
		intake->read_ns = now_ns;
	else if (intake->newest_ns > intake->read_ns)
		intake->read_ns = intake->newest_ns;
	for (size_t i = 0; i < intake->of.jvms->agents.len; i++)
		agent_ask(intake->of.jvms->agents.items[i]);
	return all;
}
