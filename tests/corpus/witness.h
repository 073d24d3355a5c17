/* SPDX-License-Identifier: MIT */
/* The other witnesses of a thread's stack: the agent, and walks that it has confirmed. */
#pragma once

#include "corpus/shot.h"

static void on_java_sample(void *context, uint16_t type, const void *payload, uint32_t size)
{
	const struct duet_java_sample *sample = payload;

	if (type != DUET_AGENT_JAVA_SAMPLE || sample->cookie != capture.cookie)
		return;
	if (vec_reserve(&capture.answer, (size + 7) / 8) < 0)
		return;
	memcpy(capture.answer.items, payload, size);
	capture.answer.len = (size + 7) / 8;
}

/* On its way to the answer the thread is caught again, in the agent's handler. */
static bool take_handled(struct tracee *tracee)
{
	int steps = rand_r(&capture.random) % 64;
	bool is_led = !plain.in_kernel && tracee_step(tracee) && tracee->signal == (int)capture.agent->signo;

	while (is_led && steps-- >= 0)
		is_led = tracee_step(tracee);
	return is_led && take_shot(&handled, tracee);
}

/* Lets the thread run until the agent has answered, if it does. True when `handled` is taken too. */
static bool ask_agent(struct tracee *tracee)
{
	uint64_t until_ns = clock_monotonic_ns() + 300 * NS_PER_MS;
	bool has_handled;

	capture.answer.len = 0;
	capture.cookie++;
	if (!tracee_signal(capture.pid, tracee->tid, (int)capture.agent->signo, capture.cookie))
		return false;
	has_handled = take_handled(tracee);
	while (!capture.answer.len && !tracee->is_gone && clock_monotonic_ns() < until_ns) {
		if (tracee->is_stopped)
			tracee_go(tracee, PTRACE_CONT);
		tracee_look(tracee);
		agent_read(capture.agent, on_java_sample, NULL);
	}
	return has_handled;
}

/* The kernel moves pc back onto a system call that it restarts. */
static bool is_same_place(const struct duet_java_sample *java)
{
	return java->sp == plain.regs.general[4] &&
	       (java->pc == plain.regs.pc || (plain.in_kernel && java->pc + 2 == plain.regs.pc));
}

static bool has_java(void)
{
	for (uint32_t i = 0; i < plain.walk.walked; i++)
		if (plain.walk.ids[i])
			return true;
	return false;
}

static bool is_complete(void)
{
	return plain.walk.sample.walk_end == DUET_WALK_ENTRY && !plain.walk.cursor.is_guess;
}

/* Makes the sample that BPF would have sent. */
static const struct duet_sample *make_sample(void)
{
	static struct {
		struct duet_sample sample;
		uint64_t stack[DUET_MAX_USER_STACK * 2];
	} record;
	uint32_t *ids = (uint32_t *)(record.stack + plain.walk.walked);

	record.sample = (struct duet_sample){
		.head = {.time_ns = plain.time_ns, .tgid = (uint32_t)capture.pid},
		.flags = DUET_SAMPLE_USER_REGS | DUET_SAMPLE_JVM | (is_complete() ? DUET_SAMPLE_USER_COMPLETE : 0),
		.user_depth = (uint16_t)plain.walk.walked,
		.id_depth = (uint16_t)plain.walk.walked,
		.walk_end = (uint16_t)plain.walk.sample.walk_end,
	};
	for (uint32_t i = 0; i < plain.walk.walked; i++) {
		record.stack[i] = plain.walk.sample.stack[i];
		ids[i] = plain.walk.ids[i];
	}
	return &record.sample;
}

/* Of the frames from the root up to each of them. */
static void hash_frames(uint64_t *ret_hashes)
{
	uint64_t hash = 0;

	for (uint32_t i = plain.walk.walked; i-- > 0; ret_hashes[i] = hash) {
		hash = hash_u64(hash ^ plain.walk.sample.stack[i]);
		hash = hash_u64(hash ^ plain.walk.ids[i]);
	}
}

static void note_agreed(void)
{
	uint64_t hashes[DUET_MAX_USER_STACK] = {0};

	hash_frames(hashes);
	for (uint32_t i = 0; i < plain.walk.walked; i++)
		(void)map_put(&capture.agreed, hashes[i], 1);
}

/*
 * Where AsyncGetCallTrace fails: was the caller of the topmost Java frame, with all below, agreed to elsewhere? Then
 * that frame is the right one too, or it would not have led there.
 */
static bool has_known_callers(void)
{
	uint64_t hashes[DUET_MAX_USER_STACK] = {0}, found;
	uint32_t i = 0;

	while (i < plain.walk.walked && !plain.walk.ids[i])
		i++;
	hash_frames(hashes);
	return i + 2 < plain.walk.walked && plain.walk.ids[i + 1] &&
	       map_get(&capture.agreed, hashes[i + 1], &found);
}

/* Names and code may be told a little later. */
static bool splice_both(const struct duet_java_sample *java)
{
	for (int i = 0; i < 20; i++) {
		if (splice_stack(&capture.splice, capture.process, capture.agent->jvm, make_sample(), java,
				 JOIN_JOINED) < 0)
			return false;
		if (!capture.splice.verdict.is_missing_code)
			return true;
		usleep(20000);
		agent_read(capture.agent, on_java_sample, NULL);
	}
	return false;
}

/* Returns why the walk is right; NULL if nothing has confirmed it. */
static const char *verdict(const struct duet_java_sample *java)
{
	if (!splice_both(java) || !is_complete())
		return NULL;
	if (!has_java())
		return java->java_depth ? NULL : "without Java";
	if (capture.splice.verdict.witnesses == SPLICE_AGREED || capture.splice.verdict.witnesses == SPLICE_SAW_LESS)
		note_agreed();
	if (capture.splice.verdict.witnesses == SPLICE_AGREED)
		return "agreed";
	if (capture.splice.verdict.witnesses == SPLICE_SAW_LESS)
		return "AsyncGetCallTrace saw less";
	return capture.splice.verdict.witnesses == SPLICE_ALONE && has_known_callers() ? "its callers agreed elsewhere"
										       : NULL;
}

/* The same for a wrong one. */
static const char *objection(void)
{
	if (capture.splice.verdict.is_missing_code)
		return NULL;
	if (!is_complete())
		return "not complete";
	return capture.splice.verdict.witnesses == SPLICE_DISAGREED ? "contradicted" : NULL;
}
