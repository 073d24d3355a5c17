/* SPDX-License-Identifier: MIT */
/* One recording from start to finished file: the pipeline that headers/README.md describes. */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "duet_config.h"
#include "engines.h"
#include "event/event.h"
#include "out/writer.h"
#include "owners.h"
#include "window_files.h"

struct session_output {
	char *file; /* expanded, owned; NULL = stdout */
	const struct writer *writer;
};

struct session_options {
	struct vec(pid_t) pids; /* -p */
	bool host; /* --host, and the three below, which choose among the host's processes */
	const char *cgroup, *container, *comm; /* NULL for any */
	char **command; /* -- CMD ARGS…; NULL for none */
	struct event_list events;
	uint64_t duration_ns; /* 0 = until the target or the user ends it */
	enum session_engine engine;
	uint32_t java_depth;
	uint64_t max_memory; /* bytes; 0 = budget_default_bytes() */
	double max_overhead; /* percent of the host's CPU; 0 = no limit */
	enum duet_signals signals;
	bool all_user;
	bool no_attach; /* no agent: kernel and native frames only */
	struct owners_list leave_alone; /* no agent in these JVMs */
	bool spark_names; /* applications have Spark's names */
	bool interval_pairing; /* do not use cookies even where the kernel has them */
	struct vec(struct session_output) outputs;
	struct writer_options style;
	const char *metrics; /* where to serve them; NULL = nowhere */
	const char *command_line; /* for the facts */
	uint64_t window_ns; /* --continuous: each window is written into `folder`; 0 = one recording */
	/* Asked on SIGHUP, SIGINT and SIGTERM whether the recording ends; NULL: each ends it. */
	bool (*signalled)(void *context, int signo);
	void *signalled_context;
	struct window_files folder; /* of --continuous, whose outputs have no file; its access is that of all files */
};

/* Prints what the user must know on stderr. Exit code: 0 done, 1 failed. */
int session_run(const struct session_options *options);

#endif
