/* SPDX-License-Identifier: MIT */
/* One recording from start to finished file: the pipeline that headers/README.md describes. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "collect/engines.h"
#include "duet_config.h"
#include "event/event.h"
#include "subject/owners.h"
#include "windows/window_files.h"
#include "writers/writer.h"

struct attach_control;

struct session_output {
	char *file; /* placeholders expanded; owned; NULL = stdout */
	const struct writer *writer;
};

struct session_options {
	struct vec(pid_t) pids; /* -p */
	bool host; /* --host; cgroup, container and comm select among the host's processes */
	const char *cgroup, *container, *comm; /* NULL for any */
	bool as_called; /* for async-profiler's callers: DUET_AGENT_AS_CALLED */
	/* of the one process in pids: where it listens; NULL, or an empty name after await(): attach one */
	const struct attach_control *loaded_agent;
	/*
	 * Called for processes of `pids` when all is prepared that needs no agent. Waits until the recording may begin.
	 * Returns 0, or -errno to end without a message. NULL: it may begin.
	 */
	int (*await)(void *context);
	void *await_context;
	char **command; /* -- CMD ARGS…; NULL for none */
	struct event_list events;
	uint64_t duration_ns; /* 0 = until the target ends or the user stops it */
	enum session_engine engine;
	uint32_t java_depth;
	uint64_t max_memory; /* bytes; 0 = a share of the memory, see budget_open() */
	uint64_t max_file; /* limit of the output files' bytes, which are of the format duet; 0 = no limit */
	double max_overhead; /* percent of the host's CPU; 0 = no limit */
	enum duet_signals signals;
	bool all_user;
	enum agent_policy agent;
	struct owners_list leave_alone; /* these JVMs get no agent */
	uint64_t least_sleep_ns, most_sleep_ns; /* --off-cpu, as in struct collector_options */
	enum duet_return sleep_hook; /* as in struct collector_options */
	bool wakers; /* with who ended each sleep */
	bool holders; /* with who held each lock that was waited for */
	uint64_t usages_ns; /* --proc: how often the machine's processes are looked at; 0 = never */
	bool alloc_native; /* --alloc-native: the native frames of allocations, too */
	bool tlab; /* --tlab: BPF samples allocations, see bpf/event_tlab.bpf.c */
	uint32_t survivors; /* --survivors: only objects that have outlived so many collections */
	bool ages; /* --ages: live objects with their age */
	bool cpus; /* stacks of ticks and counted events begin with the CPU */
	bool offsets; /* native frames have the offset of their instruction */
	bool policies; /* stacks begin with the thread's scheduling policy */
	bool receivers; /* above vtable stubs comes the class of the object whose method is called */
	uint32_t only_cpu; /* ticks and counted events of CPU only_cpu - 1 alone; 0: of each CPU */
	bool spark_names; /* add Spark's names to applications */
	bool interval_pairing; /* do not use cookies even where the kernel has them */
	struct vec(struct session_output) outputs;
	struct writer_options style;
	const char *jfrsync; /* settings of the recording that the one JVM in pids makes itself; NULL = none */
	const char *metrics; /* address at which metrics are served; NULL = none */
	const char *command_line; /* for the profile's facts */
	uint64_t window_ns; /* --continuous: length of a window, written into `folder`; 0 = one recording */
	/* Called on SIGHUP, SIGINT and SIGTERM; returns true to end the recording. NULL: each signal ends it. */
	bool (*signalled)(void *context, int signo);
	void *signalled_context;
	/* of --continuous, whose outputs have no file; folder.access applies to all files */
	struct window_files folder;
};

/* Reports to the user on stderr. Returns the exit code: 0 done, 1 failed; of a command that ended, its own. */
int session_run(const struct session_options *options);

#endif
