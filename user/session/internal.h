/* SPDX-License-Identifier: MIT */
/* State of a running session, and the functions that the files of session/ share. */
#pragma once

#include "base/io.h"
#include "collect/engines.h"
#include "collect/kernel/kernel_names.h"
#include "collect/tables/unwinding.h"
#include "join/pending.h"
#include "jvms/flight_recording.h"
#include "jvms/jvms.h"
#include "jvms/launch.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "proc/process.h"
#include "proc/selection.h"
#include "profile/profile.h"
#include "session/intake.h"
#include "session/session.h"
#include "session/sleep_edges.h"
#include "status/notify.h"
#include "status/report.h"
#include "status/status.h"
#include "subject/census.h"
#include "subject/host.h"
#include "subject/owners.h"
#include "subject/vitals.h"
#include "sym/symbols.h"
#include "windows/windows.h"
#include "writers/output_files.h"

struct session {
	const struct options *options;
	struct engine_in_use engine;
	struct buf engine_why; /* why the engine is not bpf; empty if it is bpf, or if the user chose another one */
	struct process_table processes;
	struct jvms jvms;
	struct symbols *symbols;
	struct kernel_names kernel_names; /* for `symbols` */
	struct unwinding unwinding;
	struct profile profile;
	struct pending pending;
	struct intake intake;
	struct sleep_edges edges;
	struct owners owners;
	struct host host;
	struct vitals vitals; /* profile is NULL when no output keeps notes */
	struct census census;
	struct budget budget;
	struct overhead overhead;
	struct status status;
	struct selection selection; /* which of the host's processes are profiled: --cgroup, --container and --comm */
	struct outcomes reported; /* the outcomes at the end of the previous window */
	struct report report; /* from the first tick on */
	struct output_files outputs;
	struct writer_options style; /* of the outputs */
	struct flight_recording jdk; /* the JVM's own recording */
	uint64_t cpus; /* online */
	int signal_fd;
	struct launch launch; /* -- CMD; its pid is 0 without a command */
	uint64_t started_ns; /* time of the earliest possible tick; 0 = not started */
	uint64_t ended_ns; /* time of the last possible tick */
	uint64_t command_ns; /* time at which session_run() was called */
	struct windows windows;
	uint64_t asked_until_ns; /* the end of a window for which the agents were asked last */
	struct notify notify;
	uint64_t woke_ns; /* when the loop's last wait ended */
	uint64_t longest_step_ns; /* longest time without a wait: meanwhile nobody reads BPF's ring and the agents */
	uint64_t flush_wanted_ns; /* when SIGUSR1 came; 0: the outputs were flushed since */
	bool interrupted;
	bool is_behind; /* BPF's ring was not emptied in time: the next step does not wait */
};

#define POLL_ATTACH_MS 5 /* while agents start and publish existing code */

/* start.c: all that is done before the first tick. Returns 0, or -errno after reporting the error. */
int session_start(struct session *session);

/* session.c */
void session_release_dead(void *session); /* frees agents and processes that have ended */

/* loop.c. Waits at most `timeout_ms` for an event, and handles all that are due. */
void session_step(struct session *session, int timeout_ms);
/* Adds notes about the JVMs and the machine. Call at the beginning; session_loop() and session_stop() call it, too. */
void session_note_vitals(struct session *session, uint64_t now_ns);
void session_loop(struct session *session); /* steps until the recording is to end */
/* Stops the ticks, then the signals, then the agents, so that the last signal still finds its handler. */
void session_stop(struct session *session);
