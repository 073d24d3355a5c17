/* SPDX-License-Identifier: MIT */
/*
 * The records of a running session: turns records from BPF and agents into samples of the profile, and steps the
 * agents.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "collect/collected.h"
#include "jvms/claims.h"
#include "jvms/new_jvms.h"
#include "session_internal.h"

#define NS_PER_TICK 10000000 /* USER_HZ is 100 */
#define FORGET_NS (2 * JOIN_WAIT_NS + DECIDED_WAIT_NS)
#define PUBLISH_NS (NS_PER_SEC / 50)
#define READ_PART 256 /* most records that are read before memory is checked */
#define READ_PARTS 4096
#define READ_NS (NS_PER_SEC / 50)

/* ---- one sample, decided ---- */

static void on_decided(void *context, void *owner, const struct duet_sample *sample,
		       const struct duet_java_sample *java, enum join_outcome outcome)
{
	struct session *session = context;
	struct agent *agent = owner;

	decided_add(&session->decided, &(struct decision){agent, agent->process, agent->jvm, sample, java, outcome});
}

static bool ask_agent(void *context, void *owner, const struct duet_want *wants, size_t count)
{
	struct session *session = context;
	struct agent *agent = owner;

	if (agent->state == AGENT_GONE || agent->state == AGENT_FAILED)
		return false;
	jvms_ask(&session->jvms, agent, wants, count);
	return true;
}

int session_open_decided(struct session *session)
{
	return decided_open(&session->decided, &(struct decided_parts){
						       .profile = &session->profile,
						       .symbols = session->symbols,
						       .owners = &session->owners,
						       .windows = &session->windows.written,
						       .handler = on_decided,
						       .ask = ask_agent,
						       .context = session,
					       });
}

/* ---- records ---- */

struct process *session_meet(struct session *session, const struct duet_sample *sample)
{
	struct process *process =
		process_get(&session->processes, (pid_t)sample->head.tgid, sample->start_ns / NS_PER_TICK);

	if (!process) {
		loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
		return NULL;
	}
	short_lived_map(&session->short_lived, process, sample);
	jvms_notice(&session->jvms, process);
	if (!collected_of(process)->published_version || sample->flags & DUET_SAMPLE_UNKNOWN_CODE) {
		unwinding_read_maps(&session->unwinding, process);
		unwinding_want(&session->unwinding, process);
	}
	return process;
}

void session_on_sample(struct session *session, const struct duet_sample *record)
{
	const struct duet_sample *sample = parts_join(&session->parts, record);
	struct process *process = session_meet(session, sample);
	struct agent *agent;

	if (!process)
		return;
	overhead_note_sample(&session->overhead);
	agent = agent_in_charge(jvm_process(process)->agent);
	if (agent && sample->flags & DUET_SAMPLE_SIGNALLED) {
		agent->signalled++;
		session->overhead.signals++;
	}
	if (agent && sample->flags & DUET_SAMPLE_JVM && sample->ns_tid != agent->tid) {
		jvms_note_walk(&session->jvms, agent, sample);
		return (void)join_sample(session->decided.join, agent, sample, clock_monotonic_ns());
	}
	if (agent && sample->ns_tid == agent->tid) {
		agent->host_tid = (pid_t)sample->head.tid;
		outcomes_add_own(&session->decided.outcomes, sample);
	}
	loader_counters[DUET_LOADER_JVM_UNREAD] += jvm_process(process)->is_unread;
	decided_add(&session->decided,
		    &(struct decision){.process = process, .sample = sample, .outcome = JOIN_STANDALONE});
}

/* The process executed another program: its old JVM has ended, and the new program may be another JVM. */
static void on_exec(struct session *session, const struct duet_process_record *record)
{
	pid_t pid = (pid_t)record->head.tgid;
	struct process *process = process_find(&session->processes, pid);

	if (process && process->start_ticks != record->start_ns / NS_PER_TICK)
		return; /* the record is of a new process with this pid, which has no sample yet */
	if (process) {
		jvms_exec(&session->jvms, process, record->head.time_ns);
		owners_exec(process);
		unwinding_forget(&session->unwinding, process);
	}
	process_exec(&session->processes, pid);
}

static void on_end(struct session *session, pid_t pid)
{
	struct process *process = process_find(&session->processes, pid);

	if (process)
		unwinding_forget(&session->unwinding, process);
	process_exit(&session->processes, pid);
}

static void on_cgroup(struct session *session, const struct duet_cgroup_record *record)
{
	containers_made(&session->owners.containers, record->id, record->path);
}

static void on_kernel_record(void *context, const struct duet_record *record)
{
	struct session *session = context;

	if (record->type == DUET_RECORD_SAMPLE) {
		session->newest_ns = record->time_ns;
		session_on_sample(session, (const struct duet_sample *)record);
	} else if (record->type == DUET_RECORD_FRAMES)
		parts_add(&session->parts, (const struct duet_frames_record *)record);
	else if (record->type == DUET_RECORD_EXEC)
		on_exec(session, (const struct duet_process_record *)record);
	else if (record->type == DUET_RECORD_EXIT)
		on_end(session, (pid_t)record->tgid);
	else if (record->type == DUET_RECORD_CGROUP)
		on_cgroup(session, (const struct duet_cgroup_record *)record);
}

static void on_agent_sample(struct session *session, struct agent *agent, const struct duet_sample *record)
{
	union claimed_sample claimed;
	const struct duet_sample *sample = claims_take(&session->jvms, agent, record, &claimed);

	if (!sample)
		return;
	overhead_note_sample(&session->overhead);
	session->overhead.signals += !(sample->flags & DUET_SAMPLE_CALLED);
	join_sample(session->decided.join, agent, sample, clock_monotonic_ns());
}

static void on_agent_record(void *context, struct agent *agent, uint16_t type, const void *payload, uint32_t size)
{
	struct session *session = context;

	if (!claims_check(agent, type, payload))
		return;
	if (type == DUET_AGENT_JAVA_SAMPLE)
		join_offer(session->decided.join, agent, payload, size, clock_monotonic_ns());
	else if (type == DUET_AGENT_SAMPLE)
		on_agent_sample(session, agent, payload);
	else
		parts_add(&agent->parts, payload);
}

/*
 * Reads BPF's ring in parts and checks memory between them. Deep stacks take a millisecond each, so reading stops after
 * READ_NS: the next call reads on, and the recording may end before it. Returns true when the ring is empty.
 */
static bool read_kernel(struct session *session, uint64_t now_ns)
{
	for (int part = 0; part < READ_PARTS; part++) {
		int got = engine_read(&session->engine, on_kernel_record, session, READ_PART,
				      &loader_counters[DUET_LOADER_BAD_RECORD]);

		decided_run(&session->decided, now_ns);
		budget_step(&session->budget, now_ns);
		if (got < READ_PART)
			return true;
		if (clock_monotonic_ns() - now_ns > READ_NS)
			return false;
	}
	return false;
}

/* Returns true if the process is to be profiled. The kernel's mapping records are of all processes. */
static bool is_ours(const struct session *session, const struct process *process)
{
	if (session->options->host)
		return selection_has(&session->selection, process);
	return engine_is_target(&session->engine, process->pid, process->start_ticks);
}

/* Looks for JVMs after the first tick. Before that, session_start() does. */
static void notice_new_jvms(struct session *session)
{
	struct process *process;

	while (session->started_ns &&
	       (process = new_jvms_next(&session->short_lived.log, &session->jvms_seen, &session->processes)))
		if (is_ours(session, process))
			jvms_notice(&session->jvms, process);
}

/* Reads the agents before BPF. So the sample of every Java half that was read is read, too (join.h). */
bool session_read_rings(struct session *session)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool all;

	engine_read_mappings(&session->engine, &session->short_lived.log, &loader_counters[DUET_LOADER_MAPPINGS_LOST]);
	notice_new_jvms(session);
	jvms_read(&session->jvms, now_ns, FORGET_NS, on_agent_record, session);
	all = read_kernel(session, now_ns);
	if (all)
		session->read_ns = now_ns;
	else if (session->newest_ns > session->read_ns)
		session->read_ns = session->newest_ns;
	for (size_t i = 0; i < session->jvms.agents.len; i++)
		agent_ask(session->jvms.agents.items[i]);
	return all;
}

/* ---- steps ---- */

static bool is_end(const struct session *session, int signo)
{
	const struct session_options *options = session->options;

	if (signo == SIGCHLD || signo == SIGUSR1)
		return false;
	return !options->signalled || options->signalled(options->signalled_context, signo);
}

static void on_signal(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		session->interrupted |= is_end(session, (int)info.ssi_signo);
		if (info.ssi_signo == SIGUSR1)
			output_files_flush(&session->outputs, clock_monotonic_ns());
	}
	session_take_outputs(session); /* is_end() may have changed them */
}

/* Call before the loop waits. A step begins after a wait. Steps before the first tick are not counted. */
static void note_step(struct session *session, uint64_t now_ns)
{
	uint64_t step_ns = now_ns - session->woke_ns;

	if (session->started_ns && session->woke_ns >= session->started_ns && step_ns > session->longest_step_ns)
		session->longest_step_ns = step_ns;
}

void session_step(struct session *session, int timeout_ms)
{
	size_t count = session->jvms.agents.len + 2;
	struct pollfd *fds = calloc(count, sizeof(*fds));

	if (!fds)
		return;
	note_step(session, clock_monotonic_ns());
	fds[0] = (struct pollfd){.fd = session->signal_fd, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = session->engine.fd, .events = POLLIN};
	for (size_t i = 2; i < count; i++)
		fds[i] = (struct pollfd){.fd = agent_fd(session->jvms.agents.items[i - 2]), .events = POLLIN};
	if (session->is_behind || session->unwinding.wanted.len)
		timeout_ms = 0;
	if (poll(fds, count, timeout_ms) > 0 && fds[0].revents)
		on_signal(session);
	session->woke_ns = clock_monotonic_ns();
	jvms_step(&session->jvms, fds + 2, count - 2);
	session->is_behind = !session_read_rings(session);
	unwinding_work(&session->unwinding, &session->processes, clock_monotonic_ns() + PUBLISH_NS);
	notify_watchdog(&session->notify);
	free(fds);
}
