/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes one sample of the current thread and writes it to the ring, in a program of any kind. struct sample_from has
 * what differs between the kinds.
 */
#pragma once

#include "context.bpf.h"
#include "filter.bpf.h"
#include "stack.bpf.h"

/* Returns the index of the event that triggered this run of a program that may have several. */
static __always_inline u32 sample_event(void *ctx, enum duet_program program)
{
	if (duet_config.uses_index)
		return bpf_get_attach_cookie(ctx) & (DUET_MAX_EVENTS - 1);
	return duet_config.event_of[program];
}

/* Returns the interval of an event that is_chosen. */
static __always_inline u64 sample_interval(u32 event)
{
	u64 interval = (u64)duet_event(event)->gap * duet_every;

	return interval < UINT32_MAX ? interval : UINT32_MAX;
}

/*
 * Returns 32 random bits: the upper half of Marsaglia's xorshift64. bpf_get_prandom_u32() takes 40 ns, a fifth of what
 * a context switch costs with off-CPU time.
 */
static __always_inline u64 sample_random(u32 event)
{
	struct duet_cost *cost = duet_cost(event);
	u64 random = cost ? cost->random : 0;

	if (!random)
		random = (u64)bpf_get_prandom_u32() << 32 | 1;
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	if (cost)
		cost->random = random;
	return random >> 32;
}

/*
 * Returns the weight of a sample of this amount, for an event that is_chosen. An amount of the interval or more is its
 * own weight. A smaller amount has the weight of the interval with a probability in proportion to the amount, else 0.
 */
static __always_inline u64 sample_weigh(u32 event, u64 amount)
{
	u64 interval = sample_interval(event);

	if (amount >= interval)
		return amount;
	return sample_random(event) * interval >> 32 < amount ? interval : 0;
}

/* `leader` is that of the thread's process, see filter_leader(). */
static __always_inline void sample_fill(struct duet_sample *sample, struct task_struct *task,
					struct task_struct *leader, const struct filter_ids *ids, u64 now_ns)
{
	__builtin_memset(sample, 0, sizeof(*sample));
	duet_begin(&sample->head, DUET_RECORD_SAMPLE, 0, now_ns, ids->tgid, ids->tid);
	sample->ns_tgid = ids->ns_tgid;
	sample->ns_tid = ids->ns_tid;
	sample->cpu = bpf_get_smp_processor_id() + 1;
	if (duet_config.options.policies)
		sample->policy = BPF_CORE_READ(task, policy) + 1;
	sample->start_ns = BPF_CORE_READ(leader, start_boottime);
	sample->cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	bpf_core_read_str(sample->process_comm, sizeof(sample->process_comm), &leader->comm);
}

/* Returns true if one tick in a number becomes a sample: the event is no clock, and its program does not choose. */
static __always_inline bool sample_is_counted(u32 event)
{
	return !duet_event(event)->is_clock && !duet_event(event)->is_chosen;
}

/*
 * Returns the number of ticks until the next sample of such an event. It is evenly distributed from 1 to 2 * mean - 1.
 * A fixed gap could keep step with a periodic pattern, such as the context switches of two threads that take turns.
 */
static __always_inline u64 sample_gap(u32 event)
{
	u64 mean = (u64)duet_event(event)->gap * duet_every;

	return mean > 1 ? 1 + bpf_get_prandom_u32() % (2 * mean - 1) : 1;
}

/*
 * Returns the number of ticks that a sample taken now accounts for: all ticks of this event on this CPU since its
 * previous sample. So weights still add up to the total after the rate has changed. Returns 0 if this tick must not be
 * sampled.
 */
static __always_inline u64 sample_ticks(u32 event, u64 now_ns)
{
	struct duet_cost *cost = duet_cost(event);
	u64 ticks, gap;

	if (!cost)
		return 0;
	cost->ticks++;
	ticks = ++cost->pending;
	gap = sample_is_counted(event) ? cost->gap : duet_event(event)->is_clock ? duet_every : 0;
	if (ticks < gap || now_ns < cost->pause_until_ns)
		return 0;
	cost->pending = 0;
	if (sample_is_counted(event))
		cost->gap = sample_gap(event);
	return ticks;
}

/* Takes the scratch for a sample. If there is none, the ticks are given back: the next sample accounts for them. */
static __always_inline struct duet_scratch *sample_room(u32 event, u64 ticks)
{
	struct duet_scratch *room = scratch_take();
	struct duet_cost *cost;

	if (room)
		return room;
	duet_count(DUET_BPF_NO_LEVEL);
	cost = duet_cost(event);
	if (cost)
		cost->pending += ticks;
	return NULL;
}

/*
 * Starts the sample of the current thread: everything except its user stack. Returns NULL if there is no sample. Not
 * inline, so that its BPF stack frame does not exist during the walk: all frames together may have 512 bytes. For the
 * same reason the fields of struct sample_from are arguments, which are in registers.
 */
static __noinline struct duet_scratch *sample_begin(void *ctx, const bpf_user_pt_regs_t *regs, u64 began_ns, u32 event,
						    enum stack_kernel_source kernel)
{
	const struct sample_from from = {ctx, regs, began_ns, event, kernel};
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct filter_ids ids = {};
	struct task_struct *leader;
	struct duet_scratch *room;
	u64 ticks;

	if (!filter_pass(task, &ids, BPF_CORE_READ(task, group_leader, start_boottime)))
		return NULL;
	leader = filter_leader(task, &ids);
	ticks = sample_ticks(event, began_ns);
	room = ticks ? sample_room(event, ticks) : NULL;
	if (!room)
		return NULL;
	sample_fill(&room->sample, task, leader, &ids, began_ns);
	room->sample.event = event;
	room->sample.weight = ticks * duet_event(event)->tick_weight;
	if (stack_in_kernel(&from))
		room->sample.flags |= DUET_SAMPLE_KERNEL;
	if (filter_jvm(ids.tgid, room->sample.start_ns))
		room->sample.flags |= DUET_SAMPLE_JVM;
	stack_user_regs(&from, task, room);
	stack_fill_kernel(&from, room);
	context_of(room);
	filter_mark_seen(ids.tgid);
	return room;
}

/* Takes the sample with its user stack. Returns NULL if there is none. End with sample_end(). */
static __always_inline struct duet_scratch *sample_take(const struct sample_from *from)
{
	struct duet_scratch *room =
		sample_begin(from->ctx, from->regs, from->began_ns, from->event, from->kernel);

	if (room)
		stack_fill_user(room);
	return room;
}

/*
 * Adds the clock ticks that fell due during this run to its sample. The kernel skips them: it restarts the timer after
 * the run. It charges the run to the interrupted thread, so the ticks belong to this sample. A tick may also be late
 * because the hypervisor had the CPU; that time belongs to no thread and is not added.
 */
static __always_inline void sample_add_missed(struct duet_sample *sample, u64 now_ns)
{
	const volatile struct duet_event *event = duet_event(sample->event);
	struct duet_cost *cost = duet_cost(sample->event);
	u64 missed;

	if (!event->is_clock)
		return;
	missed = (now_ns - sample->head.time_ns) / event->tick_weight;
	if (cost)
		cost->ticks += missed;
	sample->weight += missed * event->tick_weight;
}

#define SAMPLE_BURST_NS 1000000 /* runs and pauses that are due, together, before a pause begins */

/*
 * Leaves the threads at least half of the CPU, however deep the stacks and however many the ticks. Each run adds a
 * pause as long as itself on average. Pauses are postponed until runs and pauses together exceed SAMPLE_BURST_NS. The
 * length of each pause is random, so that pauses do not keep step with threads that take turns.
 */
static __always_inline void sample_pause(struct duet_cost *cost, u64 began_ns, u64 run_ns)
{
	u64 from_ns = began_ns - SAMPLE_BURST_NS;

	if (cost->pause_until_ns > from_ns)
		from_ns = cost->pause_until_ns;
	cost->pause_until_ns = from_ns + run_ns + bpf_get_prandom_u32() % (2 * (u32)run_ns + 1);
}

/* Records what the run has cost, without the kernel's work before and after it. */
static __always_inline void sample_cost(const struct sample_from *from, bool made_sample)
{
	u64 run_ns = bpf_ktime_get_ns() - from->began_ns, step = run_ns >> DUET_RUN_TIME_SHIFT;
	u32 key = step < DUET_RUN_TIMES ? step : DUET_RUN_TIMES - 1;
	u64 *count = made_sample ? bpf_map_lookup_elem(&run_times, &key) : NULL;
	struct duet_cost *cost = duet_cost(from->event);

	if (!cost)
		return;
	cost->runs++;
	cost->run_ns += run_ns;
	if (run_ns > cost->longest_ns)
		cost->longest_ns = run_ns;
	if (!count)
		return;
	(*count)++;
	sample_pause(cost, from->began_ns, run_ns);
}

#define SAMPLE_WAKE_NS 5000000 /* code outside of all files must not wake the loader for every sample */

/*
 * Wakes the loader when a sample has code in no known mapping. The sooner the loader reads the process's mappings
 * again, the fewer samples are walked without them.
 */
static __always_inline u64 sample_wakeup_flag(struct duet_scratch *room)
{
	u64 now_ns = room->sample.head.time_ns;

	if (!(room->sample.flags & DUET_SAMPLE_UNKNOWN_CODE) || now_ns - room->woken_ns < SAMPLE_WAKE_NS)
		return duet_wakeup_flag();
	room->woken_ns = now_ns;
	return BPF_RB_FORCE_WAKEUP;
}

/* Lets the sampled thread see that it was sampled. */
static __always_inline void sample_note(const struct duet_sample *sample)
{
	u32 key = sample->ns_tid & (DUET_NEWEST_SLOTS - 1);
	u64 *newest = duet_config.notes_newest ? bpf_map_lookup_elem(&newest_samples, &key) : NULL;

	if (newest)
		*newest = sample->head.time_ns;
}

/*
 * Writes the sample to the ring, which is complete and has this size but for the attributes of its context, and gives
 * the scratch back.
 */
static __always_inline void sample_emit(struct duet_scratch *room, u32 bytes, u64 wakeup_flag)
{
	if (room->context_bytes)
		bytes = context_append(room, bytes);
	room->sample.event = duet_event(room->sample.event)->shown_as;
	room->sample.head.size = bytes;
	duet_emit(&room->sample.head, bytes, wakeup_flag);
	sample_note(&room->sample);
	scratch_release(room);
}

/* Completes the sample, writes it to the ring, and gives the scratch back. */
static __always_inline void sample_end(struct duet_scratch *room)
{
	u32 bytes;

	sample_add_missed(&room->sample, bpf_ktime_get_ns());
	bytes = sizeof(room->sample) + stack_bytes(room);
	sample_emit(room, bytes, sample_wakeup_flag(room));
}

/* The same, with attributes of that size, which the caller has built outside of the sample. */
static __always_inline void sample_end_with(struct duet_scratch *room, const void *attributes, u32 more)
{
	u32 bytes;

	sample_add_missed(&room->sample, bpf_ktime_get_ns());
	bytes = sizeof(room->sample) + stack_bytes(room);
	/* The mask is for the verifier. The asm hides the value, else the compiler would remove the mask. */
	__asm__("" : "+r"(more));
	more &= DUET_MAX_BPF_ATTRIBUTE_BYTES - 1;
	if (bytes > sizeof(room->room) - DUET_MAX_BPF_ATTRIBUTE_BYTES - CONTEXT_ROOM)
		more = 0;
	if (more && bpf_probe_read_kernel(room->room + bytes, more, attributes))
		more = 0;
	room->sample.attribute_bytes = more;
	sample_emit(room, bytes + more, sample_wakeup_flag(room));
}

/* Takes a sample of a thread that is not signalled, and writes it to the ring. */
static __always_inline int sample_take_one(const struct sample_from *from)
{
	struct duet_scratch *room = sample_take(from);

	if (room)
		sample_end(room);
	sample_cost(from, room != NULL);
	return 0;
}

/*
 * Lets the next sample account for the amount, if it is chosen. Returns 1 + what it accounts for then, or 0. This and
 * the next function are not inline: the walk needs the BPF stack.
 */
static __noinline u64 sample_add_pending(u32 event, u64 amount)
{
	u64 weight = sample_weigh(event, amount);
	struct duet_cost *cost = weight ? duet_cost(event) : NULL;

	if (!cost)
		return 0;
	cost->pending += weight;
	return cost->pending--; /* this run is the last tick */
}

/* `pending`: from sample_add_pending(). Without a sample because of the filter, the amount is nobody's. */
static __noinline int sample_end_chosen(u64 began_ns, u32 event, u64 amount, u64 pending, bool made_sample)
{
	struct duet_cost *cost = duet_cost(event);
	u64 interval = sample_interval(event), weight = amount < interval ? interval : amount;

	if (cost && cost->pending == pending - 1)
		cost->pending = pending > weight ? pending - weight : 0;
	sample_cost(&(struct sample_from){.began_ns = began_ns, .event = event}, made_sample);
	return 0;
}

/* Takes and writes a sample of this amount, if it is chosen, see sample_weigh(). */
static __always_inline int sample_take_chosen(const struct sample_from *from, u64 amount)
{
	u64 pending = sample_add_pending(from->event, amount);
	struct duet_scratch *room;

	if (!pending)
		return 0;
	room = sample_take(from);
	if (room)
		sample_end(room);
	return sample_end_chosen(from->began_ns, from->event, amount, pending, room != NULL);
}
