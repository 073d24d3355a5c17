/* SPDX-License-Identifier: MIT */
/*
 * Pairs the two halves of a sample. One half is the walk, made by BPF or by the signal handler of a timer engine; the
 * other is what AsyncGetCallTrace returned to the agent's handler. There are no guessed joins: halves are paired by
 * cookie if the kernel has cookies, else by thread and interval, and a pair is accepted only when pc and sp are equal.
 *
 * By interval: a thread handles the signal before it continues in user mode, so the agent's record of a sample lies
 * between that sample and the thread's next signalled sample. Samples taken while the signal was still pending share
 * the record; their user stack is the same.
 *
 * The caller first offers the agents' records, then the kernel's records that were written until then. So the sample of
 * each record has arrived when join_run() is called; a record without one belongs to no sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"
#include "duet_record.h"
#include "proc/process.h"

/*
 * Where the names of a JVM's samples come from: its agent, or its reader outside of it, as far as join/ knows either.
 * What waits in join/ refers to it, and it is not freed while it has references.
 */
struct origin {
	struct process *process; /* referenced */
	uint32_t references;
	uint32_t awaited; /* samples and halves that wait for its records or answers; each is a reference, too */
	size_t record_bytes; /* of its records that wait for their samples */
};

static inline struct origin *origin_ref(struct origin *origin)
{
	if (origin)
		origin->references++;
	return origin;
}

static inline void origin_unref(struct origin *origin)
{
	if (origin)
		origin->references--;
}

/* The same for what waits for the origin. */
static inline struct origin *origin_await(struct origin *origin)
{
	if (origin)
		origin->awaited++;
	return origin_ref(origin);
}

static inline void origin_unawait(struct origin *origin)
{
	if (origin)
		origin->awaited--;
	origin_unref(origin);
}

#define JOIN_WAIT_NS (2ull * 1000 * 1000 * 1000) /* longest wait of a sample for the agent's half */
#define JOIN_MAX_HELD 65536 /* samples held at once; above, the oldest are decided unjoined */
#define JOIN_MAX_RECORD_BYTES (32u << 20) /* bytes of one origin's records; above, new ones are dropped */
#define JOIN_MAX_BYTES (1u << 30) /* default of join_set_max_bytes() */
/* records of one thread, because each of its samples is compared with all; above, new ones are dropped */
#define JOIN_MAX_THREAD_RECORDS 16384

enum join_outcome {
	JOIN_JOINED, /* both halves, pc and sp equal */
	JOIN_WALKED, /* the walk is whole; no signal was needed, or the agent's record is missing or does not match */
	JOIN_STANDALONE, /* the thread is not a JVM's: there is nothing to join with */
	JOIN_NOT_SIGNALLED, /* sample->no_signal says why */
	JOIN_NO_RECORD, /* the agent's half never arrived */
	JOIN_MISMATCH, /* the agent's half has another pc or sp */
	JOIN_OWN, /* of a thread of duet's agent */
};

/* Called once with each decided sample; `java` is NULL for unjoined ones. Both are valid during the call. */
typedef void (*join_handler)(void *context, struct origin *origin, const struct duet_sample *sample,
			     const struct duet_java_sample *java, enum join_outcome outcome);

struct join;

struct join *join_new(join_handler handler, void *context); /* NULL when out of memory */
void join_free(struct join *join);

/*
 * These copy a half: a sample, or an agent's record of `size` bytes. `origin`, which wrote or describes it, is passed
 * to the handler. They return 0, or -ENOMEM or -ENOSPC: then the half is lost, and counted.
 */
int join_sample(struct join *join, struct origin *origin, const struct duet_sample *sample, uint64_t now_ns);
int join_offer(struct join *join, struct origin *origin, const struct duet_java_sample *record, uint32_t size,
	       uint64_t now_ns);

/* Limits the bytes of all held halves. Above that, samples are decided with the halves that have arrived. */
void join_set_max_bytes(struct join *join, size_t bytes);
void join_forget_spare(struct join *join); /* frees the memory kept for the next threads */

/* Decides the samples that have both halves, need no other half, or have waited long enough. */
void join_run(struct join *join, uint64_t now_ns);
/* Decides all samples of the process (of all processes if NULL). Called when no more halves of them will arrive. */
void join_flush(struct join *join, const struct process *process);

/* The time of the oldest undecided sample, CLOCK_MONOTONIC; UINT64_MAX when there is none. */
uint64_t join_oldest_ns(const struct join *join);
size_t join_held(const struct join *join); /* undecided samples */
size_t join_held_bytes(const struct join *join); /* of all halves */

struct jvm;

/* A sample or another record of BPF or an agent. It owns nothing; struct held is a copy that does. */
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
	struct payer payer; /* of the process at that time */
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
