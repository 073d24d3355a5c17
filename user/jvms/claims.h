/* SPDX-License-Identifier: MIT */
/* What an agent claims, checked for plausibility before it is used: a hostile JVM may send anything. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "duet_record.h"
#include "jvms/jvms.h"

/* Room for a sample of an agent: record_check() limits its size. */
union claimed_sample {
	struct duet_sample sample;
	unsigned char room[sizeof(struct duet_sample) + DUET_MAX_STACK * sizeof(uint64_t) +
			   DUET_MAX_USER_STACK * (sizeof(uint64_t) + sizeof(uint32_t)) + DUET_MAX_ATTRIBUTE_BYTES];
};

/*
 * Returns true for records that START asked for: stacks are no deeper than java_depth, kernel frames come only from
 * engine perf, and frame parts only from agents that make samples with all frames. Otherwise counts the record and
 * returns false.
 */
bool claims_check(const struct agent *agent, uint16_t type, const void *payload);
/*
 * Takes a sample of a timer engine or of a tap. Its content is the agent's claim; the loader decides which process it
 * belongs to. Then it is handled like a sample from BPF. Returns the sample with all its frames, valid until `claimed`
 * ends or the next call. If there cannot have been such a sample, counts it and returns NULL.
 */
const struct duet_sample *claims_take(const struct jvms *jvms, struct agent *agent, const struct duet_sample *record,
				      union claimed_sample *claimed);
