// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for perf events. The loader opens each event on each CPU. The program runs when the clock ticks or the
 * counter overflows, and samples the thread that the CPU runs.
 */
#include "class.bpf.h"
#include "core.bpf.h"
#include "signal.bpf.h"
#include "walk/compiling.h"

/* The class of the object that a virtual call is about, as the sample has it. */
struct receiver {
	struct duet_attribute head;
	u8 name[DUET_MAX_CLASS_BYTES];
};

_Static_assert(sizeof(struct receiver) <= sizeof(((struct duet_scratch *)0)->part), "it is built there");
_Static_assert(sizeof(struct receiver) < DUET_MAX_BPF_ATTRIBUTE_BYTES, "it must fit");

/* The method that the thread compiles. */
struct compiling {
	struct duet_attribute head;
	u64 method;
};

static __always_inline u64 receiver_class(const struct walk_java *java)
{
	const struct duet_jvm_object *at = &java->layout.object;
	u64 word = class_word(java->regs[DUET_FRAME_RECEIVER], at->klass);

	if (at->klass_bytes == 4)
		word = (u32)word;
	else if (at->klass_bytes != 8)
		return 0;
	word >>= at->klass_below & 63;
	return word ? at->klass_base + (word << (at->klass_shift & 63)) : 0;
}

/* Returns the size of the attribute, or 0: the thread does not look for the method of a virtual call. */
static __noinline u32 receiver_describe(struct duet_scratch *room)
{
	struct receiver *to = (struct receiver *)&room->part;
	u64 klass;
	u32 bytes;

	if (!unwind_java_dispatches(room->level))
		return 0;
	klass = receiver_class(&room->java);
	if (!klass)
		return 0;
	__builtin_memset(to, 0, sizeof(*to));
	bytes = class_name(to->name, klass, &room->java.layout.allocation);
	if (!bytes)
		return 0;
	to->head.type = DUET_ATTRIBUTE_CLASS;
	to->head.bytes = bytes;
	return sizeof(to->head) + ((bytes + 7) & ~7u);
}

/* Returns the size of the attribute, or 0: the thread compiles nothing. It replaces the state of the walk. */
static __noinline int compiling_describe(struct duet_scratch *room)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct compiling *to = (struct compiling *)&room->part;
	s64 distance = room->java.layout.compiling.thread;
	u64 java_thread = 0;

	if (!distance || walk_read_word(&room->java, &java_thread, task_thread_block(task) + distance) ||
	    compiling_find(&room->java, java_thread, room->sample.ns_tid, room->sample.user_sp))
		return 0;
	to->head.type = DUET_ATTRIBUTE_COMPILING;
	to->head.bytes = sizeof(to->method);
	to->head.about = room->java.found_check;
	to->method = room->java.found_method;
	return sizeof(*to);
}

/* Completes the sample. The walk's BPF stack frames do not exist any more. */
static __noinline int perf_end(struct duet_scratch *room)
{
	bool is_wanted = duet_config.options.receivers && !(room->sample.flags & DUET_SAMPLE_KERNEL);
	u32 bytes = is_wanted ? receiver_describe(room) : 0;

	if (!bytes && duet_config.options.compiling && room->sample.flags & DUET_SAMPLE_JVM)
		bytes = compiling_describe(room);
	if (bytes)
		sample_end_with(room, &room->part, bytes);
	else
		sample_end(room);
	return 0;
}

/* `has_cookie` is a constant, so that a kernel without bpf_send_signal_task() never sees the call. */
static __always_inline int perf_sample(struct bpf_perf_event_data *ctx, bool has_cookie)
{
	const struct sample_from from = {
		.ctx = ctx,
		.regs = &ctx->regs,
		.began_ns = bpf_ktime_get_ns(),
		.event = sample_event(ctx, DUET_PROGRAM_PERF),
		.kernel = STACK_OF_CONTEXT,
	};
	struct duet_scratch *room = sample_take(&from);

	if (room) {
		if (has_cookie)
			signal_java_thread_cookie(&room->sample);
		else
			signal_java_thread(&room->sample);
		perf_end(room);
	}
	sample_cost(&from, room != NULL);
	return 0;
}

/* The "?" keeps libbpf from loading the program automatically: the loader chooses one of the two. */
SEC("?perf_event")
int perf_plain(struct bpf_perf_event_data *ctx)
{
	return perf_sample(ctx, false);
}

SEC("?perf_event")
int perf_cookie(struct bpf_perf_event_data *ctx)
{
	return perf_sample(ctx, true);
}

char LICENSE[] SEC("license") = "GPL";
