/* SPDX-License-Identifier: MIT */
/* What an agent claims, checked for plausibility before it is used: a hostile JVM may send anything. */
#ifndef JVMS_CLAIMS_H
#define JVMS_CLAIMS_H

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
 * Accepts only records that START asked for: stacks are no deeper than java_depth, kernel frames come only from engine
 * perf, and frame parts only from agents that make samples with all frames. Returns false, and counts it, otherwise.
 */
bool claims_check(const struct agent *agent, uint16_t type, const void *payload);
/*
 * Takes over a sample of a timer engine or of a tap. Its content is the agent's claim; which process it belongs to is
 * ours to say. From here on it is handled like BPF's. Returns it with all its frames, valid until `claimed` ends or the
 * next call; or NULL, and counts it, if there cannot have been such a sample.
 */
const struct duet_sample *claims_take(const struct jvms *jvms, struct agent *agent, const struct duet_sample *record,
				      union claimed_sample *claimed);

#endif
