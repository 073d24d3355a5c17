/* SPDX-License-Identifier: MIT */
/* The engines: BPF, or timers in the JVM where BPF is refused. */
#ifndef ENGINE_ENGINES_H
#define ENGINE_ENGINES_H

#include "duet_agent.h"

enum session_engine { ENGINE_AUTO, ENGINE_BPF, ENGINE_CTIMER, ENGINE_ITIMER };

struct engine {
	const char *name; /* --engine NAME */
	enum duet_engine_id agent; /* sent to the agent; 0 for auto */
	const char *help;
};

extern const struct engine engines[]; /* indexed by enum session_engine; the last row has no name */
int engine_by_name(const char *name); /* enum session_engine, or -EINVAL */

#endif
