/* SPDX-License-Identifier: MIT */
#include "jvms/jvms.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "event/event.h"

/* The folders are lib/amd64/server before JDK 9, then lib/server. */
bool sources_is_old(const char *libjvm)
{
	const char *at = strrchr(libjvm, '/'), *folders[3] = {NULL};

	for (int i = 0; at && i < 3; i++) {
		while (at > libjvm && at[-1] != '/')
			at--;
		folders[i] = at;
		at = at > libjvm ? at - 1 : NULL;
	}
	return folders[2] && !strncmp(folders[2], "lib/", strlen("lib/"));
}

static bool wants_allocations(const struct jvms *jvms)
{
	for (size_t i = 0; i < jvms->options->events.len; i++)
		if (jvms->options->events.items[i].event->agent == DUET_AGENT_EVENT_ALLOC)
			return true;
	return false;
}

static const struct mapping *libjvm_of(const struct process *process)
{
	return process ? maps_libjvm(&process->maps) : NULL;
}

static bool is_old(const struct jvms *jvms, const struct process *process)
{
	const struct mapping *mapping = libjvm_of(process);

	if (mapping)
		return sources_is_old(mapping->path);
	return jvms->child && jvms->child_libjvm && process && process->pid == jvms->child &&
	       sources_is_old(jvms->child_libjvm);
}

/* Who maps a file while a probe is set in it can keep the host from forking: with --host, --tlab asks for that. */
bool sources_has_probes(const struct jvms *jvms, const struct process *process)
{
	bool is_wanted = jvms->options->tlab || (!jvms->options->host && is_old(jvms, process));

	return !jvms->of.engine->row->standalone && wants_allocations(jvms) && is_wanted;
}

bool sources_may_have_probes(const struct jvms *jvms)
{
	bool may_be_old = jvms->child && !jvms->child_libjvm[0];

	if (jvms->child && jvms->child_libjvm[0])
		may_be_old = sources_is_old(jvms->child_libjvm);
	for (size_t i = 0; i < jvms->options->pids.len; i++) {
		const struct process *process = process_find(jvms->of.processes, jvms->options->pids.items[i]);

		may_be_old |= !libjvm_of(process) || is_old(jvms, process); /* what is no JVM yet may become one */
	}
	return wants_allocations(jvms) && (jvms->options->tlab || may_be_old);
}

bool sources_is_agent(const struct jvms *jvms, const struct process *process, const struct event *event)
{
	if (event->agent == DUET_AGENT_EVENT_ALLOC)
		return !sources_has_probes(jvms, process);
	return !event_has_ticks(event) || jvms->of.engine->row->standalone;
}

bool sources_needs_agent(const struct jvms *jvms, const struct process *process)
{
	for (size_t i = 0; i < jvms->options->events.len; i++) {
		const struct event *event = jvms->options->events.items[i].event;

		if (!event_has_ticks(event) && sources_is_agent(jvms, process, event))
			return true;
	}
	return false;
}

bool sources_needs_layout(const struct jvms *jvms, const struct process *process)
{
	return event_list_has_ticks(&jvms->options->events) || sources_has_probes(jvms, process);
}

void sources_probe(const struct jvms *jvms, struct process *process)
{
	BUF(why);

	if (jvm_process(process)->has_tlabs || !sources_has_probes(jvms, process))
		return;
	jvm_process(process)->has_tlabs = true;
	if (!collector_probe_tlabs(jvms->of.engine->collector, process, &why))
		log_debug("JVM %d: its allocations are probed", process->pid);
	else if (!process_is_ending(process))
		log_warn("JVM %d: no samples of alloc: %s", process->pid, why.data);
}

void sources_watch_locks(struct jvms *jvms, const struct agent *agent)
{
	const struct duet_lock_waiters waiters = {agent->origin.process->start_ticks, agent->lock_waiters};
	int err = 0;

	if (jvms->options->holders && agent->lock_waiters)
		err = collector_watch_locks(jvms->of.engine->collector, agent->origin.process->pid, &waiters);
	if (err < 0)
		log_debug("%d: its locks are not watched: %s", agent->origin.process->pid, strerrordesc_np(-err));
}

void sources_report_refused(const struct jvms *jvms, const struct agent *agent)
{
	for (uint32_t i = 0; i < agent->start.event_count; i++) {
		const struct event_spec *spec = &jvms->options->events.items[agent->start.events[i].index];

		if (agent->refused & 1u << i)
			log_warn("%s %d: no samples of %s: %s", agent->is_native ? "process" : "JVM",
				 agent->origin.process->pid, spec->event->name, agent->refused_why);
	}
}

#define MOST_BYTES_A_NS 64
#define MOST_LASTED_NS (1ull << 56)
#define MOST_ERR_SAMPLES 4096
#define MOST_NATIVE_BYTES (1ull << 56)

/*
 * Returns the event of START that a sample of the agent belongs to; NULL if the agent was not asked for that event.
 * Those of CPU time and of time off the CPU may have the same index.
 */
static const struct duet_agent_event *asked_event(const struct agent *agent, const struct duet_sample *sample)
{
	bool is_off_cpu = sample->flags & DUET_SAMPLE_OFF_CPU;

	for (uint32_t i = 0; i < agent->start.event_count; i++) {
		const struct duet_agent_event *event = &agent->start.events[i];

		if (event->index == sample->event && (event->kind == DUET_AGENT_EVENT_OFFCPU) == is_off_cpu &&
		    !(agent->refused & 1u << i))
			return event;
	}
	return NULL;
}

/* Returns true if the engine's signals interrupt code for the event; otherwise something calls the agent. */
static bool is_ticked(const struct duet_agent_event *event)
{
	return event->kind == DUET_AGENT_EVENT_CLOCK || event->kind == DUET_AGENT_EVENT_PAGE_FAULTS;
}

/* Returns true if any number of threads, or of calls on one thread, may be in the event at the same time. */
static bool overlaps(const struct duet_agent_event *event)
{
	switch (event->kind) {
	case DUET_AGENT_EVENT_OFFCPU: /* any number of threads sleeps at a time */
	case DUET_AGENT_EVENT_LOCK: /* a JVM may have a million virtual threads that wait */
	case DUET_AGENT_EVENT_WAIT:
	case DUET_AGENT_EVENT_NATIVELOCK:
	case DUET_AGENT_EVENT_TRACE: /* a call lasts as long as the calls that it makes, and so do spans */
	case DUET_AGENT_EVENT_SPAN:
		return true;
	default:
		return false;
	}
}

/* Returns the greatest possible sum of the weights of one agent's samples of this event by now. */
static uint64_t most_claimed(const struct jvms *jvms, const struct duet_agent_event *event)
{
	/* half a second is added because timers may run late */
	uint64_t ns = (clock_monotonic_ns() - jvms->begun_ns + NS_PER_SEC / 2) * jvms->of.cpus;

	/* No counted event happens once a nanosecond. */
	if (is_ticked(event))
		return ns;
	/* Memory may be taken without being touched, up to the size of the address space. */
	if (event->kind == DUET_AGENT_EVENT_NATIVEMEM || event->kind == DUET_AGENT_EVENT_LEAK)
		return MOST_NATIVE_BYTES;
	if (overlaps(event))
		return MOST_LASTED_NS;
	/* A CPU clears no more memory than this in that time. Beyond that, samples have an error. */
	return ns * MOST_BYTES_A_NS + event->interval * MOST_ERR_SAMPLES;
}

static uint64_t least_claimed(const struct duet_agent_event *event)
{
	if (event->kind == DUET_AGENT_EVENT_OFFCPU) /* the agent weighs what it has seen, in each case */
		return 1;
	return event->kind == DUET_AGENT_EVENT_NATIVEMEM && event->flags & DUET_AGENT_AS_CALLED ? 1 : event->interval;
}

/* Returns true if the sample weighs at least one interval, and all samples together no more than is possible. */
static bool is_plausible(const struct jvms *jvms, const struct agent *agent, const struct duet_sample *sample)
{
	const struct duet_agent_event *event = asked_event(agent, sample);
	bool is_called = sample->flags & (DUET_SAMPLE_CALLED | DUET_SAMPLE_OFF_CPU);
	uint64_t most;

	if (!event || is_called == is_ticked(event) || sample->weight < least_claimed(event))
		return false;
	most = most_claimed(jvms, event);
	return sample->weight <= most && agent->claimed[event - agent->start.events] <= most - sample->weight;
}

#define CLAIMABLE (DUET_SAMPLE_KERNEL | DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_PENDING | DUET_SAMPLE_USER_REGS | \
		   DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_UNKNOWN_CODE | DUET_SAMPLE_WALKED | DUET_SAMPLE_CALLED | \
		   DUET_SAMPLE_OFF_CPU | DUET_SAMPLE_IDLE)

/* For --all-user. */
static void drop_kernel_frames(struct duet_sample *sample)
{
	size_t bytes = sample->kernel_depth * sizeof(sample->stack[0]);

	memmove(sample->stack, sample->stack + sample->kernel_depth, sample->head.size - sizeof(*sample) - bytes);
	sample->head.size -= (uint32_t)bytes;
	sample->kernel_depth = 0;
}

static bool was_asked(const struct agent *agent, uint16_t type, const void *payload)
{
	uint32_t depth = agent->start.java_depth;

	switch (type) {
	case DUET_AGENT_JAVA_SAMPLE:
		return ((const struct duet_java_sample *)payload)->java_depth <= depth;
	case DUET_AGENT_SAMPLE:
		return !((const struct duet_sample *)payload)->kernel_depth || agent->engine == DUET_ENGINE_PERF;
	case DUET_AGENT_FRAMES:
		return ~agent->refused & ((1u << agent->start.event_count) - 1) && depth > DUET_JAVA_DEPTH;
	default:
		return false;
	}
}

bool claims_check(const struct agent *agent, uint16_t type, const void *payload)
{
	bool is_asked = was_asked(agent, type, payload);

	loader_counters[DUET_LOADER_BAD_AGENT_RECORD] += !is_asked;
	return is_asked;
}

const struct duet_sample *claims_take(const struct jvms *jvms, struct agent *agent, const struct duet_sample *record,
				      union claimed_sample *claimed)
{
	struct duet_sample *sample = &claimed->sample;

	if (!is_plausible(jvms, agent, record)) {
		loader_counters[DUET_LOADER_BAD_AGENT_RECORD]++;
		return NULL;
	}
	memcpy(sample, record, record->head.size);
	if (jvms->options->all_user)
		drop_kernel_frames(sample);
	agent->claimed[asked_event(agent, sample) - agent->start.events] += sample->weight;
	sample->head.tgid = (uint32_t)agent->origin.process->pid;
	sample->head.tid = sample->ns_tid;
	sample->flags = (sample->flags & CLAIMABLE) | DUET_SAMPLE_JVM;
	if (sample->flags & DUET_SAMPLE_SIGNALLED)
		sample->flags |= DUET_SAMPLE_COOKIE;
	/* nobody who sleeps is signalled */
	sample->no_signal = sample->flags & DUET_SAMPLE_OFF_CPU ? DUET_NO_SIGNAL_EVENT : DUET_NO_SIGNAL_NONE;
	sample->comm[0] = '\0';
	snprintf(sample->process_comm, sizeof(sample->process_comm), "%s", agent->origin.process->comm);
	agent->signalled++;
	if (sample->flags & DUET_SAMPLE_UNKNOWN_CODE && agent->unwinding.tables)
		unwinding_refresh(&agent->unwinding, agent->origin.process);
	return deep_stacks_join(&agent->deep_stacks, sample);
}
