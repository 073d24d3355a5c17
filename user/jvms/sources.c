/* SPDX-License-Identifier: MIT */
#include "jvms/jvms.h"

#include <string.h>

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
	if (!engine_probe_tlabs(jvms->of.engine, process, &why))
		log_debug("JVM %d: its allocations are probed", process->pid);
	else if (!process_is_ending(process))
		log_warn("JVM %d: no samples of alloc: %s", process->pid, why.data);
}

void sources_watch_locks(struct jvms *jvms, const struct agent *agent)
{
	const struct duet_lock_waiters waiters = {agent->origin.process->start_ticks, agent->lock_waiters};
	int err = 0;

	if (jvms->options->holders && agent->lock_waiters)
		err = engine_watch_locks(jvms->of.engine, agent->origin.process->pid, &waiters);
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
