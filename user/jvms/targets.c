/* SPDX-License-Identifier: MIT */
/* The processes of -p and of --host: finds them, attaches to JVMs, and reports what the other processes lack. */
#include "jvms/jvms.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/containers.h"

#define JUST_READ_NS NS_PER_MS /* age of the mappings of a process that process_get() has just met */
#define LISTED_MAX 8 /* most processes without an agent that are listed by pid and name */

static int explain_unreadable(pid_t pid, int err)
{
	if (err == -ESRCH && process_is_hidden(pid))
		return log_fail(
			-EACCES,
			"process %d exists, but /proc hides it (mounted with hidepid): run duet as root or as the "
			"user who owns it",
			pid);
	return log_fail(err,
			err == -ESRCH ? "no process %d: it may have ended; `duet list` shows the JVMs that run"
				      : "process %d cannot be read: run duet as root or as the user who owns it",
			pid);
}

/* /proc also has zombies and threads under a number: both are refused. */
static int check_number(pid_t pid)
{
	pid_t leader = pid;

	if (process_read_state(pid) == 'Z' && !process_living_thread(pid))
		return log_fail(-ESRCH,
				"process %d has ended: it is a zombie, whose parent has not read its exit status yet",
				pid);
	if (!process_read_leader(pid, &leader) && leader != pid)
		return log_fail(-ESRCH, "%d is a thread of process %d: give -p %d, and -t for a frame for each thread",
				pid, leader, leader);
	return 0;
}

static int find_target(struct jvms *jvms, pid_t pid)
{
	struct process *process;
	uint64_t ticks;
	int err = process_read_start_ticks(pid, &ticks);

	if (err < 0)
		return explain_unreadable(pid, err);
	err = check_number(pid);
	if (err < 0)
		return err;
	process = process_get(jvms->of.processes, pid, ticks);
	if (!process)
		return -ENOMEM;
	process_ref(process); /* the report names it, also when it has ended */
	process_refresh_maps(process, clock_monotonic_ns(), JUST_READ_NS);
	if (!jvms->options->all_user || !process_is_kernel_thread(process))
		return 0;
	return log_fail(-EINVAL,
			"process %d (%s) is a kernel thread, which has kernel frames only: leave out --all-user", pid,
			process->comm);
}

int jvms_find_targets(struct jvms *jvms)
{
	int err = 0;

	for (size_t i = 0; !err && i < jvms->options->pids.len; i++)
		err = find_target(jvms, jvms->options->pids.items[i]);
	return err;
}

static struct process *target(const struct jvms *jvms, size_t index)
{
	return process_find(jvms->of.processes, jvms->options->pids.items[index]);
}

/* True if it takes no agent, or what an agent gives is not wanted. Attaching says why mappings cannot be read. */
static bool has_no_agent(const struct jvms *jvms, const struct process *process)
{
	bool is_native = process_is_kernel_thread(process) ||
			 (process->maps.list.len && !maps_libjvm(&process->maps));

	return is_native && !(jvms->options->loaded_agent && jvms_attach_cause(jvms, process));
}

/* Formats "12 (redis), 13 (sleep)". */
static void list_natives(const struct jvms *jvms, struct buf *list)
{
	size_t count = 0;

	for (size_t i = 0; i < jvms->options->pids.len; i++) {
		const struct process *process = target(jvms, i);

		if (has_no_agent(jvms, process) && count++ < LISTED_MAX)
			buf_printf(list, "%s%d (%s)", count > 1 ? ", " : "", process->pid, process->comm);
	}
	if (count > LISTED_MAX)
		buf_printf(list, " and %zu more", count - LISTED_MAX);
}

static const struct process *first_native(const struct jvms *jvms)
{
	size_t i = 0;

	while (!has_no_agent(jvms, target(jvms, i)))
		i++;
	return target(jvms, i);
}

/* Reports all of them in one line. Without BPF, they cannot be sampled. */
static void say_natives(const struct jvms *jvms, const char *list, const char *missing)
{
	const struct engine *engine = jvms->of.engine->row;
	bool is_one = jvms->natives == 1, all = jvms->natives == jvms->options->pids.len;
	const char *subject = is_one ? "process" : "processes", *verb = is_one ? "is not a JVM" : "are not JVMs";

	if (!event_list_has_ticks(&jvms->options->events))
		log_print(all ? LOG_ERROR : LOG_WARN, "%s %s %s%s: only JVMs have samples of %s", subject, list, verb,
			  all ? "" : ", and left out", missing);
	else if (!engine->standalone && is_one && process_is_kernel_thread(first_native(jvms)))
		log_info("process %s is a kernel thread: kernel frames only%s", list, missing);
	else if (!engine->standalone)
		log_info("%s %s %s: %snative frames only%s", subject, list, verb,
			 jvms->options->all_user ? "" : "kernel and ", missing);
	else
		log_print(all ? LOG_ERROR : LOG_WARN,
			  "%s %s %s%s: the %s engine ticks in an agent, which only JVMs take; --engine bpf profiles "
			  "every process, `duet check` says what it needs",
			  subject, list, verb, all ? "" : ", and left out", engine->name);
}

static int take_natives(struct jvms *jvms)
{
	bool has_ticks = event_list_has_ticks(&jvms->options->events), is_all;
	BUF(list);
	BUF(missing);

	for (size_t i = 0; i < jvms->options->pids.len; i++)
		jvms->natives += has_no_agent(jvms, target(jvms, i));
	if (!jvms->natives)
		return 0;
	list_natives(jvms, &list);
	if (has_ticks && event_list_has_taps(&jvms->options->events))
		buf_add_str(&missing, ", and no samples of ");
	event_list_tap_names(&jvms->options->events, &missing);
	say_natives(jvms, list.data, missing.data);
	is_all = jvms->natives == jvms->options->pids.len;
	return is_all && (jvms->of.engine->row->standalone || !has_ticks) ? -ENOTSUP : 0;
}

/* An agent's failure is the command's, see the session's start; not so if the JVM cannot be read from outside. */
static int attach_target(struct jvms *jvms, struct process *process)
{
	const char *cause = jvms_attach_cause(jvms, process);

	jvms->has_met = true;
	if (jvms->options->loaded_agent && jvms->options->loaded_agent->name[0])
		return jvms_attach(jvms, process, ATTACH_LOADED, "it is loaded", jvms->options->loaded_agent);
	if (!cause || jvms_agents_are_optional(jvms)) {
		jvms_notice(jvms, process);
		return 0;
	}
	return jvms_attach(jvms, process, ATTACH_RUNNING, cause, NULL);
}

int jvms_attach_targets(struct jvms *jvms)
{
	bool is_quiet = jvms->options->agent == AGENT_NEVER && event_list_has_ticks(&jvms->options->events);
	int err = is_quiet ? 0 : take_natives(jvms);

	for (size_t i = 0; !err && i < jvms->options->pids.len; i++)
		if (!has_no_agent(jvms, target(jvms, i)))
			err = attach_target(jvms, target(jvms, i));
	return err;
}

/* Returns the number of agents that failed, with one of them; 0 if any JVM can be recorded. */
static size_t count_failed(const struct agents *agents, const struct agent **ret_failed)
{
	size_t failed = 0;

	for (size_t i = 0; i < agents->len; i++) {
		const struct agent *agent = agents->items[i];

		if (agent->state != AGENT_FAILED)
			return 0;
		if (agent->reader)
			continue;
		failed++;
		*ret_failed = agent;
	}
	return failed;
}

bool jvms_agents_are_optional(const struct jvms *jvms)
{
	const struct event_list *events = &jvms->options->events;
	bool has_reported = false;

	for (size_t i = 0; i < events->len; i++) {
		enum duet_agent_event_kind kind = events->items[i].event->agent;

		bool is_reported = kind == DUET_AGENT_EVENT_SPAN || kind == DUET_AGENT_EVENT_USER;

		has_reported |= is_reported;
		if (kind >= DUET_AGENT_EVENT_ALLOC && !is_reported)
			return false;
	}
	return has_reported && jvms->options->as_called && !jvms->of.engine->row->standalone;
}

bool jvms_go_without_agent(const struct jvms *jvms)
{
	return !jvms->of.engine->row->standalone && event_list_has_ticks(&jvms->options->events) &&
	       jvms->options->agent == AGENT_NEEDED && jvms->options->bpf.signals != DUET_SIGNALS_ALWAYS &&
	       !jvms->options->as_called;
}

bool jvms_all_failed(const struct jvms *jvms)
{
	const struct agent *agent = NULL;
	size_t failed = count_failed(&jvms->agents, &agent);

	if (!failed || jvms->natives || jvms_agents_are_optional(jvms) || jvms_go_without_agent(jvms))
		return false;
	if (failed == 1)
		log_error("%s", agent->why);
	else
		log_error("the agent could not be attached to any of the %zu processes", failed);
	return true;
}

struct host_jvms {
	struct jvms *jvms;
	const struct selection *selection;
};

static void notice_selected(void *context, pid_t pid)
{
	const struct host_jvms *host = context;
	struct process *process = process_get(host->jvms->of.processes, pid, 0);

	if (process && selection_has(host->selection, process))
		jvms_notice(host->jvms, process);
}

int jvms_attach_host(struct jvms *jvms, const struct selection *selection)
{
	return process_each(notice_selected, &(struct host_jvms){jvms, selection});
}
