/* SPDX-License-Identifier: MIT */
/*
 * The agent in one JVM, from the loader's side: attach, handshake, ring, stop.
 * Nothing here blocks: the session polls agent_fd() and calls agent_step().
 */
#ifndef AGENTS_H
#define AGENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/attach.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/agent_ring.h"
#include "duet_agent.h"
#include "join/parts.h"
#include "proc/process.h"
#include "runtime/jvm.h"
#include "unwinding.h"

enum agent_state {
	AGENT_ATTACHING, /* the attach child is at work */
	AGENT_GREETING, /* connected, HELLO not yet seen */
	AGENT_STARTING, /* START sent */
	AGENT_RUNNING, /* handler live, records flow */
	AGENT_STOPPING, /* STOP sent */
	AGENT_GONE, /* JVM or agent went away; what was in the ring is still read */
	AGENT_FAILED, /* `why` says it; the process has BPF stacks only; its ring is not read any more */
};

struct agent_start {
	enum duet_engine_id engine;
	uint64_t interval_ns;
	uint32_t java_depth;
	size_t sample_lane_bytes;
	size_t metadata_lane_bytes;
	size_t tables_bytes; /* timer engines: of the unwind tables, else 0 */
};

struct agent {
	struct process *process; /* not owned */
	struct jvm *jvm;
	struct agent_start start;
	enum agent_state state;
	struct attach attach;
	int socket;
	uint64_t begun_ns; /* CLOCK_MONOTONIC, before the process was touched */
	uint64_t deadline_ns; /* of the handshake */
	struct agent_ring *ring;
	struct parts parts; /* timer engines: of its samples */
	struct unwinding unwinding; /* timer engines: by what the agent walks; without tables there are none */
	bool hostile; /* the ring was inconsistent and is not read any more */
	uint64_t signo;
	uint64_t handler;
	uint32_t tid; /* of the agent's own thread in the JVM */
	uint64_t bad_records;
	uint64_t full_records; /* for which the JVM's tables had no room */
	struct map asked; /* hash of what was asked for -> when, in ms, above its number, both cut to 32 bits */
	uint64_t asked_count; /* ever */
	uint32_t unanswered; /* of what was asked for */
	uint64_t answered; /* ever */
	uint64_t answered_before; /* when agent_forget_asked() was last called */
	struct duet_message_want wants; /* the next request */
	bool stop_is_unsent; /* the socket was full of requests: agent_ask() sends it */
	bool is_ending; /* the JVM waits a moment for our last requests */
	bool layout_told; /* BPF knows the JVM's newest layout */
	uint64_t claimed_ns; /* timer engines: CPU time that its samples stand for */
	char vm[136]; /* "OpenJDK 64-Bit Server VM 17.0.15+6" */
	int error; /* -errno of what made it AGENT_FAILED */
	char why[256];
	uint64_t retry_ns; /* the session's own: when another one is to be tried; 0 = not */
	pid_t host_tid; /* of the agent's own thread as we number it; 0 = it was never seen */
	uint64_t thread_ns; /* CPU time of that thread, and of the handler on all others, as of the last look */
	uint64_t handler_ns;
	uint64_t attach_ns; /* CPU time of the child that attached */
	uint64_t start_ns; /* of thread_ns, what it took to begin */
	uint64_t signalled; /* samples */
};

/*
 * Begins the attach. ATTACH_LOADED: the JVM loads the agent by itself (-agentpath)
 * for `control`. NULL when out of memory.
 */
struct agent *agent_new(struct process *process, struct intern *strings, const struct agent_start *start,
			enum attach_kind kind, const struct attach_control *control);
void agent_free(struct agent *agent);

int agent_fd(const struct agent *agent); /* to poll for reading; -1 when nothing is awaited */
void agent_step(struct agent *agent); /* the fd is readable */
void agent_expire(struct agent *agent, uint64_t now_ns); /* ends an attach or a handshake that takes too long */
/*
 * Asks for a method or code, which then comes as a record; several go into one packet, sent when it is full or by
 * agent_ask(). What was not answered is asked for again, after a while. False when it was not asked for now.
 */
bool agent_want(struct agent *agent, const struct duet_want *want, uint64_t now_ns);
void agent_ask(struct agent *agent);
void agent_forget_asked(struct agent *agent); /* from time to time: answers are not told apart */
void agent_stop(struct agent *agent); /* RUNNING -> STOPPING; an agent still on its way is aborted */
bool agent_settled(const struct agent *agent); /* RUNNING, GONE or FAILED */
bool agent_may_try_again(const struct agent *agent); /* FAILED, but another one may get in later */

/*
 * Metadata first, so that names are there when samples ask for them; samples go to the handler. An inconsistent ring
 * makes the agent AGENT_FAILED.
 */
void agent_read(struct agent *agent, agent_ring_handler on_sample, void *context);
size_t agent_shared_bytes(const struct agent *agent); /* of RAM: what it has in common with us */
uint64_t agent_handler_ns(const struct agent *agent); /* in its signal handler, as it claims, within reason */
uint64_t agent_lost(const struct agent *agent, enum duet_agent_counter counter);

#endif
