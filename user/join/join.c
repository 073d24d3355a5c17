/* SPDX-License-Identifier: MIT */
#include "join/join.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/counters.h"
#include "base/map.h"
#include "base/vec.h"
#include "proc/room.h"

#define MAX_SPARE 16384 /* structs of threads kept for reuse, each with room for a few halves: 9 MB */

/* A sample and a record, the two halves, as they arrived. */
struct held_sample {
	uint64_t arrived_ns;
	uint64_t cookie; /* cookie of the signal that the agent's record answers; 0 if paired by interval */
	/* paired by interval: the record is older than the next signalled sample; UINT64_MAX = none yet */
	uint64_t until_ns;
	struct duet_sample *sample;
};

struct held_record {
	uint64_t arrived_ns;
	uint32_t bytes;
	struct duet_java_sample *record;
	bool used;
};

/* Halves of one thread that wait for each other, in order of arrival. */
struct join_thread {
	struct origin *origin; /* awaited */
	struct payer payer; /* of the process when the first half arrived */
	uint64_t key; /* in join->threads */
	uint64_t last_cookie; /* cookie of the newest signalled sample */
	struct vec(struct held_sample) samples;
	struct vec(struct held_record) records;
};

struct join {
	join_handler handler;
	void *context;
	struct map threads; /* origin and tid -> struct join_thread *, for threads that hold a half */
	struct vec(struct join_thread *) busy; /* the same threads, in order of arrival */
	struct vec(struct join_thread *) spare; /* structs without halves, for reuse */
	size_t held;
	size_t held_bytes; /* bytes of all samples and records */
	size_t max_bytes;
};

struct join *join_new(join_handler handler, void *context)
{
	struct join *join = calloc(1, sizeof(*join));

	if (join) {
		join->handler = handler;
		join->context = context;
		join->max_bytes = JOIN_MAX_BYTES;
	}
	return join;
}

static void thread_free(struct join_thread *thread)
{
	for (size_t i = 0; i < thread->samples.len; i++)
		free(thread->samples.items[i].sample);
	for (size_t i = 0; i < thread->records.len; i++)
		free(thread->records.items[i].record);
	vec_release(&thread->samples);
	vec_release(&thread->records);
	free(thread);
}

void join_free(struct join *join)
{
	if (!join)
		return;
	for (size_t i = 0; i < join->busy.len; i++) {
		origin_unawait(join->busy.items[i]->origin);
		thread_free(join->busy.items[i]);
	}
	vec_release(&join->busy);
	join_forget_spare(join);
	map_release(&join->threads);
	free(join);
}

static uint64_t thread_key(const struct origin *origin, uint32_t tid)
{
	return hash_u64((uint64_t)(uintptr_t)origin) ^ tid; /* origins are few: a 64-bit collision is not a concern */
}

static struct join_thread *thread_get(struct join *join, struct origin *origin, uint32_t tid)
{
	uint64_t key = thread_key(origin, tid);
	struct join_thread *thread = map_get_ptr(&join->threads, key);

	if (thread)
		return thread;
	if (vec_reserve(&join->busy, join->busy.len + 1) < 0)
		return NULL;
	thread = join->spare.len ? join->spare.items[--join->spare.len] : calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->key = key;
	if (map_put_ptr(&join->threads, key, thread) < 0) {
		thread_free(thread);
		return NULL;
	}
	thread->origin = origin_await(origin);
	thread->payer = origin->process->payer;
	join->busy.items[join->busy.len++] = thread;
	return thread;
}

/* Sets how the sample's record is found. A signalled sample also ends the interval of the samples before it. */
static void classify(struct join_thread *thread, struct held_sample *held)
{
	const struct duet_sample *sample = held->sample;

	/* Sent without a signal: the agent has written both halves. It has no effect on BPF's samples. */
	if (sample->flags & DUET_SAMPLE_CALLED) {
		held->cookie = sample->cookie;
		return;
	}
	if (sample->flags & DUET_SAMPLE_SIGNALLED) {
		thread->last_cookie = sample->flags & DUET_SAMPLE_COOKIE ? sample->cookie : 0;
		for (size_t i = thread->samples.len; i-- > 0 && thread->samples.items[i].until_ns == UINT64_MAX;)
			thread->samples.items[i].until_ns = sample->head.time_ns;
	}
	if (sample->flags & (DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_PENDING))
		held->cookie = thread->last_cookie;
}

int join_sample(struct join *join, struct origin *origin, const struct duet_sample *sample, uint64_t now_ns)
{
	struct join_thread *thread = thread_get(join, origin, sample->ns_tid);
	struct held_sample held = {
		.arrived_ns = now_ns, .until_ns = UINT64_MAX, .sample = buf_duplicate(sample, sample->head.size)};

	if (!thread || !held.sample)
		goto lost;
	classify(thread, &held);
	if (vec_push(&thread->samples, held) < 0)
		goto lost;
	join->held++;
	join->held_bytes += sample->head.size;
	room_add(ROOM_WAITING, &thread->payer, 1);
	room_add(ROOM_WAITING_BYTES, &thread->payer, sample->head.size);
	return 0;
lost:
	free(held.sample);
	loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
	return -ENOMEM;
}

/* Bytes counted for a record in addition to its own: it may be the only half of its thread. */
#define RECORD_OVERHEAD 256

static bool has_room(const struct join *join, const struct origin *origin, uint32_t tid)
{
	const struct join_thread *thread = map_get_ptr(&join->threads, thread_key(origin, tid));

	if (join->held_bytes >= join->max_bytes)
		return false;
	return origin->record_bytes < JOIN_MAX_RECORD_BYTES &&
	       (!thread || thread->records.len < JOIN_MAX_THREAD_RECORDS);
}

int join_offer(struct join *join, struct origin *origin, const struct duet_java_sample *record, uint32_t size,
	       uint64_t now_ns)
{
	struct held_record held = {.arrived_ns = now_ns, .bytes = size + RECORD_OVERHEAD};
	struct join_thread *thread;

	if (!has_room(join, origin, record->tid)) {
		loader_counters[DUET_LOADER_RECORDS_FULL]++;
		return -ENOSPC;
	}
	thread = thread_get(join, origin, record->tid);
	if (thread && !room_take(ROOM_WAITING_BYTES, &thread->payer, held.bytes))
		return -ENOSPC;
	held.record = buf_duplicate(record, size);
	if (!thread || !held.record || vec_push(&thread->records, held) < 0) {
		if (thread)
			room_give(ROOM_WAITING_BYTES, &thread->payer, held.bytes);
		free(held.record);
		loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
		return -ENOMEM;
	}
	join->held_bytes += held.bytes;
	origin->record_bytes += held.bytes;
	return 0;
}

static bool answers(const struct held_record *held, const struct held_sample *waiting)
{
	const struct duet_java_sample *record = held->record;
	uint64_t sampled_ns = waiting->sample->head.time_ns;

	if (record->time_ns < sampled_ns)
		return false;
	if (waiting->cookie)
		return record->cookie == waiting->cookie;
	return !record->cookie && record->time_ns < waiting->until_ns;
}

/* Returns the sample's record, or NULL: of two in one interval, nothing shows which one's sample was lost. */
static struct held_record *find_answer(struct join_thread *thread, const struct held_sample *waiting)
{
	struct held_record *found = NULL;

	for (size_t i = 0; i < thread->records.len; i++) {
		if (!answers(&thread->records.items[i], waiting))
			continue;
		if (found)
			return NULL;
		found = &thread->records.items[i];
	}
	return found;
}

/*
 * When a signal interrupts a system call that SA_RESTART restarts, the kernel moves pc back to the call's instruction
 * before the handler runs (handle_signal() in arch/x86/kernel/signal.c, do_signal() in arch/arm64/kernel/signal.c).
 */
#ifdef __x86_64__
#define SYSCALL_INSTRUCTION_BYTES 2
#else
#define SYSCALL_INSTRUCTION_BYTES 4
#endif

static bool same_place(const struct duet_sample *sample, const struct duet_java_sample *record)
{
	if (!(sample->flags & DUET_SAMPLE_USER_REGS) || sample->user_sp != record->sp)
		return false;
	return sample->user_pc == record->pc ||
	       (sample->flags & DUET_SAMPLE_KERNEL && sample->user_pc == record->pc + SYSCALL_INSTRUCTION_BYTES);
}

/* Decides a sample, and calls the handler. False while the agent's half may still arrive, unless `is_last`. */
static bool decide(struct join *join, struct join_thread *thread, struct held_sample *waiting, bool is_last)
{
	const struct duet_sample *sample = waiting->sample;
	struct held_record *answer = NULL;
	enum join_outcome outcome = JOIN_NOT_SIGNALLED;
	const struct duet_java_sample *java = NULL;

	if (sample->flags & (DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_PENDING)) {
		answer = find_answer(thread, waiting);
		if (!answer && !is_last)
			return false;
		outcome = !answer ? JOIN_NO_RECORD : same_place(sample, answer->record) ? JOIN_JOINED : JOIN_MISMATCH;
	}
	if (outcome == JOIN_JOINED)
		java = answer->record;
	else if (sample->flags & DUET_SAMPLE_USER_COMPLETE)
		outcome = JOIN_WALKED;
	join->handler(join->context, thread->origin, sample, java, outcome);
	if (answer)
		answer->used = true;
	loader_counters[DUET_LOADER_NO_AGENT_RECORD] += outcome == JOIN_NO_RECORD;
	loader_counters[DUET_LOADER_PC_MISMATCH] += outcome == JOIN_MISMATCH;
	loader_counters[DUET_LOADER_NOT_SIGNALLED] +=
		outcome == JOIN_NOT_SIGNALLED && sample->no_signal != DUET_NO_SIGNAL_EVENT;
	return true;
}

/* A half may have arrived after the caller read its clock. Then arrived_ns is above now_ns. */
static bool is_older(uint64_t arrived_ns, uint64_t now_ns, uint64_t age_ns)
{
	return now_ns > arrived_ns && now_ns - arrived_ns > age_ns;
}

static void run_samples(struct join *join, struct join_thread *thread, uint64_t now_ns, bool flush)
{
	size_t kept = 0;

	for (size_t i = 0; i < thread->samples.len; i++) {
		struct held_sample *held = &thread->samples.items[i];
		bool is_crowded = join->held > JOIN_MAX_HELD || join->held_bytes > join->max_bytes ||
				  room_is_over(ROOM_WAITING, &thread->payer) ||
				  room_is_over(ROOM_WAITING_BYTES, &thread->payer);
		bool is_last = flush || is_crowded || is_older(held->arrived_ns, now_ns, JOIN_WAIT_NS);

		if (decide(join, thread, held, is_last)) {
			join->held_bytes -= held->sample->head.size;
			room_give(ROOM_WAITING, &thread->payer, 1);
			room_give(ROOM_WAITING_BYTES, &thread->payer, held->sample->head.size);
			free(held->sample);
			join->held--;
		} else {
			thread->samples.items[kept++] = *held;
		}
	}
	thread->samples.len = kept;
}

/*
 * Returns true if the record can be freed. A used record may answer further samples of its thread that were taken while
 * the signal was pending, so it stays while the thread has samples. An unused one stays until it is old. In practice a
 * thread has a few records.
 */
static bool record_done(const struct join_thread *thread, const struct held_record *held, uint64_t now_ns, bool flush)
{
	bool old = flush || is_older(held->arrived_ns, now_ns, JOIN_WAIT_NS);

	if (held->used && !thread->samples.len)
		return true;
	if (old && !held->used)
		loader_counters[DUET_LOADER_ORPHAN_RECORD]++;
	return old;
}

static void run_records(struct join *join, struct join_thread *thread, uint64_t now_ns, bool flush)
{
	size_t kept = 0;

	for (size_t i = 0; i < thread->records.len; i++) {
		struct held_record *held = &thread->records.items[i];

		if (record_done(thread, held, now_ns, flush)) {
			join->held_bytes -= held->bytes;
			thread->origin->record_bytes -= held->bytes;
			room_give(ROOM_WAITING_BYTES, &thread->payer, held->bytes);
			free(held->record);
		} else {
			thread->records.items[kept++] = *held;
		}
	}
	thread->records.len = kept;
}

static void thread_retire(struct join *join, struct join_thread *thread)
{
	map_remove(&join->threads, thread->key);
	origin_unawait(thread->origin);
	thread->last_cookie = 0;
	if (join->spare.len >= MAX_SPARE || vec_push(&join->spare, thread) < 0)
		thread_free(thread);
}

static void run_threads(struct join *join, const struct process *process, uint64_t now_ns, bool flush)
{
	size_t kept = 0;

	for (size_t i = 0; i < join->busy.len; i++) {
		struct join_thread *thread = join->busy.items[i];

		if (!process || thread->origin->process == process) {
			run_samples(join, thread, now_ns, flush);
			run_records(join, thread, now_ns, flush);
		}
		if (thread->samples.len || thread->records.len)
			join->busy.items[kept++] = thread;
		else
			thread_retire(join, thread);
	}
	join->busy.len = kept;
}

void join_run(struct join *join, uint64_t now_ns)
{
	run_threads(join, NULL, now_ns, false);
}

void join_flush(struct join *join, const struct process *process)
{
	run_threads(join, process, UINT64_MAX, true);
}

void join_set_max_bytes(struct join *join, size_t bytes)
{
	join->max_bytes = bytes;
}

void join_forget_spare(struct join *join)
{
	while (join->spare.len)
		thread_free(join->spare.items[--join->spare.len]);
	vec_release(&join->spare);
}

uint64_t join_oldest_ns(const struct join *join)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (size_t i = 0; i < join->busy.len; i++) {
		const struct join_thread *thread = join->busy.items[i];

		for (size_t k = 0; k < thread->samples.len; k++)
			if (thread->samples.items[k].sample->head.time_ns < oldest_ns)
				oldest_ns = thread->samples.items[k].sample->head.time_ns;
	}
	return oldest_ns;
}

size_t join_held(const struct join *join)
{
	return join->held;
}

size_t join_held_bytes(const struct join *join)
{
	return join->held_bytes;
}

struct held *held_new(const struct decision *decision, uint64_t now_ns)
{
	const struct duet_java_sample *java = decision->java;
	size_t java_bytes = java ? sizeof(*java) + java->java_depth * sizeof(struct duet_java_frame) : 0;
	size_t sample_bytes = decision->sample->head.size;
	struct held *held = calloc(1, sizeof(*held));

	if (!held)
		return NULL;
	*held = (struct held){*decision, now_ns, decision->process->programs, decision->process->payer,
			      sample_bytes + java_bytes};
	process_ref(decision->process);
	origin_ref(decision->origin);
	held->decision.sample = buf_duplicate(decision->sample, sample_bytes);
	held->decision.java = java ? buf_duplicate(java, java_bytes) : NULL;
	if (held->decision.sample && (!java || held->decision.java))
		return held;
	held_free(held);
	return NULL;
}

void held_free(struct held *held)
{
	if (!held)
		return;
	free((void *)held->decision.sample);
	free((void *)held->decision.java);
	process_unref(held->decision.process);
	origin_unref(held->decision.origin);
	free(held);
}
