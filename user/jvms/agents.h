/* SPDX-License-Identifier: MIT */
/* The loader's side of a JVM's agent. Nothing blocks: jvms.c polls agent_fd() and calls agent_step(). */
#pragma once

#include "attach/attach.h"
#include "base/map.h"
#include "collect/records/agent_ring.h"
#include "collect/records/split_samples.h"
#include "collect/tables/unwinding.h"
#include "duet_agent.h"
#include "join/join.h"
#include "proc/process.h"
#include "runtime/jvm.h"

enum agent_state {
	AGENT_ATTACHING, /* the attach child is running */
	AGENT_GREETING, /* connected, no HELLO yet */
	AGENT_STARTING, /* START sent */
	AGENT_RUNNING, /* the handler is installed, records arrive */
	AGENT_STOPPING, /* STOP sent */
	AGENT_GONE, /* the JVM ended or the agent left it; the rest of the ring is still read */
	AGENT_FAILED, /* see `why`; the process gets BPF stacks only, and the ring is no longer read */
};

/* How the names and frames of a JVM were read. */
enum jvm_source {
	JVM_UNREAD,
	JVM_OUTSIDE, /* its memory, by another process */
	JVM_AGENT,
	JVM_BOTH, /* first from outside, then by an agent too */
	JVM_SOURCES
};

struct agent_start {
	struct payer payer; /* for its rings */
	enum duet_engine_id engine;
	bool is_engine_asked; /* the user named the engine, so the agent may use no other */
	struct duet_agent_event events[DUET_MAX_EVENTS]; /* the events of the recording in which the agent takes part */
	uint32_t event_count;
	uint32_t java_depth;
	size_t sample_lane_bytes;
	size_t metadata_lane_bytes;
	size_t tables_bytes; /* size of the unwind tables, if the agent walks native frames; else 0 */
	enum duet_newest newest;
	int newest_fd; /* with DUET_NEWEST_SHARED: the collector's array */
};

struct agent {
	struct origin origin; /* what waits in join/ refers to it */
	struct jvm *jvm;
	struct agent_start start;
	enum agent_state state;
	struct attach attach;
	char cause[128]; /* of an agent: why it was attached, a part of a sentence */
	/* Read from outside: pid of the process that reads and speaks the agent's protocol. 0: an agent in the JVM. */
	pid_t reader;
	uint64_t paid_ns; /* of a reader: the part of its CPU time that was charged */
	bool is_resting; /* a reader: nothing is asked of it, because its user's allowance is used up */
	uint32_t walks, cut; /* of a reader: samples of its JVM, and those whose walk was cut; see jvms_note_walk() */
	/* Reads the JVM until this agent runs, or for good; or NULL. It has a reference: agent_set_outside(). */
	struct agent *outside;
	int socket;
	uint64_t begun_ns; /* CLOCK_MONOTONIC, before the process was touched */
	uint64_t deadline_ns; /* end of the handshake's time, CLOCK_MONOTONIC */
	struct agent_ring *ring;
	struct deep_stacks deep_stacks; /* parts of this agent's own samples */
	struct unwinding unwinding; /* unwind tables by which the agent walks native frames; may be NULL */
	bool hostile; /* the ring was inconsistent and is no longer read */
	/* the engine that ticks, when AGENT_RUNNING; if it is not start.engine, `why` says why */
	enum duet_engine_id engine;
	uint64_t signo;
	uint64_t lock_waiters; /* duet_message_started.lock_waiters */
	uint64_t handler;
	uint32_t tid; /* the agent's own thread, as the JVM's pid namespace numbers it */
	/* hash of a request -> time of the request in ms << 32 | its number; both are cut to 32 bits */
	struct map asked;
	uint64_t asked_count; /* requests since the start */
	uint32_t unanswered; /* requests without an answer */
	uint64_t answered; /* answers since the start */
	uint64_t answered_before; /* value of `answered` when agent_forget_asked() was last called */
	struct duet_message_want wants; /* the next packet of requests */
	bool is_finishing; /* FINISH was sent, and is not answered */
	bool stop_is_unsent; /* the socket was full; agent_ask() sends STOP later */
	uint64_t ending_ns; /* since then the JVM, which shuts down, waits for our last requests; 0: it does not */
	bool is_unnamed; /* a reader: the names of its JVM's threads cannot be read */
	bool layout_published; /* BPF has the JVM's newest layout */
	uint64_t claimed[DUET_MAX_EVENTS]; /* sum of the weights of its own samples, by event of `start` */
	char vm[136]; /* "OpenJDK 64-Bit Server VM 17.0.15+6" */
	/* The process has no JVM, or had none when the agent began: it serves events that need none. */
	bool is_native;
	uint32_t refused; /* bit i: start.events[i] has no samples in this JVM, … */
	char refused_why[128]; /* … and why */
	int error; /* why it is AGENT_FAILED: -errno */
	char why[256]; /* what AGENT_FAILED means, or `engine` */
	uint64_t retry_ns; /* when to try another agent or reader; 0 = never */
	pid_t host_tid; /* the agent's own thread in our pid namespace; 0 = never sampled */
	/* CPU time at the last look: thread_ns of that thread, handler_ns of the handler on all other threads */
	uint64_t thread_ns;
	uint64_t handler_ns;
	uint64_t attach_ns; /* CPU time of the child that attached */
	uint64_t start_ns; /* the part of thread_ns that starting took */
	uint64_t signalled; /* samples that signalled the handler */
};

/* The agent of which this is the origin. */
static inline struct agent *agent_of(struct origin *origin)
{
	return (struct agent *)((char *)origin - offsetof(struct agent, origin));
}

/* All agents of a recording. Initialize with {0}. */
struct agents {
	struct agent **items; /* with len and size a vec; owned */
	size_t len;
	size_t size;
	uint64_t gone_lost[DUET_AGENT_COUNTER_MAX]; /* losses of the agents that were freed */
	uint64_t other_engine; /* JVMs that refused engine perf and tick by timers */
	uint64_t sources[JVM_SOURCES]; /* number of JVMs by source, including those that were freed */
};

/*
 * Starts the attach. ATTACH_LOADED: the JVM loads the agent itself (-agentpath) and uses `control`. `cause` is a part
 * of a sentence. Returns NULL when out of memory. It has a reference to `process`.
 */
struct agent *agent_new(struct process *process, struct intern *strings, const struct agent_start *start,
			enum attach_kind kind, const char *cause, const struct attach_control *control);
/* The same without an agent: the JVM is read from outside, gets no signal, and has no second witness. */
struct agent *agent_new_outside(const struct charge *charge, struct process *process, struct intern *strings,
				const struct agent_start *start);
/* Makes `reader` (NULL: none) the agent's reader from outside. */
void agent_set_outside(struct agent *agent, struct agent *reader);
void agent_free(struct agent *agent); /* aborts an attach that is under way; NULL is allowed */

/* Returns the agent that describes the JVM now: the agent itself, or its reader from outside. NULL for NULL. */
struct agent *agent_in_charge(struct agent *agent);
int agent_fd(const struct agent *agent); /* poll it for reading; -1 when nothing is expected */
void agent_step(struct agent *agent); /* call when agent_fd() is readable */
void agent_expire(struct agent *agent, uint64_t now_ns); /* fails an attach or handshake that has timed out */
/*
 * Requests a method or code, which arrives later as a record. Requests are collected into one packet. It is sent when
 * it is full, or by agent_ask(). Returns false when nothing was requested: the agent is busy, or the same request was
 * sent a short while ago.
 */
bool agent_want(struct agent *agent, const struct duet_want *want, uint64_t now_ns);
void agent_ask(struct agent *agent); /* sends the collected requests, or a STOP that is still unsent */
/* Forgets all requests. Call periodically: answers carry no request number, so a lost one would count as pending. */
void agent_forget_asked(struct agent *agent);
/* Sends FINISH or FLUSH, see jvms_finish(). */
void agent_finish(struct agent *agent, enum duet_message_type type, uint64_t ended_ns);
void agent_rest(struct agent *reader, uint64_t until_ns); /* sends REST */
void agent_stop(struct agent *agent); /* RUNNING -> STOPPING; aborts an agent that is not running yet */
/* True if GONE, FAILED or RUNNING; a reader must also have the layout, or have run for a second. */
bool agent_settled(const struct agent *agent);
bool agent_may_try_again(const struct agent *agent); /* FAILED for a cause that may not occur again */

/* Reads metadata, then samples, which go to `on_sample`. An inconsistent ring makes the agent AGENT_FAILED. */
void agent_read(struct agent *agent, agent_ring_handler on_sample, void *context);
/* bytes of RAM that the agent shares with the loader, and those of a reader itself */
size_t agent_shared_bytes(const struct agent *agent);
/* CPU time in its signal handler, as the agent claims it, bounded */
uint64_t agent_handler_ns(const struct agent *agent);
uint64_t agent_lost(const struct agent *agent, enum duet_agent_counter counter);
