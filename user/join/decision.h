/* SPDX-License-Identifier: MIT */
/* A sample or another record of BPF or an agent as the join has decided it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"
#include "duet_record.h"
#include "join/join.h"

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

/* Returns the first attribute of this type of a sample that has passed record_check(); NULL if there is none. */
static inline const struct duet_attribute *attribute_find(const struct duet_sample *sample,
							  enum duet_attribute_type type)
{
	const unsigned char *end = (const unsigned char *)sample + sample->head.size;
	const unsigned char *at = end - sample->attribute_bytes;

	while (at < end) {
		const struct duet_attribute *attribute = (const struct duet_attribute *)at;

		if (attribute->type == type)
			return attribute;
		at += duet_attribute_size(attribute->bytes);
	}
	return NULL;
}

/* Returns the value of an attribute that is a number, 0 if there is none. */
static inline uint64_t attribute_number(const struct duet_sample *sample, enum duet_attribute_type type)
{
	const struct duet_attribute *attribute = attribute_find(sample, type);

	return attribute ? *(const uint64_t *)(attribute + 1) : 0;
}
