/* SPDX-License-Identifier: MIT */
/* A sample or another record of BPF or an agent as the join has decided it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A decision that waits, with references to all that it needs: nothing of that is freed before held_free(). */
struct held {
	struct decision decision; /* its halves are owned; its process and origin are referenced */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint32_t program; /* process->programs at that time */
	size_t bytes; /* of both halves */
};

/* Returns a copy, or NULL when out of memory. */
struct held *held_new(const struct decision *decision, uint64_t now_ns);
void held_free(struct held *held); /* NULL is allowed */

/* Returns false if the process has executed another program since: its mappings name other functions. */
static inline bool held_is_current(const struct held *held)
{
	return held->program == held->decision.process->programs;
}
