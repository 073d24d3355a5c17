/* SPDX-License-Identifier: MIT */
/* State of a running session, and what the session*.c files do with it. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include <poll.h>

#include "agents.h"
#include "base/io.h"
#include "budget.h"
#include "collect/collector.h"
#include "host.h"
#include "join/join.h"
#include "join/parts.h"
#include "notify.h"
#include "overhead.h"
#include "owners.h"
#include "proc/mapping_log.h"
#include "proc/process.h"
#include "profile/profile.h"
#include "profile/resolve.h"
#include "session.h"
#include "stats.h"
#include "status.h"
#include "sym/symbols.h"
#include "unwinding.h"
#include "windows.h"

#define SESSION_FAILURE_CODES 12 /* AsyncGetCallTrace: 0 to -10, and the rest */

struct session_stats {
	uint64_t samples;
	uint64_t jvm_samples; /* in threads of JVMs with an agent */
	uint64_t joined;
	uint64_t code_missing; /* JVM samples with frames of code that the agent never published */
	uint64_t needed; /* a signal: their walk was not whole, or met methods without a name */
	uint64_t checked; /* signalled although they did not need it */
	uint64_t rooted; /* JVM samples whose walk reached the thread's entry */
	uint64_t witnesses[SPLICE_WITNESSES_MAX]; /* by enum splice_witnesses */
	uint64_t jvm_walk_ends[DUET_WALK_END_MAX]; /* of those that were not */
	uint64_t with_java; /* joined, with Java frames */
	uint64_t failures[SESSION_FAILURE_CODES]; /* by -status */
	uint64_t jvms_ended; /* before their agent was in */
	uint64_t lost_in_profile;
	uint64_t own_unsignalled[DUET_BPF_COUNTER_MAX]; /* samples of the agents' own threads, as BPF counted them */
	uint64_t bad_records; /* from BPF */
	uint64_t mappings_lost; /* the kernel had no room to tell of them */
	uint64_t walk_ends[DUET_WALK_END_MAX]; /* of user stacks that no Java half completes */
	uint64_t guessed_stacks; /* those with frames found by frame pointer */
	uint64_t left_out_stacks; /* those that are deeper than a record */
	uint64_t late; /* samples that came when their window was written */
	uint64_t lost_with_windows; /* samples of windows that could not be written */
	uint64_t gone_lost[DUET_AGENT_COUNTER_MAX]; /* this and those below: what agents had counted that were freed */
	uint64_t gone_bad_records;
	uint64_t gone_full_records;
	uint64_t gone_hostile;
};

/* One file that is written at the end: of each output that was asked for, and of each event. */
struct session_written {
	char *file; /* owned; NULL = stdout */
	const struct writer *writer;
	uint32_t event;
	struct io_output output;
};

struct session {
	const struct session_options *options;
	enum session_engine engine; /* decided */
	struct buf engine_why; /* why not bpf; empty when bpf, or asked for */
	struct collector *collector; /* NULL for timer engines */
	struct process_table processes;
	struct vec(struct agent *) agents;
	size_t natives; /* processes of -p that are no JVMs */
	struct symbols *symbols;
	struct unwinding unwinding;
	struct profile profile;
	struct resolver resolver;
	struct join *join;
	struct parts parts; /* of BPF's samples */
	struct mapping_log mapping_log; /* of processes that may be gone when they are looked at */
	struct owners owners;
	struct host host;
	struct budget budget;
	struct overhead overhead;
	struct status status;
	uint64_t cgroup_id; /* of --cgroup and --container; 0 = any */
	struct buf cgroup; /* its path */
	struct session_stats stats;
	struct vec(struct session_written) outputs;
	uint64_t cpus; /* online */
	int signal_fd;
	pid_t child; /* of -- CMD; 0 for none */
	uint64_t child_cpu_ns; /* once it has ended, with its own children */
	int child_gate; /* closing it ends a child that was not let go */
	char library[256]; /* placed for -agentpath; "" for none */
	uint64_t started_ns; /* first tick possible */
	uint64_t ended_ns; /* last tick possible */
	uint64_t command_ns; /* session_run() was called */
	uint64_t first_sample_ns;
	uint64_t first_sample_cpu_ns; /* what the loader had taken by then */
	uint64_t hurry_ns; /* until then names are on their way */
	struct vec(pid_t) unpublished; /* processes whose unwind tables are to be published */
	uint64_t read_ns; /* what had been sampled by then has been read */
	struct windows windows;
	struct notify notify;
	uint64_t swept_ns; /* when processes were last looked for that ended without a record */
	uint64_t forgot_ns; /* when the JVMs' old code was last forgotten */
	bool interrupted;
	bool is_behind; /* BPF's ring holds what was not read in time: the next step waits for nothing */
};

#define POLL_ATTACH_MS 5 /* while agents publish what was there before them */
#define HURRY_NS (NS_PER_SEC / 5) /* a name that was asked for is there by then */

/* session_start.c: until samples flow. 0, or -errno after the user has been told why. */
int session_start(struct session *session);

/* session_targets.c: the processes of -p. 0, or -errno after the user has been told why. */
int session_find_targets(struct session *session);
int session_attach_targets(struct session *session); /* agents for JVMs; says what the others lack */

/* session_records.c. One step waits for whatever comes first, at most `timeout_ms`, and takes care of it. */
void session_step(struct session *session, int timeout_ms);
bool session_read_rings(struct session *session); /* true when BPF's is empty; else it took long enough */
bool session_settled(const struct session *session); /* no agent is on its way any more */
/* By which tables the process's stacks are walked. */
struct unwinding *session_unwinding(struct session *session, const struct process *process);

/* The join's handler: one sample, decided, goes into the profile. */
bool session_on_decided(void *context, void *owner, const struct duet_sample *sample,
			const struct duet_java_sample *java, enum join_outcome outcome, bool last_chance);

/* session_agents.c. An agent that fails is tried again a few times if what stood in its way may pass. */
int session_attach(struct session *session, struct process *process, enum attach_kind kind,
		   const struct attach_control *control);
/* Attaches to a JVM that was not there, or not yet one, at the start. Cheap unless its mappings have changed. */
void session_notice(struct session *session, struct process *process);
void session_step_agents(struct session *session, const struct pollfd *fds, size_t count); /* one fd each, polled */
void session_agent_changed(struct session *session, struct agent *agent, enum agent_state before);
void session_tell_layout(struct session *session, struct agent *agent);
bool session_agent_survives_exec(const struct session *session, const struct agent *agent, uint64_t exec_ns);
void session_drop_agent(struct session *session, struct agent *agent);

/* session_output.c. How the profile is to be written; the others: 0, or -errno after the user has been told. */
struct writer_options session_style(const struct session *session);
int session_open_outputs(struct session *session);
int session_write_outputs(struct session *session);
void session_discard_outputs(struct session *session);

/* session_release.c: between two windows, frees what belongs to processes that have ended. */
void session_release_dead(struct session *session);
void session_free_useless(struct session *session); /* agents that failed, and were tried again or cannot be */

/* session_report.c */

/* Facts and losses into the profile, then the closing lines on stderr. */
void session_report_facts(struct session *session);
void session_report_losses(struct session *session);
/* One call for each cause, also of what was never lost; `name` as in duet_counters.h. */
typedef void (*session_loss_handler)(void *context, const char *name, const char *text, uint64_t count);
void session_losses(struct session *session, session_loss_handler handler, void *context);
void session_report_summary(const struct session *session);
void session_report_progress(struct session *session);

#endif
