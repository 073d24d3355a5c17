/* SPDX-License-Identifier: MIT */
/* State of a running session, and what the session*.c files do with it. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "agents.h"
#include "base/io.h"
#include "collect/collector.h"
#include "join/join.h"
#include "owners.h"
#include "proc/process.h"
#include "profile/profile.h"
#include "profile/resolve.h"
#include "session.h"
#include "sym/symbols.h"
#include "unwinding.h"

#define SESSION_FAILURE_CODES 12 /* AsyncGetCallTrace: 0 to -10, and the rest */

struct session_stats {
	uint64_t samples;
	uint64_t jvm_samples; /* in threads of JVMs with an agent */
	uint64_t joined;
	uint64_t code_missing; /* JVM samples with frames of code that the agent never published */
	uint64_t signalled;
	uint64_t rooted; /* JVM samples whose walk reached the thread's entry */
	uint64_t witnesses[SPLICE_WITNESSES_MAX]; /* by enum splice_witnesses */
	uint64_t jvm_walk_ends[DUET_WALK_END_MAX]; /* of those that were not */
	uint64_t with_java; /* joined, with Java frames */
	uint64_t failures[SESSION_FAILURE_CODES]; /* by -status */
	uint64_t lost_in_profile;
	uint64_t own_unsignalled[DUET_BPF_COUNTER_MAX]; /* samples of the agents' own threads, as BPF counted them */
	uint64_t bad_records; /* from BPF */
	uint64_t walk_ends[DUET_WALK_END_MAX]; /* of user stacks that no Java half completes */
	uint64_t guessed_stacks; /* those with frames found by frame pointer */
};

struct session {
	const struct session_options *options;
	enum session_engine engine; /* decided */
	struct buf engine_why; /* why not bpf; empty when bpf, or asked for */
	struct collector *collector; /* NULL for timer engines */
	struct process_table processes;
	struct vec(struct agent *) agents;
	struct symbols *symbols;
	struct unwinding unwinding;
	struct profile profile;
	struct resolver resolver;
	struct join *join;
	struct owners owners;
	uint64_t cgroup_id; /* of --cgroup and --container; 0 = any */
	struct buf cgroup; /* its path */
	struct session_stats stats;
	struct vec(struct io_output) outputs; /* beside options->outputs */
	uint64_t cpus; /* online */
	int signal_fd;
	pid_t child; /* of -- CMD; 0 for none */
	int child_gate; /* closing it ends a child that was not let go */
	char library[256]; /* placed for -agentpath; "" for none */
	uint64_t started_ns; /* first tick possible */
	uint64_t command_ns; /* session_run() was called */
	uint64_t first_sample_ns;
	uint64_t forgot_ns; /* when the JVMs' old code was last forgotten */
	bool interrupted;
};

#define POLL_ATTACH_MS 5 /* while agents publish what was there before them */

/* session_start.c: until samples flow. 0, or -errno after the user has been told why. */
int session_start(struct session *session);

/* session_records.c. One step waits for whatever comes first, at most `timeout_ms`, and takes care of it. */
void session_step(struct session *session, int timeout_ms);
void session_read_rings(struct session *session);
bool session_settled(const struct session *session); /* no agent is on its way any more */
int session_attach(struct session *session, struct process *process, bool loaded, const char *control);
/*
 * Attaches to a JVM that was not there, or not yet one, at the start. A launcher maps libjvm.so a moment after its
 * exec, so a young process is looked at again.
 */
void session_notice(struct session *session, struct process *process);

/* The join's handler: one sample, decided, goes into the profile. */
bool session_on_decided(void *context, void *owner, const struct duet_sample *sample,
			const struct duet_java_sample *java, enum join_outcome outcome, bool last_chance);

/* session_output.c. 0, or -errno after the user has been told. */
int session_open_outputs(struct session *session);
int session_write_outputs(struct session *session);
void session_discard_outputs(struct session *session);

/* session_report.c */

/* Facts and losses into the profile, then the closing lines on stderr. */
void session_report_facts(struct session *session);
void session_report_losses(struct session *session);
void session_report_summary(const struct session *session);
void session_report_progress(const struct session *session);

#endif
