/* SPDX-License-Identifier: MIT */
/*
 * Everything here runs in a signal handler, on any thread, at any instruction, or is shared with it:
 * no locks, no allocation, no thread-local storage (which a dlopened library
 * may allocate at first use, and which musl refuses to place).
 */
#include "sample/sample.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "duet_config.h"
#include "engine.h"
#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "peer/peer.h"
#include "sample/java_walk.h"
#include "sample/newest.h"
#include "sample/pages.h"
#include "sample/walk.h"

#include "sigsafe.h"

#define SLOTS 64 /* threads that can be in the handler at once; untouched slots cost no memory */
#define SLOT_TRIES 8
#define ROOM_STEP_NS 200000
#define DEEP_WALK_NS 5000000 /* longest walk of a deep stack, where no interval of a clock limits it */

/* Too large for a thread's stack. */
struct walk_slot {
	int owner; /* 0 = free; tid of the thread in the handler, or -tid of one in a callback */
	ucontext_t context;
	struct stack_copy stack;
	struct agent_walk walk; /* standalone engines */
};

/* The slot's java_depth frames follow it. */
static struct asgct_frame *slot_frames(struct walk_slot *slot)
{
	return (struct asgct_frame *)(slot + 1);
}

static size_t slot_bytes(int java_depth)
{
	return sizeof(struct walk_slot) + (size_t)java_depth * sizeof(struct asgct_frame);
}

struct walk_slot *sample_slots_new(int java_depth)
{
	return pages_new(SLOTS * slot_bytes(java_depth));
}

void sample_slots_free(struct walk_slot *slots, int java_depth)
{
	pages_free(slots, SLOTS * slot_bytes(java_depth));
}

static struct walk_slot *slot_at(const struct stay *stay, unsigned int index)
{
	return (struct walk_slot *)((char *)stay->slots + index * slot_bytes(stay->java_depth));
}

/*
 * Takes a free slot near the one that the tid selects. The handler's signals are blocked while it runs. So when a slot
 * already has this tid, the walk was interrupted and never returned. A callback that is interrupted has its own slot.
 */
static struct walk_slot *slot_take(struct stay *stay, int new_owner)
{
	int tid = new_owner < 0 ? -new_owner : new_owner;

	for (int i = 0; i < SLOT_TRIES; i++) {
		struct walk_slot *slot = slot_at(stay, (unsigned int)(tid + i) % SLOTS);
		int owner = 0;

		if (__atomic_compare_exchange_n(&slot->owner, &owner, new_owner, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return slot;
		if (owner == new_owner) {
			duet_ring_count(stay->ring.page, DUET_AGENT_REENTERED);
			return NULL;
		}
	}
	duet_ring_count(stay->ring.page, DUET_AGENT_NO_SLOT);
	return NULL;
}

static void slot_put(struct walk_slot *slot)
{
	__atomic_store_n(&slot->owner, 0, __ATOMIC_RELEASE);
}

/* A JavaThread knows its id: the system call takes longer than the rest of a short walk. */
static uint32_t own_tid(void)
{
	int tid = jvmstructs_living_id(jvm_current_thread());

	return tid > 0 ? (uint32_t)tid : (uint32_t)syscall(SYS_gettid);
}

/* Lets the walk read the calling thread's stack from here on: that stays mapped. Of another stack nothing is known. */
static void set_own_stack(struct agent_walk *walk)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), base, bytes;

	walk->own.low = walk->own.high = 0;
	if (!jvmstructs_stack(jvm_current_thread(), &base, &bytes) || here >= base || base - here > bytes)
		return;
	walk->own.low = here;
	walk->own.high = base;
}

static void take_java(struct stay *stay, struct walk_slot *slot, struct duet_java_sample *sample,
		      const ucontext_t *context)
{
	struct java_walk walk = {
		.java_thread = jvm_current_thread(),
		.frames = slot_frames(slot),
		.max_depth = stay->java_depth,
		.stack = &slot->stack,
		.scratch = &slot->context,
	};

	sample->status = ASGCT_UNKNOWN_NOT_JAVA;
	if (!walk.java_thread) {
		sample->flags |= DUET_JAVA_NO_THREAD;
		return;
	}
	sample->status = java_walk(&walk, context);
	sample->java_depth = sample->status > 0 ? (uint32_t)sample->status : 0;
	if (walk.refused)
		duet_ring_count(stay->ring.page, DUET_AGENT_FAULT);
	if (sample->status >= stay->java_depth)
		sample->flags |= DUET_JAVA_TRUNCATED;
}

static size_t java_bytes(const struct duet_java_sample *sample)
{
	return sizeof(*sample) + sample->java_depth * sizeof(struct duet_java_frame);
}

static void copy_java(unsigned char *to, struct walk_slot *slot, const struct duet_java_sample *sample)
{
	const struct asgct_frame *from = slot_frames(slot);
	struct duet_java_frame *frames = (struct duet_java_frame *)(to + sizeof(*sample));

	memcpy(to, sample, sizeof(*sample));
	for (uint32_t i = 0; i < sample->java_depth; i++)
		frames[i] = (struct duet_java_frame){.method = (uintptr_t)from[i].method, .bci = from[i].bci};
}

static void write_java(struct stay *stay, struct walk_slot *slot, const struct duet_java_sample *sample)
{
	uint32_t bytes = (uint32_t)java_bytes(sample);
	struct duet_ring_record *record = duet_ring_reserve(&stay->ring.lanes[DUET_LANE_SAMPLE], bytes);

	if (!record) {
		duet_ring_count(stay->ring.page, DUET_AGENT_RING_FULL);
		return;
	}
	copy_java((unsigned char *)(record + 1), slot, sample);
	duet_ring_commit(record, DUET_AGENT_JAVA_SAMPLE, bytes);
}

/* Writes AsyncGetCallTrace's half of the sample. */
static void answer(struct stay *stay, struct walk_slot *slot, struct duet_java_sample *sample,
		   const ucontext_t *context)
{
	struct regs regs = regs_get(context);

	sample->pc = regs.pc;
	sample->sp = regs.sp;
	take_java(stay, slot, sample, context);
	write_java(stay, slot, sample);
}

/* ---- standalone engines ---- */

/* The loader looks at the ring some times a second. It looks at once when it is notified that half of it is full. */
static void notify_half_full(struct stay *stay)
{
	bool is_half = duet_ring_is_half(&stay->ring.lanes[DUET_LANE_SAMPLE]);

	if (__atomic_load_n(&stay->is_half, __ATOMIC_RELAXED) == is_half)
		return;
	if (!__atomic_exchange_n(&stay->is_half, is_half, __ATOMIC_RELAXED) && is_half)
		peer_send_note(stay->loader, DUET_MESSAGE_HALF);
}

/*
 * Waits up to `room_ms` for room in the ring. Returns NULL, and counts it, if there is none. A wait in vain ends the
 * waits of all threads until there has been room.
 */
static struct duet_ring_record *reserve_sample(struct stay *stay, uint32_t bytes, uint32_t room_ms)
{
	uint32_t steps = room_ms * (1000000 / ROOM_STEP_NS);
	struct duet_lane_view *lane = &stay->ring.lanes[DUET_LANE_SAMPLE];
	struct duet_ring_record *record = duet_ring_reserve(lane, bytes);
	const struct timespec step = {.tv_nsec = ROOM_STEP_NS};

	notify_half_full(stay);
	for (uint32_t i = 0; !record && i < steps && !__atomic_load_n(&stay->has_no_room, __ATOMIC_RELAXED); i++) {
		nanosleep(&step, NULL);
		record = duet_ring_reserve(lane, bytes);
	}
	if (steps && stay->has_no_room != !record)
		__atomic_store_n(&stay->has_no_room, !record, __ATOMIC_RELAXED);
	if (!record)
		duet_ring_count(stay->ring.page, DUET_AGENT_RING_FULL);
	return record;
}

static void write_walk(struct stay *stay, struct agent_walk *walk, bool waits)
{
	uint32_t bytes = (uint32_t)walk_bytes(walk);
	struct duet_ring_record *record = reserve_sample(stay, bytes, waits ? SAMPLE_ROOM_MS : 0);

	if (!record)
		return;
	walk->sample.head.size = bytes;
	walk_write(walk, (unsigned char *)(record + 1));
	duet_ring_commit(record, DUET_AGENT_SAMPLE, bytes);
	newest_note(walk->sample.ns_tid, walk->sample.head.time_ns);
}

/* True if AsyncGetCallTrace must be asked: the walk is not whole, or is to be checked, which the time decides. */
static bool needs_answer(const struct duet_sample *sample)
{
	uint64_t hash = sample->head.time_ns * 0x9e3779b97f4a7c15ull;

	return !(sample->flags & DUET_SAMPLE_WALKED) || (hash >> 32) % DUET_CHECK_ONE_IN == 0;
}

/* The parts of a deep stack were sent with the handler's time, so the sample keeps it. */
static void put_kernel_stack(struct duet_sample *sample, const struct kernel_stack *kernel)
{
	if (kernel->time_ns && !sample->left_out)
		sample->head.time_ns = kernel->time_ns;
	sample->kernel_depth = (uint16_t)kernel->depth;
	sample->flags &= (uint16_t)~DUET_SAMPLE_KERNEL;
	if (kernel->depth)
		sample->flags |= DUET_SAMPLE_KERNEL;
}

/* Writes a sample for each tick since the thread was in user mode, of one user stack. The last has the periods left. */
static void write_ticks(struct stay *stay, struct agent_walk *walk, uint64_t periods)
{
	const struct agent_engine *engine = stay->engine;
	struct duet_sample *sample = &walk->sample;
	uint64_t taken;

	for (; periods; periods -= taken) {
		bool more = engine->next_tick &&
			    engine->next_tick((int)sample->head.tid, sample->cookie, &walk->kernel);

		if (engine->next_tick)
			put_kernel_stack(sample, &walk->kernel);
		taken = more ? 1 : periods;
		sample->weight = taken * stay->ticks.interval;
		write_walk(stay, walk, false);
		if (sample->flags & DUET_SAMPLE_SIGNALLED)
			sample->flags = (uint16_t)((sample->flags & ~DUET_SAMPLE_SIGNALLED) | DUET_SAMPLE_PENDING);
	}
}

static void begin_sample(const struct stay *stay, struct duet_sample *sample, const struct duet_java_sample *java)
{
	*sample = (struct duet_sample){
		.head = {.type = DUET_RECORD_SAMPLE,
			 .version = DUET_RECORD_VERSION,
			 .time_ns = java->time_ns,
			 .tgid = stay->pid,
			 .tid = java->tid},
		.cookie = java->time_ns, /* no thread is sampled twice in one nanosecond */
		.ns_tgid = stay->pid,
		.ns_tid = java->tid,
	};
	context_here(&sample->context);
}

/*
 * Writes a sample of the time that the thread has waited for a CPU since its last tick. Of a deep stack, parts were
 * written for the other sample alone: the time is left to the next tick.
 */
static void write_waited(struct stay *stay, struct agent_walk *walk)
{
	uint64_t *waited_ns = __atomic_load_n(&stay->waited_ns, __ATOMIC_ACQUIRE);
	struct duet_sample *sample = &walk->sample;

	if (!waited_ns || sample->left_out || sample->head.tid >= STAY_TIDS)
		return;
	sample->weight = __atomic_exchange_n(&waited_ns[sample->head.tid], 0, __ATOMIC_RELAXED);
	sample->runnable = sample->weight;
	sample->event = stay->waited_event;
	sample->flags |= DUET_SAMPLE_OFF_CPU;
	if (sample->weight)
		write_walk(stay, walk, false);
}

/* Takes a sample as BPF does. Where BPF would signal the thread, asks AsyncGetCallTrace. */
static void take_standalone(struct stay *stay, struct walk_slot *slot, struct duet_java_sample *java,
			    const siginfo_t *info, const ucontext_t *context)
{
	struct duet_sample *sample = &slot->walk.sample;
	uint64_t periods = stay->engine->periods((int)java->tid, info);
	struct compiling_attribute compiled;

	if (!periods)
		return;
	begin_sample(stay, sample, java);
	sample->event = stay->ticks.index;
	slot->walk.is_kept = false;
	set_own_stack(&slot->walk);
	slot->walk.most_ns = stay->ticks.kind == DUET_AGENT_EVENT_CLOCK ? stay->ticks.interval / 2 : DEEP_WALK_NS;
	walk_thread(&slot->walk, stay, &slot->stack, context);
	virtual_threads_mounted(&slot->walk.java.layout, jvm_current_thread(), false, &sample->virtual_thread);
	slot->walk.attributes = &compiled;
	if (stay->ticks.flags & DUET_AGENT_WITH_COMPILING)
		sample->attribute_bytes = compiling_attribute_set(&compiled, &slot->walk);
	if (needs_answer(sample)) {
		java->cookie = sample->cookie;
		answer(stay, slot, java, context);
		sample->flags |= DUET_SAMPLE_SIGNALLED;
	}
	write_ticks(stay, &slot->walk, periods);
	write_waited(stay, &slot->walk);
}

/* ---- callbacks ---- */

_Static_assert(sizeof(jvmtiFrameInfo) == sizeof(struct asgct_frame), "both are kept in the same memory");

/*
 * The second witness: JVMTI, which a callback may call. AsyncGetCallTrace does not walk through the stub by which C2's
 * code calls the JVM. The thread is named: without a name, JDK 21 and later let no virtual thread of the JVM be mounted
 * meanwhile. The reference is freed when the callback returns.
 */
static void ask_jvm(const struct stay *stay, struct walk_slot *slot, struct duet_java_sample *java)
{
	struct asgct_frame *frames = slot_frames(slot);
	jvmtiFrameInfo *infos = (jvmtiFrameInfo *)frames;
	jthread self = NULL;
	jint count = 0;

	if ((*jvm.jvmti)->GetCurrentThread(jvm.jvmti, &self) ||
	    (*jvm.jvmti)->GetStackTrace(jvm.jvmti, self, 0, stay->java_depth, infos, &count)) {
		java->status = ASGCT_UNKNOWN_JAVA;
		return;
	}
	for (jint i = 0; i < count; i++) {
		jvmtiFrameInfo info = infos[i];

		frames[i] = (struct asgct_frame){
			.bci = info.location < 0 ? DUET_BCI_NATIVE : (jint)info.location, .method = info.method};
	}
	java->status = count;
	java->java_depth = (uint32_t)count;
	if (count >= stay->java_depth)
		java->flags |= DUET_JAVA_TRUNCATED;
}

static void begin_tapped(struct stay *stay, struct agent_walk *walk, const struct duet_java_sample *java,
			 const struct tap_sample *from)
{
	begin_sample(stay, &walk->sample, java);
	walk->sample.event = from->event;
	walk->sample.weight = from->weight;
	walk->sample.flags = from->is_off_cpu ? DUET_SAMPLE_OFF_CPU : 0;
	walk->sample.attribute_bytes = from->attribute_bytes;
	walk->attributes = from->attributes;
	walk->most_ns = DEEP_WALK_NS;
}

static void walk_tapped(struct stay *stay, struct walk_slot *slot, const struct duet_java_sample *java,
			const struct tap_sample *from, uintptr_t java_thread)
{
	begin_tapped(stay, &slot->walk, java, from);
	walk_caller(&slot->walk, stay, &slot->stack, java_thread);
	virtual_threads_mounted(&slot->walk.java.layout, java_thread, slot->walk.own.high,
				&slot->walk.sample.virtual_thread);
}

/* Returns true if the walk has left out frames of a virtual thread, which are not on the stack now. */
static bool has_frames_on_heap(const struct agent_walk *walk)
{
	for (uint32_t i = 0; i < walk->sample.id_depth; i++)
		if (walk->ids[i] == DUET_ID_ON_HEAP)
			return true;
	return false;
}

/* Walks the stack, and asks the JVM if necessary. Returns true if `java` is the second half of the sample. */
static bool walk_here(struct stay *stay, struct walk_slot *slot, struct duet_java_sample *java,
		      const struct tap_sample *from)
{
	struct duet_sample *sample = &slot->walk.sample;

	set_own_stack(&slot->walk);
	walk_tapped(stay, slot, java, from, jvm_current_thread());
	/* JVMTI has them all, without the carrier's */
	if (from->is_whole && (from->is_on_heap || has_frames_on_heap(&slot->walk)))
		sample->flags &= (uint16_t) ~(DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_WALKED);
	if (!needs_answer(sample))
		return false;
	java->pc = sample->user_pc;
	java->sp = sample->user_sp;
	java->cookie = sample->cookie;
	java->flags |= sample->virtual_thread.id ? DUET_JAVA_MOUNTED : 0;
	ask_jvm(stay, slot, java);
	sample->flags |= DUET_SAMPLE_SIGNALLED;
	return true;
}

static void count_time(const struct stay *stay, uint64_t from_ns)
{
	__atomic_fetch_add(&stay->ring.page->handler_ns, clock_ns() - from_ns, __ATOMIC_RELAXED);
}

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* of this library, set by the linker */
extern const char etext[] __attribute__((visibility("hidden")));

/* The agent's own callbacks call the JVM, which may allocate, so the thread may have a slot already. */
static struct walk_slot *slot_take_native(struct stay *stay, int tid)
{
	for (int i = 0; i < SLOT_TRIES; i++)
		if (__atomic_load_n(&slot_at(stay, (unsigned int)(tid + i) % SLOTS)->owner, __ATOMIC_RELAXED) == -tid)
			return NULL;
	return slot_take(stay, -tid);
}

static bool is_agents_own(const struct duet_sample *sample)
{
	for (uint32_t i = 0; i < sample->user_depth; i++)
		if (sample->stack[i] - (uintptr_t)__ehdr_start < (uintptr_t)etext - (uintptr_t)__ehdr_start)
			return true;
	return false;
}

/* Returns false if the agent itself led to the call. */
static bool walk_native(struct stay *stay, struct walk_slot *slot, const struct duet_java_sample *java,
			const struct tap_sample *from)
{
	struct duet_sample *sample = &slot->walk.sample;

	begin_tapped(stay, &slot->walk, java, from);
	set_own_stack(&slot->walk);
	walk_native_caller(&slot->walk, stay, &slot->stack, from->caller, from->callee);
	if (is_agents_own(sample))
		return false;
	virtual_threads_mounted(&slot->walk.java.layout, jvm_current_thread(), false, &sample->virtual_thread);
	return true;
}

static struct walk_slot *slot_take_tapped(struct stay *stay, const struct tap_sample *from, int tid)
{
	return from->caller ? slot_take_native(stay, tid) : slot_take(stay, -tid);
}

/* Walks the stack. Returns false if there is no sample. *ret_half: size of `java`, if that is the other half, or 0. */
static bool walk_either(struct stay *stay, struct walk_slot *slot, struct duet_java_sample *java,
			const struct tap_sample *from, size_t *ret_half)
{
	*ret_half = 0;
	if (from->caller)
		return walk_native(stay, slot, java, from);
	if (walk_here(stay, slot, java, from))
		*ret_half = java_bytes(java);
	return true;
}

void sample_here(struct stay *stay, const struct tap_sample *from)
{
	struct duet_java_sample java = {.time_ns = clock_ns(), .tid = own_tid()};
	struct walk_slot *slot = slot_take_tapped(stay, from, (int)java.tid);
	size_t half;

	if (!slot)
		return;
	slot->walk.is_kept = false;
	if (walk_either(stay, slot, &java, from, &half)) {
		if (half)
			write_java(stay, slot, &java);
		write_walk(stay, &slot->walk, from->waits);
	}
	slot_put(slot);
	count_time(stay, java.time_ns);
}

/* The loader takes the method for an interpreted frame, which has the jmethodID in the place of an address. */
static void put_method(struct agent_walk *walk, uintptr_t method)
{
	struct duet_sample *sample = &walk->sample;

	sample->flags |= DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_WALKED;
	sample->walk_end = DUET_WALK_ENTRY;
	sample->user_depth = sample->id_depth = 1;
	sample->stack[0] = method;
	walk->ids[0] = DUET_ID_INTERPRETED;
}

void sample_method(struct stay *stay, const struct tap_sample *from, uintptr_t method)
{
	struct duet_java_sample java = {.time_ns = clock_ns(), .tid = own_tid()};
	struct walk_slot *slot = slot_take(stay, -(int)java.tid);

	if (!slot)
		return;
	begin_tapped(stay, &slot->walk, &java, from);
	put_method(&slot->walk, method);
	write_walk(stay, &slot->walk, from->waits);
	slot_put(slot);
}

void sample_without_stack(struct stay *stay, const struct tap_sample *from, uint64_t time_ns)
{
	struct duet_java_sample java = {.time_ns = time_ns, .tid = own_tid()};
	const struct duet_jvm_layout *layout = __atomic_load_n(&stay->layout, __ATOMIC_ACQUIRE);
	uint32_t bytes = (uint32_t)sizeof(struct duet_sample) + from->attribute_bytes;
	struct duet_ring_record *record = reserve_sample(stay, bytes, from->waits ? SAMPLE_ROOM_MS : 0);
	struct duet_sample *sample = (struct duet_sample *)(record + 1);

	if (!record)
		return;
	begin_sample(stay, sample, &java);
	sample->head.size = bytes;
	sample->event = from->event;
	sample->weight = from->weight;
	sample->attribute_bytes = from->attribute_bytes;
	sample->flags = DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_REGS | DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_WALKED;
	if (from->is_off_cpu)
		sample->flags |= DUET_SAMPLE_OFF_CPU;
	sample->walk_end = DUET_WALK_ENTRY;
	if (layout)
		virtual_threads_mounted(layout, jvm_current_thread(), false, &sample->virtual_thread);
	if (from->attribute_bytes)
		memcpy(sample + 1, from->attributes, from->attribute_bytes);
	duet_ring_commit(record, DUET_AGENT_SAMPLE, bytes);
}

struct sample_thread sample_own_thread(void)
{
	return (struct sample_thread){jvm_current_thread(), own_tid()};
}

/* Returns false if the thread has continued, so that the copy of its stack may be of two moments. */
static bool walk_blocked(struct stay *stay, struct walk_slot *slot, const struct duet_java_sample *java,
			 const struct tap_sample *from, uintptr_t java_thread)
{
	walk_tapped(stay, slot, java, from, java_thread);
	slot->walk.sample.context = (struct duet_context){0}; /* it is that of the calling thread */
	return slot->walk.sample.flags & DUET_SAMPLE_WALKED && walk_caller_is_there(&slot->walk, java_thread);
}

void sample_blocked(struct stay *stay, const struct tap_sample *from, const struct sample_thread *thread,
		    uint64_t time_ns)
{
	struct duet_java_sample java = {.time_ns = time_ns, .tid = thread->tid};
	struct walk_slot *slot = slot_take(stay, -(int)thread->tid);

	if (!slot)
		return;
	slot->walk.is_kept = true; /* no part may be written yet: the sample may be dropped */
	slot->walk.own.low = slot->walk.own.high = 0; /* that thread may end, and its stack with it */
	if (walk_blocked(stay, slot, &java, from, thread->java_thread))
		write_walk(stay, &slot->walk, false);
	else
		duet_ring_count(stay->ring.page, DUET_AGENT_WENT_ON);
	slot_put(slot);
}

/* ---- samples that are kept until their event has ended ---- */

/* Copies what was walked; `half` bytes of `java` are the other half. */
static struct sample_kept *copy_kept(struct walk_slot *slot, const struct duet_java_sample *java, size_t half,
				     void *(*new_memory)(size_t bytes))
{
	size_t bytes = walk_bytes(&slot->walk);
	struct sample_kept *kept = new_memory(sizeof(*kept) + bytes + half);

	if (!kept)
		return NULL;
	*kept = (struct sample_kept){.begin_ns = java->time_ns, .bytes = (uint32_t)bytes, .half = (uint32_t)half};
	slot->walk.sample.head.size = kept->bytes;
	walk_write(&slot->walk, (unsigned char *)(kept + 1));
	if (half)
		copy_java((unsigned char *)(kept + 1) + bytes, slot, java);
	return kept;
}

struct sample_kept *sample_keep(struct stay *stay, const struct tap_sample *from, void *(*new_memory)(size_t bytes))
{
	struct duet_java_sample java = {.time_ns = clock_ns(), .tid = own_tid()};
	struct walk_slot *slot = slot_take_tapped(stay, from, (int)java.tid);
	struct sample_kept *kept = NULL;
	size_t half;

	if (!slot)
		return NULL;
	slot->walk.is_kept = true;
	if (walk_either(stay, slot, &java, from, &half))
		kept = copy_kept(slot, &java, half, new_memory);
	slot_put(slot);
	count_time(stay, java.time_ns);
	return kept;
}

struct sample_kept *sample_keep_sleeper(struct stay *stay, const struct tap_sample *from,
					const struct sample_thread *thread, const struct regs *at,
					void *(*new_memory)(size_t bytes))
{
	struct duet_java_sample java = {.time_ns = clock_ns(), .tid = thread->tid};
	struct walk_slot *slot = slot_take(stay, -(int)own_tid());
	struct sample_kept *kept;

	if (!slot)
		return NULL;
	slot->walk.is_kept = true;
	slot->walk.own.low = slot->walk.own.high = 0; /* as in sample_blocked() */
	begin_tapped(stay, &slot->walk, &java, from);
	slot->walk.sample.context = (struct duet_context){0};
	walk_sleeper(&slot->walk, stay, &slot->stack, thread->java_thread, at);
	virtual_threads_mounted(&slot->walk.java.layout, thread->java_thread, false,
				&slot->walk.sample.virtual_thread);
	kept = copy_kept(slot, &java, 0, new_memory);
	slot_put(slot);
	return kept;
}

static void write_kept(struct stay *stay, enum duet_agent_record_type type, const void *from, uint32_t bytes,
		       uint32_t room_ms)
{
	struct duet_ring_record *record = reserve_sample(stay, bytes, room_ms);

	if (!record)
		return;
	memcpy(record + 1, from, bytes);
	duet_ring_commit(record, type, bytes);
}

void sample_write_kept(struct stay *stay, struct sample_kept *kept, uint64_t end_ns, uint64_t weight,
		       uint32_t room_ms)
{
	struct duet_sample *sample = (struct duet_sample *)(kept + 1);
	struct duet_java_sample *java = (struct duet_java_sample *)((unsigned char *)sample + kept->bytes);

	sample->head.time_ns = end_ns;
	sample->weight = weight;
	newest_note(sample->ns_tid, end_ns);
	if (kept->half) {
		java->time_ns = end_ns;
		write_kept(stay, DUET_AGENT_JAVA_SAMPLE, java, kept->half, room_ms);
	}
	write_kept(stay, DUET_AGENT_SAMPLE, sample, kept->bytes, room_ms);
}

/* ---- the handler ---- */

static void sample_take(struct stay *stay, uint64_t time_ns, const siginfo_t *info, const ucontext_t *context)
{
	struct duet_java_sample java = {.time_ns = time_ns, .tid = own_tid()};
	struct walk_slot *slot = slot_take(stay, (int)java.tid);

	if (slot && stay->engine->standalone) {
		take_standalone(stay, slot, &java, info, context);
	} else if (slot) {
		java.cookie = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
		answer(stay, slot, &java, context);
	}
	if (slot)
		slot_put(slot);
	if (stay->engine->handled)
		stay->engine->handled((int)java.tid);
}

void sample_handler(int signo, siginfo_t *info, void *context)
{
	uint64_t time_ns = clock_ns();
	int saved_errno = errno;
	STAY(stay);

	if (stay && signo == stay->signo)
		sample_take(stay, time_ns, info, regs_interrupted(context));
	if (stay)
		__atomic_fetch_add(&stay->ring.page->handler_ns, clock_ns() - time_ns, __ATOMIC_RELAXED);
	errno = saved_errno;
}
