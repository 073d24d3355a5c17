/* SPDX-License-Identifier: MIT */
/* The start of a session: targets, engine, agents, and the command that is profiled from its start. */
#include <errno.h>
#include <link.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "base/box.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/log.h"
#include "proc/process.h"
#include "session/internal.h"
#include "sym/kallsyms.h"

/* most CPU time, and time, to prepare the host's processes for the walk, in slices */
#define PREPARE_NS NS_PER_SEC
#define PREPARE_BUSY_NS (4 * NS_PER_SEC)
#define PREPARE_SLICE_NS (100 * NS_PER_MS)

static int find_selection(struct session *session)
{
	const struct options *options = session->options;
	BUF(why);
	int err = selection_find(&session->selection, &session->owners.containers, options->cgroup, options->container,
				 &why);

	if (err < 0)
		log_error("%s", why.data);
	return err;
}

static int wait_for_agents(struct session *session)
{
	while ((!jvms_settled(&session->jvms) || unwinding_has_work(&session->unwinding)) && !session->interrupted)
		session_step(session, POLL_ATTACH_MS);
	if (!session->options->host && jvms_all_failed(&session->jvms))
		return -EPERM;
	return session->interrupted ? log_fail(-EINTR, "ended before the first sample: nothing was recorded") : 0;
}

static int open_engine(struct session *session, enum session_engine engine, struct buf *why)
{
	const struct options *asked = session->options;
	struct collector_options options = {
		.asked = asked,
		.events = &asked->events,
		.user_depth = DUET_MAX_WALK,
		.targets = asked->host ? NULL : asked->pids.items,
		.target_count = asked->pids.len,
		.cgroup_id = session->selection.cgroup_id,
		.comm = session->selection.comm,
		.probes_tlabs = sources_may_have_probes(&session->jvms),
		.max_bytes = budget_bpf_bytes(&session->budget),
	};

	if (session->launch.pid) {
		options.targets = &session->launch.pid;
		options.target_count = 1;
		options.follow_forks = true;
	}
	return engine_open(&session->engine, engine, &options, why);
}

/* Opens the best engine that needs no BPF and has the events. `why` is the reason why BPF is not available. */
static int open_instead(struct session *session, const char *why)
{
	BUF(refused);
	enum session_engine engine;

	engine = engine_standalone(&session->options->events, &refused);
	if (engine == ENGINE_AUTO)
		log_error("%s", why);
	else
		log_warn("using the %s engine, %s: %s", engines[engine].name, engines[engine].instead, why);
	if (engine != ENGINE_AUTO && session->options->tlab)
		log_warn("--tlab has no effect without BPF: JVMs sample their allocations themselves, from JDK 11 on");
	if (engine != ENGINE_AUTO && session->options->holders)
		log_warn("--holders has no effect without BPF: only the kernel sees who releases a lock");
	if (refused.len)
		log_info("the perf engine is refused, too: %s", refused.data);
	return engine == ENGINE_AUTO ? -EPERM : open_engine(session, engine, &session->engine_why);
}

/* Opens the engine that was asked for. If none was: BPF or, if that is refused, an engine that ticks in the agent. */
static int choose_engine(struct session *session)
{
	const struct options *options = session->options;
	int err = open_engine(session, options->engine == ENGINE_AUTO ? ENGINE_BPF : options->engine,
			      &session->engine_why);

	if (!err) {
		buf_clear(&session->engine_why);
		return 0;
	}
	if (options->engine == ENGINE_AUTO && !options->host && options->agent != AGENT_NEVER && !options->needs_bpf)
		return open_instead(session, session->engine_why.data);
	return log_fail(err, "%s", session->engine_why.data);
}

static void name_kernel(struct session *session)
{
	BUF(why);

	if (kernel_names_open(&session->kernel_names))
		return symbols_ask_kernel(session->symbols, kernel_names_find, &session->kernel_names);
	if (kallsyms_hidden("/proc/kallsyms", &why))
		log_warn("kernel frames show addresses, not names: %s", why.data);
}

static int prepare_engine(struct session *session)
{
	int err = choose_engine(session);

	if (err < 0)
		return err;
	if (session->engine.row->sees_kernel && !session->options->all_user)
		name_kernel(session);
	unwinding_init(&session->unwinding, session->engine.facts.tables);
	intake_begin(session);
	return budget_start(&session->budget, &session->jvms, &session->windows.writer_bytes);
}

static int start_ticks(struct session *session)
{
	int err = collector_start(session->engine.collector);

	allowance_set_starting(false);
	if (err < 0)
		log_error("the perf events could not be enabled: %s", strerror(-err));
	session->started_ns = clock_monotonic_ns();
	session->jvms.is_ticking = true;
	if (session_agents_see_sleeps(session)) /* what they know of threads that sleep is of the time before */
		jvms_finish(&session->jvms, DUET_MESSAGE_FLUSH, session->started_ns - 1);
	session->edges.prepared_ns = session->options->pids.len ? session->started_ns : 0; /* by publish_pids() */
	return err;
}

static void prepare_kernel(struct session *session)
{
	if (session->engine.row->sees_kernel && !session->options->all_user)
		symbols_prepare_kernel(session->symbols);
}

static int prepare_library(struct dl_phdr_info *info, size_t size, void *unwinding)
{
	if (info->dlpi_name[0] == '/')
		unwinding_prepare(unwinding, info->dlpi_name);
	return 0;
}

/* What --comm or --cgroup selects may start during the recording: short-lived programs do. */
static void report_if_nobody(struct session *session)
{
	BUF(none);

	selection_count(&session->selection, &session->processes, &none);
	if (none.len)
		log_info("%s: the recording waits for one", none.data);
}

/*
 * Before the command runs, reads its program and what every command needs: a short command would end before its code is
 * known. Most programs share the C library and the dynamic linker with us.
 */
static void prepare_command(struct session *session)
{
	const struct launch *launch = &session->launch;

	prepare_kernel(session);
	if (launch->program[0])
		unwinding_prepare(&session->unwinding, launch->program);
	if (launch->libjvm[0])
		unwinding_prepare(&session->unwinding, launch->libjvm);
	dl_iterate_phdr(prepare_library, &session->unwinding);
}

/* Reports that the command is not java. It may still run a JVM later: BPF notices that, timer engines cannot. */
static int check_no_java(const struct session *session)
{
	const char *name = session->options->command[0];

	if (!session->engine.row->standalone) {
		log_info("%s is not java: %snative frames, and Java frames when it becomes or starts a JVM", name,
			 session->options->all_user ? "" : "kernel and ");
		return 0;
	}
	return log_fail(
		-ENOTSUP,
		"%s is not java: the %s engine samples only JVMs, from an agent that only a java command is given; "
		"start java itself, or use --engine bpf, which profiles every process: see `duet check`",
		name, session->engine.row->name);
}

static int explain_unstarted(const struct session *session, int err)
{
	return log_fail(err, "%s cannot be started: %s", session->options->command[0], strerror(-err));
}

static int launch_command(struct session *session)
{
	struct launch *launch = &session->launch;
	const struct process *process;
	const char *cause;
	int err = launch_start(launch, session->options->command);

	if (err < 0)
		return explain_unstarted(session, err);
	session->jvms.child = launch->pid;
	session->jvms.has_met = launch->is_java;
	session->jvms.child_libjvm = launch->libjvm;
	process = process_get(&session->processes, launch->pid, 0);
	err = prepare_engine(session);
	/* launch_run() reports a program that does not exist */
	if (!err && !launch->is_java && launch->program[0] && session->options->agent != AGENT_NEVER)
		err = check_no_java(session);
	if (err < 0)
		return err;
	cause = launch->is_java ? jvms_attach_cause(&session->jvms, process) : NULL;
	if (cause)
		err = launch_add_agent(launch);
	if (err < 0 && jvms_go_without_agent(&session->jvms)) { /* the attach, which comes later, reports it */
		cause = NULL;
		err = 0;
	}
	if (err < 0)
		return explain_unstarted(session, err);
	prepare_command(session);
	err = start_ticks(session);
	if (err < 0)
		return err;
	err = launch_run(launch);
	if (err < 0)
		return log_fail(err, "%s cannot be run: %s", session->options->command[0], strerror(-err));
	if (cause)
		return jvms_attach(&session->jvms, process_get(&session->processes, launch->pid, 0), ATTACH_LOADED,
				   cause, &launch->control);
	return 0;
}

/* Publishes the targets' mappings again, including what the agents mapped while attaching. */
static void publish_pids(struct session *session)
{
	for (size_t i = 0; i < session->options->pids.len; i++) {
		struct process *process = process_find(&session->processes, session->options->pids.items[i]);

		if (process && process_refresh_maps(process, clock_monotonic_ns(), 0) >= 0)
			unwinding_publish_now(jvms_unwinding(&session->jvms, process), process);
	}
}

struct chosen { /* processes to prepare */
	struct session *session;
	struct vec(struct chosen_process {
		struct process *process;
		uint64_t bytes; /* of its code */
	}) list;
};

static void choose(void *context, pid_t pid)
{
	struct chosen *chosen = context;
	struct session *session = chosen->session;
	struct process *process = process_find(&session->processes, pid);
	uint64_t bytes = 0;

	if (!process || !selection_has(&session->selection, process))
		return;
	for (size_t i = 0; i < process->maps.list.len; i++)
		bytes += process->maps.list.items[i].end - process->maps.list.items[i].start;
	(void)vec_push(&chosen->list, (struct chosen_process){process, bytes}); /* without memory, it is met later */
}

static int compare_bytes(const void *a, const void *b)
{
	const struct chosen_process *x = a, *y = b;

	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* On a busy machine the same work takes longer. */
static void work_on_wanted(struct session *session)
{
	uint64_t cpu_ns = clock_cpu_ns() + PREPARE_NS, until_ns = clock_monotonic_ns() + PREPARE_BUSY_NS;

	while (unwinding_has_work(&session->unwinding) && !session->interrupted && clock_cpu_ns() < cpu_ns &&
	       clock_monotonic_ns() < until_ns)
		unwinding_work(&session->unwinding, &session->processes, clock_monotonic_ns() + PREPARE_SLICE_NS);
}

/*
 * Prepares for the walk those of the host's processes that were chosen by a name or a cgroup, or else those that run:
 * all would be too many. Small ones come first, so that a large one takes the time of no other.
 */
static void publish_host(struct session *session, const struct map *busy)
{
	struct chosen chosen = {.session = session};

	if (session->selection.comm || session->selection.cgroup_id)
		(void)process_each(choose, &chosen);
	else
		busy_each(busy, choose, &chosen);
	if (chosen.list.len)
		qsort(chosen.list.items, chosen.list.len, sizeof(*chosen.list.items), compare_bytes);
	for (size_t i = 0; i < chosen.list.len; i++) {
		struct process *process = chosen.list.items[i].process;

		unwinding_want(jvms_unwinding(&session->jvms, process), process);
	}
	vec_release(&chosen.list);
	work_on_wanted(session);
}

/* Before that, reads what is known of the targets. It may have changed when the wait is over. */
static int await(struct session *session)
{
	const struct options *options = session->options;
	int err;

	if (!options->await)
		return 0;
	publish_pids(session);
	err = options->await(options->await_context);
	session->command_ns = clock_monotonic_ns();
	return err ? err : jvms_find_targets(&session->jvms);
}

static int start_targets(struct session *session, struct map *busy)
{
	int err = jvms_find_targets(&session->jvms);

	if (!err)
		err = find_selection(session);
	if (session->options->host) {
		busy_note(busy);
		containers_scan(&session->owners.containers);
	}
	if (!err)
		err = prepare_engine(session);
	if (!err)
		err = await(session);
	if (!err)
		err = session->options->host ? jvms_attach_host(&session->jvms, &session->selection)
					     : jvms_attach_targets(&session->jvms);
	if (!err)
		err = wait_for_agents(session);
	if (err < 0)
		return err;
	publish_pids(session);
	if (session->options->host) {
		publish_host(session, busy);
		report_if_nobody(session);
		prepare_kernel(session);
	}
	return start_ticks(session);
}

/* What is done after the start, also by the next recording of a daemon. headers/SECURITY.md says what needs which. */
#define RIGHTS_OF_LOADER \
	(RIGHT(CAP_BPF) | RIGHT(CAP_PERFMON) | RIGHT(CAP_SYS_ADMIN) | RIGHT(CAP_SYS_RESOURCE) | \
	 RIGHT(CAP_IPC_LOCK) | RIGHT(CAP_SYSLOG) | RIGHT(CAP_SYS_PTRACE) | RIGHT(CAP_CHECKPOINT_RESTORE) | \
	 RIGHT(CAP_DAC_READ_SEARCH) | RIGHT(CAP_DAC_OVERRIDE) | RIGHT(CAP_FOWNER) | RIGHT(CAP_CHOWN) | \
	 RIGHT(CAP_KILL) | RIGHT(CAP_NET_BIND_SERVICE))
#define RIGHTS_OF_ATTACHING (RIGHT(CAP_SETUID) | RIGHT(CAP_SETGID) | RIGHT(CAP_SYS_CHROOT))

/* With -v; a daemon says it always if a wall is missing. */
static void report_box(bool is_daemon)
{
	int lacks = is_daemon || log_level() >= LOG_DEBUG ? box_try() : 0;
	BUF(walls);

	if (lacks < 0)
		buf_printf(&walls, "there is none: %s", strerror(-lacks));
	else
		box_describe((unsigned int)lacks, &walls);
	log_print(is_daemon && lacks ? LOG_INFO : LOG_DEBUG, "files of processes are read in a box: %s", walls.data);
}

int session_start(struct session *session)
{
	struct map busy = {0};
	/* a daemon that reads its configuration again may attach later */
	bool attaches = session->options->agent != AGENT_NEVER || session->options->window_ns;
	int err = session->options->command ? launch_command(session) : start_targets(session, &busy);

	map_release(&busy);
	if (!err)
		report_box(session->options->window_ns);
	return err ? err : box_narrow(RIGHTS_OF_LOADER | (attaches ? RIGHTS_OF_ATTACHING : 0));
}
