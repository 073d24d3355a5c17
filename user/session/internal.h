/* SPDX-License-Identifier: MIT */
/* State of a running session, and the functions that the files of session/ share. */
#pragma once

#include "collect/engines.h"
#include "collect/kernel/kernel_names.h"
#include "collect/records/split_samples.h"
#include "collect/tables/mapping_events.h"
#include "collect/tables/unwinding.h"
#include "join/pending.h"
#include "jvms/flight_recording.h"
#include "jvms/jvms.h"
#include "jvms/launch.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "proc/containers.h"
#include "proc/process.h"
#include "profile/profile.h"
#include "session/session.h"
#include "status/notify.h"
#include "status/report.h"
#include "status/status.h"
#include "subject/host.h"
#include "subject/program.h"
#include "subject/vitals.h"
#include "sym/symbols.h"
#include "windows/windows.h"
#include "writers/output_files.h"

/* The way of records into `pending`. */
struct intake {
	struct early early; /* stacks of sleeps whose weight follows */
	struct deep_stacks deep_stacks; /* parts of deep stacks that BPF sent before their samples */
	struct short_lived short_lived;
	uint64_t jvms_seen; /* number of the newest note that was searched for a new JVM */
	/* time of the last sample that was read from BPF's ring; the ring is in the order of time */
	uint64_t newest_ns;
	uint64_t read_ns; /* all samples taken before then have been read */
};

/* What was done about the threads that sleep over an end. */
struct sleep_edges {
	bool is_previewing; /* not all of those threads have been seen */
	uint64_t prepared_ns; /* when the processes of threads that sleep were prepared for the walk last */
	uint64_t sampled_ns; /* the end of a window up to which sleeps were sampled last */
	uint64_t walked_ns; /* the edge for which a walk ahead of it has begun */
	bool is_walking; /* it has not ended */
};

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
	bool flush_has_edge; /* with a value (sigqueue(3)): threads that sleep have a sample then */
	uint64_t flush_asked_ns; /* when agents were asked to write what threads sleep; 0: they were not */
	bool interrupted;
	bool is_behind; /* BPF's ring was not emptied in time: the next step does not wait */
};

/* Returns true if agents see threads that sleep: without BPF. */
bool session_agents_see_sleeps(const struct session *session);

#define POLL_ATTACH_MS 5 /* while agents start and publish existing code */

/* start.c: all that is done before the first tick. Returns 0, or -errno after reporting the error. */
int session_start(struct session *session);

/* session.c */
void session_release_dead(void *session); /* frees agents and processes that have ended */
uint64_t session_end_ns(const struct session *session); /* when the recording ends; UINT64_MAX: not known */

/* intake.c. Opens `pending`, into which the records go. Returns 0 or -ENOMEM. Release in any case. */
int intake_open(struct session *session);
void intake_release(struct session *session);
/* Call when the engine is open, before anything is read. */
void intake_begin(struct session *session);
/* Reads the agents' rings and BPF's ring. Returns false if BPF's ring is not empty, but reading took too long. */
bool intake_read(struct session *session);
/* The process of a sample, prepared for the walks of its threads. NULL when out of memory. */
struct process *intake_process(struct session *session, const struct duet_sample *sample);
/* Takes a sample from BPF. It waits for its other half and for its names, and then gets into the profile. */
void intake_on_sample(struct session *session, const struct duet_sample *record);

/* Without an engine that shows threads that sleep (collect/sleepers/sleepers.h), these three do nothing. */
/* Call often: prepares processes whose threads sleep, and takes samples of those threads at the end of each window. */
void sleep_edges_step(struct session *session, uint64_t now_ns);
void sleep_edges_flush(struct session *session); /* takes samples of threads that sleep now */
void sleep_edges_end(struct session *session); /* call just before the ticks end: finds the threads that sleep then */
void sleep_edges_pass(struct session *session); /* call after the ticks have ended: takes the samples of those found */

/* loop.c. Waits at most `timeout_ms` for an event, and handles all that are due. */
void session_step(struct session *session, int timeout_ms);
/* Adds notes about the JVMs and the machine. Call at the beginning; session_loop() and session_stop() call it, too. */
void session_note_vitals(struct session *session, uint64_t now_ns);
void session_loop(struct session *session); /* steps until the recording is to end */
/* Stops the ticks, then the signals, then the agents, so that the last signal still finds its handler. */
void session_stop(struct session *session);
