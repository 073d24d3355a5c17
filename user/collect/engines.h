/* SPDX-License-Identifier: MIT */
/*
 * The engines: BPF, or the agent's own perf events and timers where BPF is refused. A row says what an engine can do,
 * and whether it can run. Only the bpf engine does a part of the work outside of the JVMs: that of its collector.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "collect/collector.h"
#include "duet_agent.h"
#include "event/options.h"

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

/* The engine of a recording. Without a collector, the functions of collector.h do nothing and return 0. */
struct engine_in_use {
	const struct engine *row;
	struct collector *collector; /* NULL: a standalone engine */
	struct collector_facts facts;
};

extern const struct engine engines[]; /* indexed by enum session_engine; the last row has no name */
int engine_by_name(const char *name); /* enum session_engine, or -EINVAL */
void engine_names(struct buf *out); /* appends "auto, bpf, perf, ctimer or itimer" */
/* Returns true if it can sample these events together. */
bool engine_takes(enum session_engine engine, const struct event_list *events);
/* Returns true if one of the events needs the ticks of this standalone engine. */
bool engine_ticks_for(const struct engine *engine, const struct event_list *events);
/*
 * Returns the first standalone engine that can run here and samples these events (NULL: any); ENGINE_AUTO if there is
 * none. Appends to `why` what the better ones lack.
 */
enum session_engine engine_standalone(const struct event_list *events, struct buf *why);

/* 0, or -errno with one sentence appended to `why`. The caller closes ret->collector in any case. */
int engine_open(struct engine_in_use *ret, enum session_engine id, const struct collector_options *options,
		struct buf *why);
