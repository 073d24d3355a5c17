/* SPDX-License-Identifier: MIT */
/* Who ticks: BPF, or where it is refused timers in the JVM. */
#ifndef ENGINES_H
#define ENGINES_H

#include "duet_agent.h"

enum session_engine { ENGINE_AUTO, ENGINE_BPF, ENGINE_CTIMER, ENGINE_ITIMER };

struct engine {
	const char *name; /* --engine NAME */
	enum duet_engine_id agent; /* what the agent is told; 0 for auto */
	const char *help;
};

extern const struct engine engines[]; /* by enum session_engine; ends with a row without name */
int engine_by_name(const char *name); /* enum session_engine, or -EINVAL */

#endif
