/* SPDX-License-Identifier: MIT */
/* The JVMs of a recording: notices them, attaches agents, tries again, and frees what is not needed any more. */
#pragma once

#include <poll.h>

#include "collect/engines.h"
#include "duet_record.h"
#include "jvms/agents.h"
#include "proc/process.h"

struct event;
struct pending;
struct owners;
struct profile;
struct selection;
struct symbols;

#define JVMS_NO_ROOM "--max-memory has no room for its agent"

#define JVMS_HURRY_MS 5 /* time between two reads of the rings while agents start or names must not be late */

/* Nothing here is owned. */
struct jvms_deps {
	const struct engine_in_use *engine; /* the row is set when the engine is chosen, before any attach */
	uint64_t cpus; /* online */
	struct process_table *processes;
	struct profile *profile;
	struct symbols *symbols;
	struct owners *owners;
	struct pending *pending;
	struct unwinding *unwinding; /* BPF's */
	/* Reserves memory for an agent's ring and may reduce its sizes. Returns false when there is none. */
	bool (*take_ring)(void *context, struct agent_start *start);
	void (*on_free)(void *context, struct agent *agent); /* called before the agent is freed */
	void *context;
};

struct jvms {
	const struct options *options;
	struct jvms_deps of;
	struct agents agents;
	size_t natives; /* number of -p processes that are not JVMs */
	pid_t child; /* the command that is started; 0 = none */
	const char *child_libjvm; /* the libjvm.so that it will map; "" = not known, or none; not owned; may be NULL */
	uint64_t begun_ns; /* time before which no agent has sampled */
	bool is_ticking; /* set when ticks have started */
	bool has_reported_unnamed; /* of a JVM whose threads have the kernel's names */
	bool has_met; /* there was a JVM, or a process with an agent all the same */
	bool has_reported_unread; /* of a JVM that gets an agent because it cannot be read */
	uint64_t hurry_ns; /* until this time the rings are read every JVMS_HURRY_MS */
	uint64_t answers_ns; /* until this time JVMs that are no longer young may answer; … */
	unsigned int answers_ms; /* … the time between two reads of the rings for them */
	uint64_t swept_ns; /* last search for processes that ended without an exit record */
	uint64_t forgot_ns; /* last time that the JVMs' old code was dropped */
	uint64_t charged_ns; /* when the CPU time of readers was charged last */
};

/* The state of a process that belongs to jvms/. */
struct jvm_process {
	struct agent *agent; /* of the program that runs now; owned by struct agents; or NULL */
	uint32_t examined_version; /* 1 + the maps_version that was searched for a JVM */
	uint32_t attach_failures; /* failed attaches that were tried again */
	uint8_t source; /* enum jvm_source: how it was read so far */
	uint8_t readers_lost; /* readers that ended before it, and were replaced */
	bool has_tlabs; /* BPF samples its allocations, or it was said why not */
	bool is_unread; /* its reader has ended, and nothing reads it yet */
	bool is_refused; /* there was no memory for its agent */
	uint8_t fakes; /* times that it had loaded libjvm.so, but was no JVM */
	uint64_t notice_ns; /* when it may be taken for a JVM again */
};
_Static_assert(sizeof(struct jvm_process) <= PROCESS_STATE_BYTES(PROCESS_OF_JVMS, PROCESS_OF_SUBJECT), "too large");

static inline struct jvm_process *jvm_process(struct process *process)
{
	return process_state(process, PROCESS_OF_JVMS);
}

void jvms_open(struct jvms *jvms, const struct options *options, const struct jvms_deps *of);
void jvms_release(struct jvms *jvms); /* frees the agents; aborts attaches that are under way */

/*
 * Brings the agent into a JVM, and tries again a few times if a failure's cause may pass. `cause` is for the report.
 * `control` is for an agent that the JVM loads itself at its start; else NULL. Returns 0 or -errno.
 */
int jvms_attach(struct jvms *jvms, struct process *process, enum attach_kind kind, const char *cause,
		const struct attach_control *control);
/* Returns why a JVM gets an agent as soon as it is known, part of a sentence; NULL if it gets none. Static text. */
const char *jvms_attach_cause(const struct jvms *jvms, const struct process *process);
/* Call for each sample of a JVM: one that is read from outside gets an agent if its walks are cut too often. */
void jvms_note_walk(struct jvms *jvms, struct agent *agent, const struct duet_sample *sample);
/* Attaches to a new JVM, or with BPF reads it from outside. Cheap unless its mappings have changed since. */
void jvms_notice(struct jvms *jvms, struct process *process);
void jvms_step(struct jvms *jvms, const struct pollfd *fds, size_t count); /* fds[i] polls agent_fd() of agent i */
/* Lets go of JVMs that shut down. Call after the rings were read: samples taken before `read_ns` are known. */
void jvms_let_end(struct jvms *jvms, uint64_t read_ns);
/*
 * Reads the rings of all agents. Passes each record to `handler` with its `agent` as context. From time to time drops
 * data that no sample can need unless it has waited for longer than forget_ns.
 */
void jvms_read(struct jvms *jvms, uint64_t now_ns, uint64_t forget_ns,
	       void (*handler)(void *context, struct agent *agent, uint16_t type, const void *payload, uint32_t size),
	       void *context);
/* Requests names. Answers come within milliseconds. */
void jvms_ask(struct jvms *jvms, struct agent *agent, const struct duet_want *wants, size_t count);
/* Call after an exec: drops the agent of the old program. */
void jvms_exec(struct jvms *jvms, struct process *process, uint64_t exec_ns);
/*
 * DUET_MESSAGE_FINISH: ends the agents' events at this time, CLOCK_MONOTONIC; waits are sampled now. Agents still
 * answer requests. DUET_MESSAGE_FLUSH: makes agents write what there is at the end of a window.
 */
void jvms_finish(struct jvms *jvms, enum duet_message_type type, uint64_t ended_ns);
/* Forbids signals and stops all agents, which confirm it during the next steps. */
void jvms_stop(struct jvms *jvms);

/* Returns the time in ms until the rings are read again and names are asked for; at most `most_ms`. */
unsigned int jvms_pace_ms(const struct jvms *jvms, uint64_t now_ns, unsigned int most_ms);
bool jvms_settled(const struct jvms *jvms); /* true when every agent is RUNNING, GONE or FAILED */
enum jvms_doing {
	JVMS_ANYTHING,
	JVMS_FINISHING, /* it has not confirmed jvms_finish() */
	JVMS_BUSY, /* the same, or it has not answered all requests */
};
bool jvms_any(const struct jvms *jvms, enum agent_state state, enum jvms_doing doing);
/* Warns about agents in this state whose JVM runs on: some of their records are missing. `what`: "left …" */
void jvms_flush_unfaithful(const struct jvms *jvms, enum agent_state state, const char *what);
/* Warns about JVMs whose frame layout is unknown: AsyncGetCallTrace provides all of their Java frames. */
void jvms_flush_unwalked(const struct jvms *jvms);
/* Returns the unwind tables by which the process's stacks are walked. */
struct unwinding *jvms_unwinding(struct jvms *jvms, struct process *process);

/* readers.c: frees what belongs to processes that have ended, unless a sample still needs it. */
void jvms_release_dead(struct jvms *jvms);
void jvms_free_useless(struct jvms *jvms); /* frees failed agents that will not be retried */

/* targets.c: the processes of -p. Both return 0, or -errno after reporting the error. */
int jvms_find_targets(struct jvms *jvms);
int jvms_attach_targets(struct jvms *jvms); /* attaches to the JVMs; reports what the other processes lack */
/* Call when jvms_settled(). Returns true, and reports it, if all targets are JVMs and no agent could be attached. */
bool jvms_all_failed(const struct jvms *jvms);
/* Returns true if nobody asked for what agents alone have: `asprof` adds spans to JFR files, if they can be had. */
bool jvms_agents_are_optional(const struct jvms *jvms);
/*
 * Returns true if a JVM without the agent that it needs is recorded all the same: BPF has some of the events. Whoever
 * asks for agents always wants those, and async-profiler's callers expect all events or an error.
 */
bool jvms_go_without_agent(const struct jvms *jvms);
/* --host: notices all JVMs that the selection has. Returns 0 or -errno. */
int jvms_attach_host(struct jvms *jvms, const struct selection *selection);

/* readers.c: the processes that read JVMs from outside, and what is done when one, or an agent, has failed. */
/*
 * Reads the JVM from outside from now on, or later if its user has used up a share or the allowance. Returns NULL, or
 * why it cannot be read (static text).
 */
const char *readers_start(struct jvms *jvms, struct process *process);
/*
 * Call when a reader has ended or could not begin. If its JVM still runs, sets when to call readers_replace(), and
 * reports it. The pause grows with each try, and the number of tries is limited.
 */
void readers_replace_later(const struct jvms *jvms, struct agent *reader);
/* Call often: charges what readers have used. Those of users who have used up their allowance rest. */
void readers_charge(struct jvms *jvms, uint64_t now_ns);
/* Starts another reader to replace this one. Returns false if the JVM needs an agent instead. */
bool readers_replace(struct jvms *jvms, struct agent *reader);
/* Returns why the JVM cannot be read, a part of a sentence; valid while the reader is. */
const char *readers_why_unread(const struct agent *reader);
/* Warns that the threads of this JVM have the kernel's names, if they do. */
void readers_report_unnamed(struct jvms *jvms, const struct agent *agent);
/* Call when an agent or a reader has failed: plans what is done instead, and reports it. */
void readers_note_failure(struct jvms *jvms, struct agent *agent);

/*
 * sources.c: who makes the samples of a JVM's events: BPF's ticks, BPF's probes, or its agent. Probes in HotSpot sample
 * the allocations of JVMs that cannot do so themselves, and with --tlab of all.
 */
/* Returns true if a JVM with this path of libjvm.so is older than JDK 9, and so does not sample its allocations. */
bool sources_is_old(const char *libjvm);
/* Returns true if BPF samples what the process allocates, not the agent. The process may be NULL. */
bool sources_has_probes(const struct jvms *jvms, const struct process *process);
/* Returns true if that is so for some JVM of the recording, or may be for one that is not known yet. */
bool sources_may_have_probes(const struct jvms *jvms);
/* Returns true if the agent makes the samples of the event. */
bool sources_is_agent(const struct jvms *jvms, const struct process *process, const struct event *event);
/* Returns true if that is so for an event that needs no ticks. */
bool sources_needs_agent(const struct jvms *jvms, const struct process *process);
/* Returns true if BPF or the agent's ticks walk stacks of this JVM. */
bool sources_needs_layout(const struct jvms *jvms, const struct process *process);
/*
 * Call when a JVM is read from outside or has an agent. Sets the probes if BPF samples what it allocates. Says at most
 * once for each run of an agent or reader why it cannot.
 */
void sources_probe(const struct jvms *jvms, struct process *process);
/* Reports the events for which this JVM gives no samples. */
void sources_report_refused(const struct jvms *jvms, const struct agent *agent);
/* Shows BPF which threads of the process wait for locks, if that was asked for. Called when the agent runs. */
void sources_watch_locks(struct jvms *jvms, const struct agent *agent);

/* sources.c: what an agent claims, checked for plausibility before it is used: a hostile JVM may send anything. */
/* Room for a sample of an agent: record_check() limits its size. */
union claimed_sample {
	struct duet_sample sample;
	unsigned char room[sizeof(struct duet_sample) + DUET_MAX_STACK * sizeof(uint64_t) +
			   DUET_MAX_USER_STACK * (sizeof(uint64_t) + sizeof(uint32_t)) + DUET_MAX_ATTRIBUTE_BYTES];
};

/*
 * Returns true for records that START asked for: stacks are no deeper than java_depth, kernel frames come only from
 * engine perf, and DUET_RECORD_FRAMES only from agents that make samples with all frames. Otherwise counts the record
 * and returns false.
 */
bool claims_check(const struct agent *agent, uint16_t type, const void *payload);
/*
 * Takes a sample of a timer engine or of a tap. Its content is the agent's claim; the loader decides which process it
 * belongs to. Then it is handled like a sample from BPF. Returns the sample with all its frames, valid until `claimed`
 * ends or the next call. If there cannot have been such a sample, counts it and returns NULL.
 */
const struct duet_sample *claims_take(const struct jvms *jvms, struct agent *agent, const struct duet_sample *record,
				      union claimed_sample *claimed);
