/* SPDX-License-Identifier: MIT */
/* The engines: BPF, or the agent's own perf events and timers where BPF is refused. */
#ifndef ENGINE_ENGINES_H
#define ENGINE_ENGINES_H

#include <stdbool.h>

#include "base/buf.h"
#include "duet_agent.h"
#include "event/event.h"

/* In the order in which they are tried. */
enum session_engine { ENGINE_AUTO, ENGINE_BPF, ENGINE_PERF, ENGINE_CTIMER, ENGINE_ITIMER };

/* --agent: which JVMs get an agent. With a standalone engine all do. */
enum agent_policy {
	/*
	 * Those that cannot be read from outside, or whose walks are cut too often; all if an event or --signals always
	 * needs the agent.
	 */
	AGENT_NEEDED,
	AGENT_ALWAYS,
	AGENT_NEVER,
};

struct engine {
	const char *name; /* --engine NAME */
	enum duet_engine_id agent; /* sent to the agent; 0 for auto */
	bool standalone; /* ticks in the agent, without BPF: it samples only JVMs with an agent */
	bool sees_kernel;
	bool counts; /* standalone engines: it can tick for page faults in place of CPU time */
	const char *help;
	const char *instead; /* standalone engines: what the user must know when it is used because BPF is refused */
	/* Returns false, with the cause and the way out in `why`, if it cannot run here. NULL: it can run anywhere. */
	bool (*usable)(struct buf *why);
};

extern const struct engine engines[]; /* indexed by enum session_engine; the last row has no name */
int engine_by_name(const char *name); /* enum session_engine, or -EINVAL */
void engine_names(struct buf *out); /* appends "auto, bpf, perf, ctimer or itimer" */
/* Returns true if it can sample these events together. */
bool engine_takes(enum session_engine engine, const struct event_list *events);
/*
 * Returns the first standalone engine that can run here and takes these events (NULL: any); ENGINE_AUTO if there is
 * none. Appends to `why` what the better ones lack.
 */
enum session_engine engine_standalone(const struct event_list *events, struct buf *why);

#endif
