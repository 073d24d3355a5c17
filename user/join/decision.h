/* SPDX-License-Identifier: MIT */
/* A sample or another record of BPF or an agent as the join has decided it. */
#ifndef JOIN_DECISION_H
#define JOIN_DECISION_H

#include <stdbool.h>

#include "duet_agent.h"
#include "duet_record.h"
#include "join/join.h"
#include "join/origin.h"

struct jvm;

/* It owns nothing; struct held is a copy that does. */
struct decision {
	struct origin *origin; /* answers requests for names; NULL for a sample of no JVM */
	struct process *process;
	const struct jvm *jvm; /* of the origin; NULL: none */
	const struct duet_sample *sample;
	const struct duet_java_sample *java; /* NULL for unjoined ones */
	enum join_outcome outcome;
	bool is_runnable; /* only the part of a sleep in which the thread waited for a CPU */
};

#endif
