/* SPDX-License-Identifier: MIT */
/* The start of a session: targets, engine, agents, and the command that is profiled from its start. */
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "jvms/launch.h"
#include "session_internal.h"
#include "sym/kallsyms.h"

/* Finds the id of --cgroup or --container, which BPF compares. */
static int find_cgroup(struct session *session)
{
	const struct session_options *options = session->options;
	struct cgroup_tree *tree = &session->owners.containers.tree;
	struct buf why;
	int err = 0;

	buf_init(&why);
	if (options->container)
		err = containers_find(&session->owners.containers, options->container, &session->cgroup_id,
				      &session->cgroup, &why);
	else if (options->cgroup)
		err = cgroup_find(tree, options->cgroup, &session->cgroup_id, &session->cgroup);
	if (err < 0 && why.len)
		log_error("%s", why.data);
	else if (err < 0 && tree->fd < 0)
		log_error("--cgroup needs cgroup v2, which is not mounted on /sys/fs/cgroup or .../unified");
	else if (err < 0)
		log_error("no cgroup '%s' below %s: %s; systemd-cgls lists all", options->cgroup, tree->mount,
			  err == -EXDEV ? "it is not in cgroup v2" : strerror(-err));
	buf_release(&why);
	return err;
}

/* Makes the same choice for a process that BPF makes for each sample. */
bool session_chooses(const struct session *session, const struct process *process)
{
	struct buf path;
	bool is_below = true;

	if (session->options->comm && strncmp(process->comm, session->options->comm, sizeof(process->comm) - 1) != 0)
		return false;
	if (!session->cgroup_id)
		return true;
	buf_init(&path);
	is_below = !cgroup_of_process(process->pid, false, &path) && cgroup_is_below(path.data, session->cgroup.data);
	buf_release(&path);
	return is_below;
}

static int attach_host(struct session *session)
{
	pid_t *pids;
	size_t count;
	int err = process_list(&pids, &count);

	if (err < 0)
		return err;
	for (size_t i = 0; i < count; i++) {
		struct process *process = process_get(&session->processes, pids[i], 0);

		if (process && session_chooses(session, process))
			jvms_notice(&session->jvms, process);
	}
	free(pids);
	return 0;
}

/* Returns the number of agents that failed, with one of them, or 0 if there is anything of a JVM to record. */
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

/* With -p, the command ends before anything is recorded if all targets are JVMs and no agent could be attached. */
static int wait_for_agents(struct session *session)
{
	const struct agent *agent = NULL;
	size_t failed;

	while ((!jvms_settled(&session->jvms) || session->unwinding.wanted.len) && !session->interrupted)
		session_step(session, POLL_ATTACH_MS);
	failed = count_failed(&session->jvms.agents, &agent);
	if (failed && !session->options->host && !session->jvms.natives) {
		if (failed == 1)
			log_error("%s", agent->why);
		else
			log_error("the agent could not be attached to any of the %zu processes", failed);
		return -EPERM;
	}
	return session->interrupted ? -EINTR : 0;
}

static int open_engine(struct session *session, enum session_engine engine, struct buf *why)
{
	struct collector_options options = {
		.events = &session->options->events,
		.user_depth = DUET_MAX_WALK,
		.keep_all = session->options->java_depth > DUET_JAVA_DEPTH,
		.kernel_depth = session->options->all_user ? 0 : DUET_MAX_STACK,
		.targets = session->options->host ? NULL : session->options->pids.items,
		.target_count = session->options->pids.len,
		.cgroup_id = session->cgroup_id,
		.comm = session->options->comm,
		.signals = session->options->signals,
		.max_bytes = budget_bpf_bytes(&session->budget),
		.plain = session->options->interval_pairing,
	};

	if (session->child) {
		options.targets = &session->child;
		options.target_count = 1;
		options.follow_forks = true;
	}
	return engine_open(&session->engine, engine, &options, why);
}

/* Opens the best engine that needs no BPF and has the events. `why` says what BPF lacks. */
static int open_instead(struct session *session, const char *why)
{
	struct buf refused;
	enum session_engine engine;

	buf_init(&refused);
	engine = engine_standalone(&session->options->events, &refused);
	if (engine == ENGINE_AUTO)
		log_error("%s", why);
	else
		log_warn("using the %s engine, %s: %s", engines[engine].name, engines[engine].instead, why);
	if (refused.len)
		log_info("the perf engine is refused, too: %s", refused.data);
	buf_release(&refused);
	return engine == ENGINE_AUTO ? -EPERM : open_engine(session, engine, &session->engine_why);
}

/* Opens the engine that was asked for; without such a wish BPF or, if it is refused, one that ticks in the agent. */
static int choose_engine(struct session *session)
{
	const struct session_options *options = session->options;
	int err = open_engine(session, options->engine == ENGINE_AUTO ? ENGINE_BPF : options->engine,
			      &session->engine_why);

	if (!err) {
		buf_clear(&session->engine_why);
		return 0;
	}
	if (options->engine == ENGINE_AUTO && !options->host && options->agent != AGENT_NEVER)
		return open_instead(session, session->engine_why.data);
	log_error("%s", session->engine_why.data);
	return err;
}

static void warn_of_unnamed_kernel(const struct session *session)
{
	struct buf why;

	buf_init(&why);
	if (!session->options->all_user && kallsyms_hidden("/proc/kallsyms", &why))
		log_warn("kernel frames show addresses, not names: %s", why.data);
	buf_release(&why);
}

static int prepare_engine(struct session *session)
{
	const struct budget_parts parts = {
		.engine = &session->engine,
		.profile = &session->profile,
		.decided = &session->decided,
		.symbols = session->symbols,
		.unwinding = &session->unwinding,
		.agents = &session->jvms.agents,
		.processes = &session->processes,
		.writer_bytes = &session->windows.writer_bytes,
		.release_dead = session_release_dead,
		.context = session,
	};
	int err = choose_engine(session);

	if (err < 0)
		return err;
	if (session->engine.row->sees_kernel)
		warn_of_unnamed_kernel(session);
	unwinding_init(&session->unwinding, session->engine.tables);
	session->decided.has_bpf = !session->engine.row->standalone;
	session->short_lived.collector = session->engine.collector;
	return budget_start(&session->budget, &parts);
}

static int start_ticks(struct session *session)
{
	int err = engine_start(&session->engine);

	if (err < 0)
		log_error("the perf events could not be enabled: %s", strerror(-err));
	session->started_ns = clock_monotonic_ns();
	session->jvms.is_ticking = true;
	return err;
}

static void prepare_kernel(struct session *session)
{
	if (session->engine.row->sees_kernel && !session->options->all_user)
		symbols_prepare_kernel(session->symbols);
}

static int prepare_library(struct dl_phdr_info *info, size_t size, void *unwinding)
{
	(void)size;
	if (info->dlpi_name[0] == '/')
		unwinding_prepare(unwinding, info->dlpi_name);
	return 0;
}

/*
 * Reads what every command needs while it waits: a short one would end before its code is known. Most programs have
 * the C library and the dynamic linker in common with us.
 */
static void prepare_command(struct session *session, const char *libjvm)
{
	prepare_kernel(session);
	if (libjvm[0])
		unwinding_prepare(&session->unwinding, libjvm);
	dl_iterate_phdr(prepare_library, &session->unwinding);
}

/* A command that is not java may still run a JVM later. BPF notices that; timer engines cannot. */
static int check_no_java(const struct session *session)
{
	const char *name = session->options->command[0];

	if (!session->engine.row->standalone) {
		log_info("%s is not java: %snative frames, and Java frames when it becomes or starts a JVM", name,
			 session->options->all_user ? "" : "kernel and ");
		return 0;
	}
	log_error("%s is not java: the %s engine samples only JVMs, from an agent that only a java command is given; "
		  "start java itself, or use --engine bpf, which profiles every process: see `duet check`",
		  name, session->engine.row->name);
	return -ENOTSUP;
}

static int explain_unstarted(const struct session *session, int err)
{
	log_error("%s cannot be started: %s", session->options->command[0], strerror(-err));
	return err;
}

static int launch_command(struct session *session)
{
	struct attach_control control;
	struct launch launch = {.argv = session->options->command, .control = &control};
	const char *cause;
	int err = attach_control_new(&control, getpid());

	if (!err)
		err = launch_start(&launch);
	if (err < 0)
		return explain_unstarted(session, err);
	session->child = session->jvms.child = launch.pid;
	session->child_gate = launch.gate;
	err = prepare_engine(session);
	if (!err && !launch.is_java && session->options->agent != AGENT_NEVER)
		err = check_no_java(session);
	if (err < 0)
		return err;
	cause = launch.is_java ? jvms_attach_cause(&session->jvms) : NULL;
	if (cause)
		err = launch_add_agent(&launch, session->library, sizeof(session->library));
	if (err < 0)
		return explain_unstarted(session, err);
	prepare_command(session, launch.libjvm);
	err = start_ticks(session);
	if (err < 0)
		return err;
	err = launch_run(&launch);
	if (err < 0) {
		log_error("%s cannot be run: %s", session->options->command[0], strerror(-err));
		return err;
	}
	if (cause)
		return jvms_attach(&session->jvms, process_get(&session->processes, session->child, 0), ATTACH_LOADED,
				   cause, &control);
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

int session_start(struct session *session)
{
	int err;

	if (session->options->command)
		return launch_command(session);
	err = jvms_find_targets(&session->jvms);
	if (!err)
		err = find_cgroup(session);
	if (session->options->host)
		containers_scan(&session->owners.containers);
	if (!err)
		err = prepare_engine(session);
	if (!err)
		err = session->options->host ? attach_host(session) : jvms_attach_targets(&session->jvms);
	if (!err)
		err = wait_for_agents(session);
	if (err < 0)
		return err;
	publish_pids(session);
	if (session->options->host)
		prepare_kernel(session);
	return start_ticks(session);
}
