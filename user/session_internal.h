/* SPDX-License-Identifier: MIT */
/* State of a running session, and the functions that the session*.c files share. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include <poll.h>

#include "base/io.h"
#include "collect/collector.h"
#include "collect/parts.h"
#include "collect/short_lived.h"
#include "collect/unwinding.h"
#include "join/join.h"
#include "join/outcomes.h"
#include "join/resolve.h"
#include "jvms/agents.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "proc/process.h"
#include "profile/profile.h"
#include "serve/notify.h"
#include "serve/report.h"
#include "serve/status.h"
#include "session.h"
#include "subject/host.h"
#include "subject/owners.h"
#include "sym/symbols.h"
#include "windows/windows.h"

/* One output file. An output has one file, or one for each event. */
struct session_written {
	char *file; /* owned; NULL = stdout */
	const struct writer *writer;
	uint32_t event;
	struct io_output output;
	struct writer_stream *stream; /* for a file written during the recording */
	int stream_error; /* -errno of the first failure: nothing more is appended */
};

struct session {
	const struct session_options *options;
	enum session_engine engine; /* the chosen engine */
	struct buf engine_why; /* why the engine is not bpf; empty if it is, or if another was asked for */
	struct collector *collector; /* NULL for standalone engines */
	struct process_table processes;
	struct agents agents;
	size_t natives; /* number of -p processes that are not JVMs */
	struct symbols *symbols;
	struct unwinding unwinding;
	struct profile profile;
	struct resolver resolver;
	struct join *join;
	struct parts parts; /* parts of BPF's samples */
	struct short_lived short_lived;
	struct owners owners;
	struct host host;
	struct budget budget;
	struct overhead overhead;
	struct status status;
	uint64_t cgroup_id; /* from --cgroup or --container; 0 = any */
	struct buf cgroup; /* path of that cgroup */
	struct outcomes outcomes;
	struct outcomes told; /* the outcomes at the end of the previous window */
	struct report report; /* from the first tick on */
	struct vec(struct session_written) outputs;
	uint64_t cpus; /* online */
	int signal_fd;
	pid_t child; /* pid of -- CMD; 0 = none */
	int child_gate; /* struct launch.gate: closing it ends a child that still waits */
	char library[256]; /* path of the library placed for -agentpath; "" = none */
	uint64_t started_ns; /* time of the earliest possible tick; 0 = not started */
	uint64_t ended_ns; /* time of the last possible tick */
	uint64_t command_ns; /* time at which session_run() was called */
	uint64_t streamed_ns; /* last time that outputs were appended to; 0 = none is written during the recording */
	uint64_t hurry_ns; /* answers with names are expected until then: poll more often */
	struct vec(pid_t) unpublished; /* processes whose unwind rows must be published */
	uint64_t newest_ns; /* time of the last sample that was read from BPF's ring, which is in the order of time */
	uint64_t read_ns; /* all samples taken before then have been read */
	struct windows windows;
	struct notify notify;
	uint64_t swept_ns; /* last search for processes that ended without an exit record */
	uint64_t forgot_ns; /* last time that the JVMs' old code was forgotten */
	bool interrupted;
	bool is_behind; /* BPF's ring was not emptied in time: the next step does not wait */
};

#define POLL_ATTACH_MS 5 /* while agents start and publish existing code */
#define HURRY_NS (NS_PER_SEC / 5) /* a requested name arrives within this time */

/* session_start.c: everything up to the first tick. Returns 0, or -errno after reporting the error. */
int session_start(struct session *session);

/* session_targets.c: the processes of -p. Both return 0, or -errno after reporting the error. */
int session_find_targets(struct session *session);
int session_attach_targets(struct session *session); /* attaches to the JVMs; reports what the others lack */

/* session_records.c. Waits at most `timeout_ms` for the first of any events and handles all that are due. */
void session_step(struct session *session, int timeout_ms);
bool session_read_rings(struct session *session); /* false: BPF's ring is not empty, but reading took too long */
bool session_settled(const struct session *session); /* true when every agent is RUNNING, GONE or FAILED */
/* Returns the unwind tables by which the process's stacks are walked. */
struct unwinding *session_unwinding(struct session *session, const struct process *process);

/* The join's handler (join_handler): adds one decided sample to the profile. */
bool session_on_decided(void *context, void *owner, const struct duet_sample *sample,
			const struct duet_java_sample *java, enum join_outcome outcome, bool last_chance);

/* session_agents.c. Attaching is retried a few times if the cause of a failure may pass. Returns 0 or -errno. */
int session_attach(struct session *session, struct process *process, enum attach_kind kind,
		   const struct attach_control *control);
/* Attaches if the process has become a JVM. Cheap unless its mappings have changed since the last call. */
void session_notice(struct session *session, struct process *process);
/* fds[i] is the polled agent_fd() of agent i */
void session_step_agents(struct session *session, const struct pollfd *fds, size_t count);
void session_agent_changed(struct session *session, struct agent *agent, enum agent_state before);
void session_tell_layout(struct session *session, struct agent *agent);
bool session_agent_survives_exec(const struct session *session, const struct agent *agent, uint64_t exec_ns);
void session_drop_agent(struct session *session, struct agent *agent);

/*
 * session_output.c. session_style() returns the options for the writers. The two below it return 0, or -errno after
 * reporting the error.
 */
struct writer_options session_style(const struct session *session);
int session_open_outputs(struct session *session);
void session_begin_streams(struct session *session); /* call when ticks have started; reports errors */
void session_step_streams(struct session *session, uint64_t now_ns);
int session_write_outputs(struct session *session);
void session_discard_outputs(struct session *session);

/* session_release.c. Frees what belongs to processes that have ended. */
void session_release_dead(void *session);
void session_free_useless(struct session *session); /* frees failed agents that will not be retried */

#endif
