/* SPDX-License-Identifier: MIT */
/*
 * Pairs the two halves of a sample: what the walk saw, BPF's or that of a timer engine's handler, and what
 * AsyncGetCallTrace told the handler. There are no guessed joins: a pair is made by cookie where there is one, else by
 * thread and interval, and accepted only when pc and sp are equal.
 *
 * By interval: a signal is handled before the thread runs on, so the record of a
 * sample lies between that sample and the thread's next signalled sample. Samples
 * taken while the signal was still pending share the record; their user stack is the same.
 *
 * The caller offers agent records before the kernel records that were written by
 * then: a record whose sample is not here belongs to no sample.
 */
#ifndef JOIN_JOIN_H
#define JOIN_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"
#include "duet_counters.h"
#include "duet_record.h"

#define JOIN_WAIT_NS (2ull * 1000 * 1000 * 1000) /* a half that is older is not waited for any more */
#define JOIN_NAMES_WAIT_NS (10ull * 1000 * 1000 * 1000) /* nor are names, should the agent hardly get a CPU */
#define JOIN_MAX_HELD 65536 /* samples held at once; above, the oldest go unjoined */
#define JOIN_MAX_RECORD_BYTES (32u << 20) /* of one owner's records; above, new ones are dropped */
#define JOIN_MAX_BYTES (1u << 30)
#define JOIN_MAX_THREAD_RECORDS 16384 /* the same for one thread: each sample looks at all of them */

enum join_outcome {
	JOIN_JOINED, /* both halves, pc and sp equal */
	JOIN_WALKED, /* the walk carries the sample: no signal was needed, or it brought nothing */
	JOIN_STANDALONE, /* not of a JVM's thread: there is nothing to join with */
	JOIN_NOT_SIGNALLED, /* sample->no_signal says why */
	JOIN_NO_RECORD, /* the agent's half never came */
	JOIN_MISMATCH, /* it came with another pc or sp */
};

/*
 * Called with each decided sample; `java` is NULL for unjoined ones. Returns false to be called again later because
 * names are still missing; not when `last_chance`.
 */
typedef bool (*join_handler)(void *context, void *owner, const struct duet_sample *sample,
			     const struct duet_java_sample *java, enum join_outcome outcome, bool last_chance);

struct join;

struct join *join_new(join_handler handler, void *context); /* NULL when out of memory */
void join_free(struct join *join);

/* `owner` tells JVMs apart and comes back in the handler. Both copy. 0; -ENOMEM or -ENOSPC: lost, and counted. */
int join_sample(struct join *join, void *owner, const struct duet_sample *sample, uint64_t now_ns);
int join_offer(struct join *join, void *owner, const struct duet_java_sample *record, uint32_t size, uint64_t now_ns);

/* Bytes of halves held at once, JOIN_MAX_BYTES unless told; above, samples are decided with what is there. */
void join_set_max_bytes(struct join *join, size_t bytes);
void join_forget_spare(struct join *join); /* gives back what it keeps for the next threads */

/* Decides what can be decided. */
void join_run(struct join *join, uint64_t now_ns);
/* Nothing more will come from `owner` (all owners when NULL): decides everything of it. */
void join_flush(struct join *join, void *owner);

/* When the oldest sample was taken that is not decided yet; UINT64_MAX when there is none. */
uint64_t join_oldest_ns(const struct join *join);
bool join_holds(const struct join *join, const void *owner); /* anything of this owner */
/* `owner` is about to go: nothing of it is held. */
void join_forget(struct join *join, const void *owner);
size_t join_held(const struct join *join); /* samples not yet decided: they wait for their agent's half, or for names */
const uint64_t *join_counters(const struct join *join); /* by enum duet_loader_counter */

#endif
