/* SPDX-License-Identifier: MIT */
/* How many samples were decided, and how: joined, walked to their entry, confirmed by both witnesses. */
#pragma once

#include <stdint.h>

#include "duet_counters.h"
#include "duet_record.h"
#include "join/join.h"
#include "join/splice.h"

#define OUTCOMES_FAILURES 12 /* AsyncGetCallTrace returns 0 to -10; the last slot is for anything else */

/* All fields are uint64_t, see outcomes_since(). Initialize with {0}. */
struct outcomes {
	/* added to the profile; one that is decided may be several: a sleep, and its wait for a CPU at the end */
	uint64_t samples;
	uint64_t jvm_samples; /* samples of threads of JVMs with an agent */
	uint64_t joined;
	uint64_t needed; /* signalled because the walk was not whole or met methods without a name */
	uint64_t checked; /* signalled only as a cross-check */
	uint64_t rooted; /* JVM samples whose walk reached the thread's entry */
	uint64_t witnesses[SPLICE_WITNESSES_MAX]; /* indexed by enum splice_witnesses */
	uint64_t bcis[ALIKE_MAX]; /* indexed by enum alike: Java stacks whose witnesses have byte code indices */
	uint64_t names[ALIKE_MAX]; /* indexed by enum alike: Java stacks that two sources named, or one */
	uint64_t estimated; /* Java stacks with inlined methods that the compiler has not recorded */
	uint64_t lock_ns, held_ns; /* with --holders: of waits for locks, and of those whose holder is known */
	uint64_t walk_ends[DUET_WALK_END_MAX]; /* why the walks of the other JVM samples ended */
	uint64_t failures[OUTCOMES_FAILURES]; /* indexed by -status of AsyncGetCallTrace */
	/* samples of the agents' own threads that BPF counted as unsignalled */
	uint64_t own_unsignalled[DUET_BPF_COUNTER_MAX];
};

/* Counts a decided sample and its stack's losses. Arguments as of join_handler; `verdict`: NULL without a JVM. */
void outcomes_add(struct outcomes *outcomes, const struct duet_sample *sample, const struct duet_java_sample *java,
		  enum join_outcome outcome, const struct splice_verdict *verdict);
/* Counts a sample of an agent's own thread, which takes no signals. That BPF did not signal it is no loss. */
void outcomes_add_own(struct outcomes *outcomes, const struct duet_sample *sample);
/* Returns the counts since `before`. */
struct outcomes outcomes_since(const struct outcomes *now, const struct outcomes *before);
