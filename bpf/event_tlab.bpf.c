// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program for allocations in Java's heap of JVMs that do not sample them (JDK 8), or shall not. Each thread
 * allocates in a buffer of its own (TLAB). When an object does not fit, HotSpot gives the thread a new buffer, or keeps
 * the old one and allocates the object outside. It calls one of two functions then, which are probed.
 */
#include "class.bpf.h"
#include "core.bpf.h"
#include "of_thread.bpf.h"

#define TLAB_SLACK 1024 /* what HotSpot keeps free at the end of a buffer: for prefetching, and to fill up the rest */

/* What samples account for of what a thread allocates. A position is the number of bytes that it has allocated. */
struct tlab_thread {
	u64 accounted; /* position up to which samples account for what the thread has allocated */
	u64 carried; /* bytes before it that the next object which ends a buffer accounts for too */
	u64 began; /* position at which its buffer began, with the bytes of objects outside of it since */
	u64 bytes; /* size of the buffer; 0: not known */
	u64 room; /* of the buffer, behind the object that began it */
	u64 left; /* what was left of it when an object did not fit, and it was kept; 0: all objects have fit */
	u64 small; /* bytes of objects of at most small_most bytes that a sample of such an object has to account for */
	u64 small_most;
};

/* The loader sets the size of the second. */
OF_THREAD(tlab_states, struct tlab_thread);
OWN_MAP(tlab_threads, LRU_HASH, 1, u32, struct tlab_thread);

static __always_inline struct tlab_thread *tlab_of_thread(bool create)
{
	static const struct tlab_thread none;

	return of_thread(&tlab_states, &tlab_threads, &none, create);
}

/* A call of one of the two functions. */
struct tlab_call {
	u64 klass;
	u64 size; /* of the object */
	u64 buffer; /* size of the thread's new buffer, which the object begins; 0: it lies outside */
	u64 position; /* bytes that the thread has allocated before it */
	u64 left; /* of an object outside: what is left of the thread's buffer */
};

/* The registers are read as memory: the verifier allows no computed offset into a program's context. */
static __noinline u64 tlab_argument(struct pt_regs *regs, u32 number)
{
	switch (number) {
	case 1:
		return PT_REGS_PARM1_CORE(regs);
	case 2:
		return PT_REGS_PARM2_CORE(regs);
	case 3:
		return PT_REGS_PARM3_CORE(regs);
	case 4:
		return PT_REGS_PARM4_CORE(regs);
	case 5:
		return PT_REGS_PARM5_CORE(regs);
	default:
		return 0;
	}
}

/*
 * Sets where the thread is. The JVM has counted the object already; JDK 8 not yet, in a new buffer, and the thread has
 * no buffer then.
 */
static __always_inline void tlab_locate(struct tlab_call *call, u64 thread, const struct duet_jvm_allocation *at)
{
	u64 start = class_word(thread, at->buffer_start), top = class_word(thread, at->buffer_top);
	u64 end = class_word(thread, at->buffer_end);

	call->position = class_word(thread, at->thread_allocated);
	if (start && top > start)
		call->position += top - start;
	if ((!call->buffer || start) && call->position >= call->size)
		call->position -= call->size;
	if (!call->buffer && start && end > top)
		call->left = end - top;
}

static __always_inline void tlab_renew(struct tlab_thread *thread, const struct tlab_call *call)
{
	thread->began = call->position;
	thread->bytes = call->buffer;
	thread->room = call->buffer > call->size ? call->buffer - call->size : 0;
	thread->left = 0;
}

/*
 * Weighs an object that would not fit into any rest of the buffer, not even right behind the object that began it: a
 * buffer for a large object is larger by its size. It accounts for its own size. If it gets a new buffer, the objects
 * that were put into the rest of the old one, all smaller, are left to the next sample of such.
 */
static __always_inline u64 tlab_weigh_certain(struct tlab_thread *thread, const struct tlab_call *call)
{
	if (call->buffer && thread->left) {
		thread->small += call->position - thread->accounted;
		thread->small_most = thread->left;
		thread->accounted = call->position;
	}
	thread->accounted += call->size;
	return call->size;
}

/*
 * The object that ends a buffer is the one that would lie over the buffer's last byte. As that byte may be anywhere,
 * the object is chosen at random in proportion to its size, and accounts for all bytes since the end of the last
 * buffer. If the buffer is kept, its rest is for smaller objects, which are counted apart.
 */
static __always_inline u64 tlab_weigh_crossing(struct tlab_thread *thread, const struct tlab_call *call, u64 rest)
{
	u64 weight = call->position - thread->accounted;

	if (rest > call->size)
		rest = call->size;
	weight += rest;
	thread->accounted = call->position + rest;
	if (!thread->left) {
		weight += thread->carried;
		thread->carried = 0;
	}
	if (call->size <= thread->small_most) {
		weight += thread->small;
		thread->small = 0;
	}
	if (call->buffer)
		return weight;
	if (!thread->left) {
		thread->carried = call->size - rest;
		thread->accounted = call->position + call->size;
	}
	thread->left = call->left;
	return weight;
}

/*
 * Returns how many bytes a sample of this call accounts for. 0: the buffer was ended by the collector, not by this
 * object, which would have fit.
 */
static __noinline u64 tlab_weigh(struct tlab_thread *thread, const struct tlab_call *call)
{
	u64 used = call->position - thread->began, most = thread->left ? thread->left : thread->room, weight;
	u64 rest = !call->buffer ? call->left : thread->bytes > used ? thread->bytes - used : 0;

	/* another thread has got its number */
	if (call->position < thread->accounted || call->position < thread->began) {
		*thread = (struct tlab_thread){.accounted = call->position + call->size};
		weight = call->size;
	} else if (call->buffer && thread->bytes && used + call->size + TLAB_SLACK <= thread->bytes) {
		weight = 0;
	} else if (!thread->bytes || call->size > most) {
		weight = tlab_weigh_certain(thread, call);
	} else {
		weight = tlab_weigh_crossing(thread, call, rest);
	}
	if (call->buffer)
		tlab_renew(thread, call);
	else
		thread->began += call->size;
	return weight;
}

/*
 * The first call of a thread. What the thread has allocated before the recording is not known, so the call accounts for
 * its own buffer, as the part that the recording cuts off at its end is as long on average.
 */
static __always_inline u64 tlab_weigh_first(const struct tlab_call *call)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u64 weight = call->buffer ? call->buffer : call->size;
	struct tlab_thread thread = {.accounted = call->position};
	struct tlab_thread *state = tlab_of_thread(true);

	if (BPF_CORE_READ(task, start_time) > duet_started_ns && call->position > weight)
		weight = call->position;
	if (call->buffer)
		tlab_renew(&thread, call);
	else
		thread.accounted += call->size;
	if (state)
		*state = thread;
	return weight;
}

/* The attributes, as the sample has them. */
struct tlab_attributes {
	struct duet_attribute size_head;
	u64 size;
	struct duet_attribute class_head;
	u8 name[DUET_MAX_CLASS_BYTES];
};

_Static_assert(sizeof(struct tlab_attributes) <= sizeof(((struct duet_scratch *)0)->part), "they are built there");
_Static_assert(sizeof(struct tlab_attributes) < DUET_MAX_BPF_ATTRIBUTE_BYTES, "they must fit");

/* Returns the size of the attributes. */
static __noinline u32 tlab_describe(struct tlab_attributes *to, u64 klass, u64 size, u32 about,
				    const struct duet_jvm_allocation *at)
{
	u32 bytes;

	__builtin_memset(to, 0, sizeof(*to));
	to->size_head.type = DUET_ATTRIBUTE_SIZE;
	to->size_head.bytes = sizeof(to->size);
	to->size = size;
	bytes = class_name(to->name, klass, at);
	if (!bytes)
		return __builtin_offsetof(struct tlab_attributes, class_head);
	to->class_head.type = DUET_ATTRIBUTE_CLASS;
	to->class_head.bytes = bytes;
	to->class_head.about = about;
	return __builtin_offsetof(struct tlab_attributes, name) + ((bytes + 7) & ~7u);
}

/* Like sample_end(), for a sample with the object's size and class. */
static __noinline int tlab_end(struct duet_scratch *room, u64 klass, u64 size, u32 about)
{
	struct tlab_attributes *attributes = (struct tlab_attributes *)&room->part;
	u32 more = tlab_describe(attributes, klass, size, about, &room->java.layout.allocation);

	room->sample.flags |= DUET_SAMPLE_FOR_JAVA;
	room->sample.no_signal = DUET_NO_SIGNAL_EVENT;
	sample_end_with(room, attributes, more);
	return 0;
}

/* Returns what the call accounts for; 0: nothing, or the thread is not to be sampled. */
static __noinline u64 tlab_amount(struct pt_regs *ctx, u64 cookie)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u64 start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	u32 size_at = DUET_TLAB_SIZE_AT(cookie), thread_at = DUET_TLAB_THREAD_AT(cookie);
	struct tlab_call call = {.size = tlab_argument(ctx, size_at)};
	struct duet_jvm_entry *jvm;
	struct tlab_thread *thread;
	struct filter_ids ids = {};

	if (!filter_pass(task, &ids, start_ns))
		return 0;
	if (cookie & DUET_TLAB_IS_NEW)
		call.buffer = tlab_argument(ctx, size_at - 1);
	jvm = bpf_map_lookup_elem(&jvm_layouts, &ids.tgid);
	if (!thread_at || !jvm || jvm->start_ticks != duet_ticks(start_ns) ||
	    jvm->layout.allocation.thread_allocated >= DUET_MAX_OFFSET)
		return call.buffer ? call.buffer : call.size;
	tlab_locate(&call, tlab_argument(ctx, thread_at), &jvm->layout.allocation);
	thread = tlab_of_thread(false);
	return thread ? tlab_weigh(thread, &call) : tlab_weigh_first(&call);
}

SEC("?kprobe")
int tlab_slow_path(struct pt_regs *ctx)
{
	u64 began_ns = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx), amount = tlab_amount(ctx, cookie);
	u32 event = duet_config.event_of[DUET_PROGRAM_TLAB];
	u64 pending = amount ? sample_add_pending(event, amount) : 0;
	struct duet_scratch *room;

	if (!pending)
		return 0;
	room = sample_take(&(struct sample_from){
		.ctx = ctx, .regs = (const bpf_user_pt_regs_t *)ctx, .began_ns = began_ns, .event = event});
	if (room)
		tlab_end(room, PT_REGS_PARM1(ctx), tlab_argument(ctx, DUET_TLAB_SIZE_AT(cookie)),
			 cookie & DUET_TLAB_IS_NEW ? 0 : DUET_CLASS_OUTSIDE);
	return sample_end_chosen(began_ns, event, amount, pending, room != NULL);
}

char LICENSE[] SEC("license") = "GPL";
