/* SPDX-License-Identifier: MIT */
#include "jvms/jvms.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "join/pending.h"
#include "profile/profile.h"
#include "proc/room.h"
#include "reader/reader.h"
#include "subject/program.h"
#include "sym/symbols.h"

/* a reader takes no samples and waits when its lane is full; most run only until the agent is in */
#define SAMPLE_LANE_BYTES (256u << 10)
#define METADATA_LANE_BYTES (1u << 20)
#define MOST_READERS 512
#define TRIES 4 /* readers that replace lost ones: after 0.1, 0.3, 0.9 and 2.7 s */
#define FIRST_PAUSE_NS (100 * NS_PER_MS)
#define PAUSE_GROWTH 3
#define FAKE_PAUSE_NS NS_PER_SEC /* after the first one; it doubles with each */
#define FAKES_MAX 8
#define CHARGE_NS (NS_PER_SEC / 4)
#define REST_NS (4 * CHARGE_NS)
#define PUT_OFF_NS (5 * NS_PER_SEC)
#define LONG_STAY_NS (60 * NS_PER_SEC) /* after a reader that ran this long, the tries are counted anew */

/* Returns false if there can be no more: each is a process of ours, and any user may start what looks like a JVM. */
static bool may_start(const struct jvms *jvms, const struct payer *payer)
{
	room_set_size(ROOM_READERS, MOST_READERS);
	room_empty(ROOM_READERS);
	for (size_t i = 0; i < jvms->agents.len; i++)
		if (jvms->agents.items[i]->reader && jvms->agents.items[i]->socket >= 0)
			room_add(ROOM_READERS, &jvms->agents.items[i]->start.payer, 1);
	return room_take(ROOM_READERS, payer, 1);
}

/* Its user has used up his share or his time. So no agent is tried either, and the process is noticed again later. */
static const char *put_off(struct process *process)
{
	jvm_process(process)->examined_version = 0;
	jvm_process(process)->notice_ns = clock_monotonic_ns() + PUT_OFF_NS;
	return NULL;
}

const char *readers_start(struct jvms *jvms, struct process *process)
{
	struct agent_start start = {
		.payer = process->payer,
		.engine = DUET_ENGINE_NONE,
		.java_depth = DUET_JAVA_DEPTH,
		.sample_lane_bytes = SAMPLE_LANE_BYTES,
		.metadata_lane_bytes = METADATA_LANE_BYTES,
	};
	struct agent *reader, **current = &jvm_process(process)->agent;
	struct charge charge;

	if (!charge_begin(&charge, process))
		return put_off(process);
	if (!may_start(jvms, &process->payer)) {
		(void)charge_end(&charge);
		return process->payer.key ? put_off(process) : "too many JVMs are read from outside";
	}
	if (!jvms->of.take_ring(jvms->of.context, &start))
		return JVMS_NO_ROOM;
	reader = agent_new_outside(&charge, process, &jvms->of.profile->strings, &start);
	(void)charge_end(&charge);
	if (!reader || vec_push(&jvms->agents, reader)) {
		agent_free(reader);
		return "out of memory";
	}
	jvm_set_payer(reader->jvm, &process->payer);
	if (*current && !(*current)->reader) /* an agent that is not running yet */
		agent_set_outside(*current, reader);
	else
		*current = reader;
	return NULL;
}

/* Returns `first`, grown so many times. */
static uint64_t grown(uint64_t first, uint64_t growth, uint32_t times)
{
	while (times--)
		first *= growth;
	return first;
}

static void give_up(const struct jvms *jvms, struct agent *reader)
{
	jvm_process(reader->origin.process)->readers_lost = TRIES + 1;
	if (jvms->options->agent == AGENT_NEEDED)
		reader->retry_ns = clock_monotonic_ns();
	else
		log_warn("JVM %d: the process that reads it has ended %d times: native frames only",
			 reader->origin.process->pid, TRIES + 1);
}

void readers_replace_later(const struct jvms *jvms, struct agent *reader)
{
	struct jvm_process *process = jvm_process(reader->origin.process);
	uint64_t now_ns = clock_monotonic_ns();

	if (agent_in_charge(process->agent) != reader || process_is_ending(reader->origin.process))
		return;
	loader_counters[DUET_LOADER_READERS_LOST]++;
	process->is_unread = true;
	if (now_ns - reader->begun_ns > LONG_STAY_NS)
		process->readers_lost = 0;
	if (process->readers_lost >= TRIES)
		return give_up(jvms, reader);
	reader->retry_ns = now_ns + grown(FIRST_PAUSE_NS, PAUSE_GROWTH, process->readers_lost);
	log_print(process->readers_lost++ ? LOG_DEBUG : LOG_WARN,
		  "JVM %d: the process that reads it has ended: native frames only, trying again in %.1f s",
		  reader->origin.process->pid, (double)(reader->retry_ns - now_ns) / NS_PER_SEC);
}

bool readers_replace(struct jvms *jvms, struct agent *reader)
{
	struct jvm_process *process = jvm_process(reader->origin.process);
	bool is_lost = reader->state == AGENT_GONE && process->readers_lost <= TRIES;
	const char *why;

	if (jvms->options->agent == AGENT_NEEDED && !is_lost)
		return false;
	if (agent_in_charge(process->agent) != reader || process_is_ending(reader->origin.process))
		return true;
	why = readers_start(jvms, reader->origin.process);
	if (why)
		log_warn("JVM %d: %s: native frames only", reader->origin.process->pid, why);
	return true;
}

/* Lets the failed reader's JVM get an agent. Says why once: a host may have hundreds of JVMs of one kind. */
static void give_way(struct jvms *jvms, struct agent *reader)
{
	log_print(jvms->has_reported_unread ? LOG_DEBUG : LOG_INFO, "%s: it gets an agent", reader->why);
	jvms->has_reported_unread = true;
	reader->retry_ns = clock_monotonic_ns();
}

const char *readers_why_unread(const struct agent *reader)
{
	const char *why = reader->state == AGENT_FAILED ? strstr(reader->why, ": ") : NULL;

	return why ? why + 2 : "it cannot be read from outside";
}

/* Warns only once: a host may have hundreds of such JVMs. */
void readers_report_unnamed(struct jvms *jvms, const struct agent *agent)
{
	if (!agent->is_unnamed || jvms->has_reported_unnamed)
		return;
	jvms->has_reported_unnamed = true;
	log_warn("JVM %d: duet does not know where this JDK keeps the names of threads: they have the kernel's names, "
		 "of at most 15 bytes, and virtual threads those of their carriers: record with --agent always",
		 agent->origin.process->pid);
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

static void charge(struct agent *reader, uint64_t now_ns)
{
	const struct process *process = reader->origin.process;
	uint64_t used_ns = process_cpu_ns(reader->reader);
	struct charge charge;

	if (used_ns > reader->paid_ns) {
		charge_cpu(&process->payer, used_ns - reader->paid_ns);
		reader->paid_ns = used_ns;
	}
	reader->is_resting = !charge_begin(&charge, process);
	if (reader->is_resting)
		agent_rest(reader, now_ns + REST_NS);
	else
		(void)charge_end(&charge);
}

void readers_charge(struct jvms *jvms, uint64_t now_ns)
{
	if (now_ns - jvms->charged_ns < CHARGE_NS)
		return;
	jvms->charged_ns = now_ns;
	for (size_t i = 0; i < jvms->agents.len; i++)
		if (jvms->agents.items[i]->reader && jvms->agents.items[i]->socket >= 0)
			charge(jvms->agents.items[i], now_ns);
}

#define FIRST_RETRY_S 2
#define RETRY_GROWTH 4 /* a hung JVM costs at most four attaches: at once, and after 2, 8 and 32 s */
#define RETRIES 3

/* False if its failure may end the recording before it begins. Then the start of the session reports it. */
static bool goes_on_without(const struct jvms *jvms)
{
	return jvms->options->host || jvms->is_ticking || jvms->agents.len > 1 || jvms->natives ||
	       jvms_agents_are_optional(jvms) || jvms_go_without_agent(jvms);
}

/* Its Java frames are read from outside while it has no agent. */
static void read_instead(struct jvms *jvms, struct agent *agent)
{
	const char *why;

	if (agent->reader || agent->outside || jvms->of.engine->row->standalone ||
	    !sources_needs_layout(jvms, agent->origin.process))
		return;
	why = readers_start(jvms, agent->origin.process);
	if (why)
		log_debug("JVM %d: %s", agent->origin.process->pid, why);
}

/* Appends "its Java frames are read from outside, no samples of alloc, lock". */
static void add_left(const struct jvms *jvms, const struct agent *agent, struct buf *left)
{
	bool is_read = agent->outside && agent->outside->state <= AGENT_RUNNING;
	const char *before = ", no samples of ";

	buf_add_str(left, is_read ? "its Java frames are read from outside" : "native frames only");
	for (size_t i = 0; !agent->reader && i < jvms->options->events.len; i++) {
		const struct event *event = jvms->options->events.items[i].event;

		if (event_has_ticks(event) || !sources_is_agent(jvms, agent->origin.process, event))
			continue;
		buf_printf(left, "%s%s", before, event->name);
		before = ", ";
	}
}

static uint64_t plan_retry(struct agent *agent)
{
	uint64_t delay_s = grown(FIRST_RETRY_S, RETRY_GROWTH, jvm_process(agent->origin.process)->attach_failures++);

	agent->retry_ns = clock_monotonic_ns() + delay_s * NS_PER_SEC;
	return delay_s;
}

/* Warns only at the first failure, and when it gives up: the user can do nothing in between. */
static void on_failed_agent(struct jvms *jvms, struct agent *agent)
{
	bool is_reported = jvm_process(agent->origin.process)->attach_failures;
	BUF(left);

	read_instead(jvms, agent);
	add_left(jvms, agent, &left);
	if (agent_may_try_again(agent) && jvm_process(agent->origin.process)->attach_failures < RETRIES)
		log_print(is_reported ? LOG_DEBUG : LOG_WARN, "%s: %s, trying again in %d s", agent->why, left.data,
			  (int)plan_retry(agent));
	else
		log_warn("%s: %s", agent->why, left.data);
}

/* It is noticed again when its mappings have changed: a program may create its JVM late, and then maps more files. */
static void let_go(struct jvms *jvms, const struct agent *reader)
{
	struct jvm_process *process = jvm_process(reader->origin.process);

	log_debug("%s", reader->why);
	if (process->source == JVM_OUTSIDE) {
		jvms->agents.sources[JVM_OUTSIDE]--;
		process->source = JVM_UNREAD;
	}
	process->notice_ns = clock_monotonic_ns() + grown(FAKE_PAUSE_NS, 2, process->fakes);
	process->fakes += process->fakes < FAKES_MAX;
	leave(reader);
}

void readers_note_failure(struct jvms *jvms, struct agent *agent)
{
	/* not if it executes another program, which is no JVM */
	bool is_ended = agent->error == -ESRCH || process_is_ending(agent->origin.process);
	bool is_current = jvm_process(agent->origin.process)->agent == agent;

	if (!agent->reader && !goes_on_without(jvms))
		return;
	if (agent->error == -READER_NO_JVM)
		return let_go(jvms, agent);
	loader_counters[DUET_LOADER_JVMS_ENDED] += is_ended && is_current;
	if (is_ended || !is_current)
		log_debug("%s", agent->why);
	else if (agent->reader && jvms->options->agent == AGENT_NEEDED && agent->error != -READER_FOREIGN)
		give_way(jvms, agent);
	else if (agent->reader && agent_may_try_again(agent))
		readers_replace_later(jvms, agent);
	else
		on_failed_agent(jvms, agent);
}

/* Frees what belongs to ended processes, unless a sample needs it: a recording may last for months. */

/* for this long after an agent has started, its names are compared with its reader's */
#define COMPARE_NS (30 * NS_PER_SEC)
/* After its exit record a process is sampled while it closes its files. */
#define LAST_RECORDS_NS NS_PER_SEC
#define SWEEP_NS (30 * NS_PER_SEC) /* interval of the search for processes that ended without an exit record */

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

static void find_ended(struct jvms *jvms)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - jvms->swept_ns < SWEEP_NS)
		return;
	jvms->swept_ns = now_ns;
	for (size_t i = 0; i < jvms->of.processes->all.len; i++) {
		struct process *process = jvms->of.processes->all.items[i];

		charge_pause();
		if (!process->exited && !process_is_there(process)) {
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
