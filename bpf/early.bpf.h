/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples of requests, which begin on one thread and end anywhere. Nobody knows at the submission how long a request
 * will take or what it will move, but only there is the submitter's stack. So a request is chosen then, by chance, and
 * its stack is sent to the loader. The completion has the weight: the amount divided by the chance, whatever that was.
 */
#pragma once

#include "sample.bpf.h"

#define EARLY_CHANCES 1024 /* a request that has all of them is always sampled */
#define EARLY_LEAST_CHANCE 32

/* The stack of a request, which was taken when it was submitted. */
struct early_chosen {
	u64 id; /* of the record with the stack; 0: it could not be taken, and the next request stands for this one */
	u64 chance; /* of this request to be sampled, in EARLY_CHANCES; 0: it is not sampled */
};

/*
 * Returns the chance, if the request is chosen; else 0. `foreseen` is what requests of this kind amount to; the better
 * it is, the less noise.
 */
static __always_inline u64 early_choose(const u64 *foreseen, u32 event)
{
	u64 interval = sample_interval(event), chance = EARLY_CHANCES;

	if (foreseen && *foreseen && *foreseen < interval)
		chance = *foreseen * EARLY_CHANCES / interval;
	if (chance < EARLY_LEAST_CHANCE)
		chance = EARLY_LEAST_CHANCE;
	return bpf_get_prandom_u32() % EARLY_CHANCES < chance ? chance : 0;
}

/* Keeps the most that this kind of request amounted to lately. */
static __always_inline void early_foresee(u64 *foreseen, u64 amount)
{
	if (!foreseen)
		return;
	*foreseen -= *foreseen / 16;
	if (amount > *foreseen)
		*foreseen = amount;
}

static __noinline u64 early_emit_stack(struct duet_scratch *room)
{
	u64 id = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;

	room->sample.role = DUET_ROLE_EARLY;
	room->sample.waker = id;
	room->sample.weight = 0;
	sample_emit(room, sizeof(room->sample) + stack_bytes(room), sample_wakeup_flag(room));
	return id;
}

/*
 * Takes the stack, if the request is chosen. Its weight is unknown until completion, so pending ticks are not consumed
 * here.
 */
static __always_inline void early_take(const struct sample_from *from, struct early_chosen *early)
{
	struct duet_cost *cost = duet_cost(from->event);
	struct duet_scratch *room;
	u64 pending;

	if (!early->chance || !cost)
		return;
	pending = cost->pending;
	room = sample_take(from);
	cost->pending = pending;
	if (room)
		early->id = early_emit_stack(room);
	sample_cost(from, room != NULL);
}

/* Begins the record of a weight: the thread is the submitter. */
static __always_inline void early_fill(struct duet_slept_record *record, u32 tgid, u32 tid)
{
	__builtin_memset(record, 0, sizeof(*record));
	duet_begin(&record->head, DUET_RECORD_SLEPT, 0, bpf_ktime_get_ns(), tgid, tid);
}

static __always_inline void early_emit(struct duet_slept_record *record, u64 id, u64 weight)
{
	u32 bytes = record->attribute_bytes;

	/* The mask is for the verifier. The asm hides the value, else the compiler would remove the mask. */
	__asm__("" : "+r"(bytes));
	bytes &= DUET_MAX_BPF_ATTRIBUTE_BYTES - 1;
	bytes += sizeof(*record);
	record->id = id;
	record->weight = weight;
	record->head.size = bytes;
	duet_emit(&record->head, bytes, duet_wakeup_flag());
}

/*
 * Reports a weight, with those of chosen requests that could not be reported. `record` may be NULL; else its attributes
 * follow it in memory.
 */
static __always_inline void early_emit_weight(struct duet_slept_record *record, const struct early_chosen *early,
					      u32 event, u64 amount)
{
	struct duet_cost *cost = duet_cost(event);

	if (!early->chance || !cost || !amount)
		return;
	cost->pending += amount * EARLY_CHANCES / early->chance;
	if (!record || !early->id)
		return;
	early_emit(record, early->id, cost->pending);
	cost->pending = 0;
}
