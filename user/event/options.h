/* SPDX-License-Identifier: MIT */
/*
 * What a recording is asked for. The rows of the options' table (cmd/record_rows.c) fill it for `duet record` and
 * `duet daemon`, and the recorder does for async-profiler's callers. cmd/record.h checks it and completes it. All else
 * reads it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/io.h"
#include "base/opt.h"
#include "base/vec.h"
#include "duet_config.h"
#include "event/event.h"
#include "writers/writer.h"

#define OPTIONS_EVENTS 64 /* most rows of event_table */

struct attach_control;

/* In the order in which they are tried. */
enum session_engine { ENGINE_AUTO, ENGINE_BPF, ENGINE_PERF, ENGINE_CTIMER, ENGINE_ITIMER };

/* --agent: which JVMs get an agent. With a standalone engine all JVMs do. */
enum agent_policy {
	/*
	 * JVMs that cannot be read from outside, or whose walks are cut too often; all JVMs if an event or --signals
	 * always needs the agent.
	 */
	AGENT_NEEDED,
	AGENT_ALWAYS,
	AGENT_NEVER,
};

/* Names and users of JVMs, as the configuration lists them. */
struct owners_list {
	struct opt_strings patterns; /* patterns for names */
	struct vec(uid_t) users; /* effective user ids as the host numbers them */
};

struct session_output {
	char *file; /* placeholders expanded; owned; NULL = stdout */
	const struct writer *writer;
};

/* The folder of a continuous recording, see windows/window_files.h. */
struct window_files {
	const char *folder;
	uint32_t keep_files; /* keep_files, keep_age_ns, keep_bytes: 0 = no limit */
	uint64_t keep_age_ns;
	uint64_t keep_bytes;
	struct io_access access; /* permissions of the files; access.group may also enter the folder */
};

/* The words of options whose meaning other options and this machine decide. cmd/ alone reads them. */
struct options_given {
	struct opt_strings pids;
	struct opt_strings events; /* the lists of -e */
	struct opt_strings files;
	struct opt_strings traces;
	const char *event_options[OPTIONS_EVENTS]; /* by index in event_table; "" for a switch */
	const char *interval, *engine, *format, *pairing, *signals, *agent, *sleep_hook, *by, *group;
	uint32_t freq, depth, jfropts;
	bool all, continuous, no_attach, verbose;
};

struct options {
	enum command_help help; /* first: see struct command */
	struct options_given given;

	/* whom */
	struct vec(pid_t) pids; /* -p */
	bool host; /* --host; cgroup, container and comm select among the host's processes */
	const char *cgroup, *container, *comm; /* NULL for any */
	char **command; /* -- CMD ARGS…; NULL for none */
	struct owners_list leave_alone; /* these JVMs get no agent */

	/* what is sampled, and how */
	struct event_list events;
	uint64_t duration_ns; /* 0 = until the target ends or the user stops it */
	enum session_engine engine;
	enum agent_policy agent;
	enum duet_return sleep_hook; /* sleeps are sampled there only; NONE: at the best hook that there is */
	struct duet_options bpf; /* what BPF reads itself */
	uint32_t java_depth;
	uint32_t only_cpu; /* ticks and counted events of CPU only_cpu - 1 alone; 0: of each CPU */
	uint32_t survivors; /* only objects that have outlived so many collections */
	bool all_user; /* no kernel frames */
	bool wakers; /* with who ended each sleep */
	bool holders; /* with who held each lock that was waited for */
	bool alloc_native; /* the native frames of allocations, too */
	bool tlab; /* BPF samples allocations, see bpf/event_tlab.bpf.c */
	bool ages; /* live objects with their age */
	bool cpus; /* stacks of ticks and counted events begin with the CPU */
	bool offsets; /* native frames have the offset of their instruction */
	bool spark_names; /* add Spark's names to applications */
	bool interval_pairing; /* do not use cookies even where the kernel has them */
	bool needs_bpf; /* no other engine has what was asked for */
	uint64_t usages_ns; /* --proc: how often the machine's processes are looked at; 0 = never */

	/* what comes out */
	struct vec(struct session_output) outputs;
	struct writer_options style;
	const char *jfrsync; /* settings of the recording that the one JVM in pids makes itself; NULL = none */
	uint64_t window_ns; /* --continuous: length of a window, written into `folder`; 0 = one recording */
	/* of --continuous, whose outputs have no file; folder.access applies to all files */
	struct window_files folder;

	/* limits, and duet itself */
	uint64_t max_memory; /* bytes; 0 = a share of the memory, see budget_open() */
	uint64_t max_file; /* limit of the output files' bytes, which are of the format duet; 0 = no limit */
	double max_overhead; /* percent of the host's CPU; 0 = no limit */
	const char *metrics; /* address at which metrics are served; NULL = none */

	/* whose recording it is; no option sets these */
	const char *command_line; /* for the profile's facts */
	bool as_called; /* for async-profiler's callers: DUET_AGENT_AS_CALLED */
	/* of the one process in pids: where it listens; NULL, or an empty name after await(): attach one */
	const struct attach_control *loaded_agent;
	/*
	 * Called for processes of `pids` when all is prepared that needs no agent. Waits until the recording may begin.
	 * Returns 0, or -errno to end without a message. NULL: it may begin.
	 */
	int (*await)(void *context);
	void *await_context;
	/* Called on SIGHUP, SIGINT and SIGTERM; returns true to end the recording. NULL: each signal ends it. */
	bool (*signalled)(void *context, int signo);
	void *signalled_context;
};
