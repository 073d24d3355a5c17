/* SPDX-License-Identifier: MIT */
/* State of a running session, and the functions that the session*.c files share. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include <poll.h>

#include "base/io.h"
#include "collect/parts.h"
#include "collect/short_lived.h"
#include "collect/unwinding.h"
#include "join/decided.h"
#include "jvms/jvms.h"
#include "jvms/launch.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "out/output_files.h"
#include "proc/process.h"
#include "proc/selection.h"
#include "profile/profile.h"
#include "serve/notify.h"
#include "serve/report.h"
#include "serve/status.h"
#include "session.h"
#include "subject/host.h"
#include "subject/owners.h"
#include "sym/symbols.h"
#include "windows/windows.h"

struct session {
	const struct session_options *options;
	struct engine_in_use engine;
	struct buf engine_why; /* why the engine is not bpf; empty if it is, or if another was asked for */
	struct process_table processes;
	struct jvms jvms;
	struct symbols *symbols;
	struct unwinding unwinding;
	struct profile profile;
	struct decided decided;
	struct parts parts; /* parts of BPF's samples */
	struct short_lived short_lived;
	uint64_t jvms_seen; /* see new_jvms_next() */
	struct owners owners;
	struct host host;
	struct budget budget;
	struct overhead overhead;
	struct status status;
	struct selection selection; /* of the host's processes; see --cgroup, --container and --comm */
	struct outcomes told; /* the outcomes at the end of the previous window */
	struct report report; /* from the first tick on */
	struct output_files outputs;
	uint64_t cpus; /* online */
	int signal_fd;
	struct launch launch; /* -- CMD; its pid is 0 without one, and when it has ended */
	uint64_t started_ns; /* time of the earliest possible tick; 0 = not started */
	uint64_t ended_ns; /* time of the last possible tick */
	uint64_t command_ns; /* time at which session_run() was called */
	uint64_t newest_ns; /* time of the last sample that was read from BPF's ring, which is in the order of time */
	uint64_t read_ns; /* all samples taken before then have been read */
	struct windows windows;
	struct notify notify;
	uint64_t woke_ns; /* when the loop last ended to wait */
	uint64_t longest_step_ns; /* longest time without a wait, so without a look at BPF's ring and the agents */
	uint64_t sleepers_ns; /* when the processes of threads that sleep were prepared last */
	uint64_t edge_ns; /* the end of a window up to which the sleeps were told last */
	uint64_t walked_ns; /* the edge for which the threads that sleep were walked ahead */
	bool interrupted;
	bool is_behind; /* BPF's ring was not emptied in time: the next step does not wait */
};

#define POLL_ATTACH_MS 5 /* while agents start and publish existing code */

/* session_start.c: everything up to the first tick. Returns 0, or -errno after reporting the error. */
int session_start(struct session *session);

/* session.c. Call when the options may have changed: what a window is and in which formats it is written. */
void session_take_outputs(struct session *session);
void session_release_dead(void *session); /* frees agents and processes that have ended */

/* session_records.c. Waits at most `timeout_ms` for the first of any events and handles all that are due. */
void session_step(struct session *session, int timeout_ms);
bool session_read_rings(struct session *session); /* false: BPF's ring is not empty, but reading took too long */

/* The process of a sample, prepared for the walks of its threads. NULL when out of memory. */
struct process *session_meet(struct session *session, const struct duet_sample *sample);
/* Takes a sample of BPF's to where it waits for its other half or its names, and then to the profile. */
void session_on_sample(struct session *session, const struct duet_sample *record);

/*
 * session_sleepers.c. Call often: prepares the processes whose threads sleep, and tells of them at the end of each
 * window.
 */
void session_step_sleepers(struct session *session, uint64_t now_ns);
/* Call just before the ticks end. */
void session_end_sleepers(struct session *session);
/* Call after that: takes the samples of the threads that sleep over the end. */
void session_pass_sleepers(struct session *session);

/* Opens session->decided, through which samples get from the rings to the profile. Returns 0 or -ENOMEM. */
int session_open_decided(struct session *session);

#endif
