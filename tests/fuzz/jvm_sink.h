/* SPDX-License-Identifier: MIT */
/* The loader's tables for agent records, and every request that samples make to them afterwards. */
#pragma once

#include "base/intern.h"
#include "collect/records/split_samples.h"
#include "fuzz.h"
#include "join/join.h"
#include "join/resolve.h"
#include "runtime/jvm.h"

struct jvm_sink {
	struct profile profile;
	struct jvm *jvm;
	struct join *join;
	struct vec(struct held *) held;
	struct deep_stacks parts;
	struct resolver resolver;
	struct process process;
	struct origin origin;
	uint64_t time_ns;
};

static inline void jvm_sink_add(struct jvm_sink *sink, const struct decision *decision, struct resolved resolved)
{
	int64_t node = resolve_node(&sink->resolver, decision, &resolved);
	const struct profile_sample added = {
		.time_ns = 1,
		.weight = 1,
		.thread = profile_thread(&sink->profile, 1, decision->sample->head.tid, "t", "p", 0),
		.node = (uint32_t)node,
		.count = 1,
	};

	FUZZ_CHECK(node >= 0 && !profile_add(&sink->profile, &added));
}

static inline void jvm_sink_decide(void *context, struct origin *origin, const struct duet_sample *sample,
				   const struct duet_java_sample *java, enum join_outcome outcome)
{
	struct jvm_sink *sink = context;
	const struct decision decision = {origin, &sink->process, sink->jvm, sample, java, outcome, false};
	struct resolved resolved = resolve_stack(&sink->resolver, &decision);

	if (!resolved.want_count)
		return jvm_sink_add(sink, &decision, resolved);
	FUZZ_CHECK(!vec_push(&sink->held, held_new(&decision, sink->time_ns)));
}

static inline void jvm_sink_name(struct jvm_sink *sink)
{
	for (size_t i = 0; i < sink->held.len; i++) {
		struct held *held = sink->held.items[i];

		FUZZ_CHECK(held);
		jvm_sink_add(sink, &held->decision, resolve_stack(&sink->resolver, &held->decision));
		held_free(held);
	}
	vec_release(&sink->held);
}

static inline void jvm_sink_open(struct jvm_sink *sink, struct symbols *symbols)
{
	static const struct options options;

	*sink = (struct jvm_sink){.process = {.pid = 1, .exited = true}, .origin = {.process = &sink->process}};
	FUZZ_CHECK(!profile_init(&sink->profile));
	FUZZ_CHECK(profile_event(&sink->profile, "cpu", PROFILE_NS, 0) == 0);
	sink->jvm = jvm_new(&sink->profile.strings);
	sink->join = join_new(jvm_sink_decide, sink);
	FUZZ_CHECK(sink->jvm && sink->join && symbols);
	resolver_init(&sink->resolver, &options, &sink->profile, symbols);
}

/* An agent_ring_handler. */
static inline void jvm_sink_take(void *context, uint16_t type, const void *payload, uint32_t size)
{
	struct jvm_sink *sink = context;

	if (type == DUET_AGENT_JAVA_SAMPLE)
		join_offer(sink->join, &sink->origin, payload, size, sink->time_ns++);
	else if (type == DUET_AGENT_SAMPLE)
		join_sample(sink->join, &sink->origin, deep_stacks_join(&sink->parts, payload), sink->time_ns++);
	else if (type == DUET_AGENT_FRAMES)
		deep_stacks_add(&sink->parts, payload);
	else
		jvm_apply(sink->jvm, type, payload, size);
}

/* A kernel half for addresses and threads that the records are likely to name. */
static inline void jvm_sink_sample(struct jvm_sink *sink, uint64_t address, uint32_t tid)
{
	const uint64_t stack[] = {0xffffffff81000000, address, address + 1, address + 8, 0x1000};
	struct duet_sample *sample = calloc(1, sizeof(*sample) + sizeof(stack));

	FUZZ_CHECK(sample);
	sample->head = (struct duet_record){
		.size = sizeof(*sample) + sizeof(stack),
		.type = DUET_RECORD_SAMPLE,
		.time_ns = tid & 0xff,
		.tgid = 1,
		.tid = tid,
	};
	sample->flags = DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_USER_REGS;
	sample->user_pc = address;
	sample->ns_tid = tid;
	sample->kernel_depth = 1;
	sample->user_depth = 4;
	memcpy(sample->stack, stack, sizeof(stack));
	join_sample(sink->join, &sink->origin, sample, sink->time_ns);
	free(sample);
}

static inline void jvm_sink_close(struct jvm_sink *sink)
{
	for (uint64_t address = 0; address < 64; address += 7)
		jvm_sink_sample(sink, address << 8, (uint32_t)address / 7);
	join_run(sink->join, sink->time_ns);
	jvm_forget(sink->jvm, 1000);
	join_flush(sink->join, NULL);
	jvm_sink_name(sink);
	join_free(sink->join);
	FUZZ_CHECK(!sink->process.references && !sink->origin.references && !sink->origin.awaited);
	deep_stacks_release(&sink->parts);
	jvm_free(sink->jvm);
	resolver_release(&sink->resolver);
	profile_release(&sink->profile);
}
