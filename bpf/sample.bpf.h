/* SPDX-License-Identifier: GPL-2.0-only */
/* One sample, from the interrupted thread to the ring: what every mode does around its own signal. */
#ifndef DUET_SAMPLE_BPF_H
#define DUET_SAMPLE_BPF_H

#include "filter.bpf.h"
#include "stack.bpf.h"

static __always_inline void sample_fill(struct duet_sample *sample, struct task_struct *task,
					const struct filter_ids *ids, u64 start_ns, u64 ticks, u64 now_ns)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	__builtin_memset(sample, 0, sizeof(*sample));
	sample->head.type = DUET_RECORD_SAMPLE;
	sample->head.version = DUET_RECORD_VERSION;
	sample->head.time_ns = now_ns;
	sample->head.tgid = ids->tgid;
	sample->head.tid = ids->tid;
	sample->ns_tgid = ids->ns_tgid;
	sample->ns_tid = ids->ns_tid;
	sample->start_ns = start_ns;
	sample->cgroup_id = bpf_get_current_cgroup_id();
	sample->weight_ns = ticks * duet_config.interval_ns;
	sample->cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	bpf_core_read_str(sample->process_comm, sizeof(sample->process_comm), &leader->comm);
}

/*
 * How many ticks the sample of this one stands for: all of this CPU since its last sample, so that weights add up
 * exactly also where the rate has changed in between. 0: it is not this one's turn.
 */
static __always_inline u64 sample_ticks(u64 now_ns)
{
	struct duet_cost *cost = duet_cost();
	u64 ticks;

	if (!cost)
		return 0;
	cost->ticks++;
	ticks = ++cost->pending;
	if (ticks < duet_every || now_ns < cost->rest_until_ns)
		return 0;
	cost->pending = 0;
	return ticks;
}

/*
 * The sample of the current thread without its user stack. False when it is not wanted. Not inline: what it keeps on
 * the BPF stack must not stand there during the walk, 512 bytes are for all.
 */
static __noinline bool sample_begin(struct bpf_perf_event_data *ctx, u64 now_ns)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u64 start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	struct filter_ids ids = {};
	struct duet_scratch *room;
	u64 ticks;

	if (!filter_pass(task, &ids, start_ns))
		return false;
	ticks = sample_ticks(now_ns);
	if (!ticks)
		return false;
	room = scratch_get();
	if (!room)
		return false;
	sample_fill(&room->sample, task, &ids, start_ns, ticks, now_ns);
	if (stack_in_kernel(ctx))
		room->sample.flags |= DUET_SAMPLE_KERNEL;
	if (filter_jvm(ids.tgid, start_ns))
		room->sample.flags |= DUET_SAMPLE_JVM;
	stack_user_regs(ctx, task, room);
	stack_fill_kernel(ctx, room);
	filter_mark_seen(ids.tgid);
	return true;
}

/* The rest of it; NULL when it is not wanted. */
static __always_inline struct duet_sample *sample_take(struct bpf_perf_event_data *ctx, u64 now_ns)
{
	struct duet_scratch *room = sample_begin(ctx, now_ns) ? scratch_get() : NULL;

	if (!room)
		return NULL;
	stack_fill_user(room);
	return &room->sample;
}

/*
 * Ticks due during the run do not come any more: the kernel's timer goes on behind it. The kernel charges the run to
 * the thread that was interrupted, so they are of this sample. Nothing is known of other ticks that do not come: most
 * are late because the hypervisor had the CPU, which is nobody's time.
 */
static __always_inline void sample_add_missed(struct duet_sample *sample, u64 now_ns)
{
	u64 missed = (now_ns - sample->head.time_ns) / duet_config.interval_ns;
	struct duet_cost *cost = duet_cost();

	if (cost)
		cost->ticks += missed;
	sample->weight_ns += missed * duet_config.interval_ns;
}

/* Whatever the stack, the thread that it is of has half of the time. */
static __always_inline void sample_rest(struct duet_cost *cost, u64 began_ns, u64 run_ns)
{
	if (run_ns > duet_config.interval_ns / 2)
		cost->rest_until_ns = began_ns + 2 * run_ns;
}

/* What the run has cost, without the kernel's part before and behind it. */
static __always_inline void sample_cost(u64 began_ns, bool made_sample)
{
	u64 run_ns = bpf_ktime_get_ns() - began_ns, step = run_ns >> DUET_RUN_TIME_SHIFT;
	u32 key = step < DUET_RUN_TIMES ? step : DUET_RUN_TIMES - 1;
	u64 *count = made_sample ? bpf_map_lookup_elem(&run_times, &key) : NULL;
	struct duet_cost *cost = duet_cost();

	if (!cost)
		return;
	cost->runs++;
	cost->run_ns += run_ns;
	if (run_ns > cost->longest_ns)
		cost->longest_ns = run_ns;
	if (!count)
		return;
	(*count)++;
	sample_rest(cost, began_ns, run_ns);
}

#define SAMPLE_WAKE_NS 5000000 /* a thread in code of no file must not wake the loader for every sample */

/* New code: the sooner the loader reads the process's mappings again, the fewer samples are walked without them. */
static __always_inline u64 sample_wakeup_flag(struct duet_scratch *room)
{
	u64 now_ns = room->sample.head.time_ns;

	if (!(room->sample.flags & DUET_SAMPLE_UNKNOWN_CODE) || now_ns - room->woken_ns < SAMPLE_WAKE_NS)
		return duet_wakeup_flag();
	room->woken_ns = now_ns;
	return BPF_RB_FORCE_WAKEUP;
}

/* Hands the sample over. */
static __always_inline void sample_end(void)
{
	struct duet_scratch *room = scratch_get();
	u32 bytes;

	if (!room)
		return;
	sample_add_missed(&room->sample, bpf_ktime_get_ns());
	bytes = sizeof(room->sample) + stack_bytes(room);
	room->sample.head.size = bytes;
	duet_emit(&room->sample.head, bytes, sample_wakeup_flag(room));
}

#endif
