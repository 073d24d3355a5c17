/* SPDX-License-Identifier: GPL-2.0-only */
/* One sample, from the interrupted thread to the ring: what every mode does around its own signal. */
#ifndef DUET_SAMPLE_BPF_H
#define DUET_SAMPLE_BPF_H

#include "filter.bpf.h"
#include "stack.bpf.h"

static __always_inline void sample_fill(struct duet_sample *sample, struct task_struct *task,
					const struct filter_ids *ids, u64 start_ns)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	__builtin_memset(sample, 0, sizeof(*sample));
	sample->head.type = DUET_RECORD_SAMPLE;
	sample->head.version = DUET_RECORD_VERSION;
	sample->head.time_ns = bpf_ktime_get_ns();
	sample->head.tgid = ids->tgid;
	sample->head.tid = ids->tid;
	sample->ns_tgid = ids->ns_tgid;
	sample->ns_tid = ids->ns_tid;
	sample->start_ns = start_ns;
	sample->cgroup_id = bpf_get_current_cgroup_id();
	sample->weight_ns = duet_config.interval_ns;
	sample->cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	bpf_core_read_str(sample->process_comm, sizeof(sample->process_comm), &leader->comm);
}

/* The sample of the current thread with its stacks; NULL when it is not wanted. */
static __always_inline struct duet_sample *sample_begin(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u64 start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	struct filter_ids ids = {};
	struct duet_scratch *room;

	if (!filter_pass(task, &ids, start_ns))
		return NULL;
	room = scratch_get();
	if (!room)
		return NULL;
	sample_fill(&room->sample, task, &ids, start_ns);
	if (stack_in_kernel(ctx))
		room->sample.flags |= DUET_SAMPLE_KERNEL;
	if (filter_jvm(ids.tgid, start_ns))
		room->sample.flags |= DUET_SAMPLE_JVM;
	stack_user_regs(ctx, task, room);
	stack_fill(ctx, room);
	filter_mark_seen(ids.tgid);
	return &room->sample;
}

/* Hands the sample over. */
static __always_inline void sample_end(void)
{
	struct duet_scratch *room = scratch_get();
	u32 bytes;

	if (!room)
		return;
	bytes = sizeof(room->sample) + stack_bytes(room);
	room->sample.head.size = bytes;
	duet_emit(&room->sample.head, bytes, duet_wakeup_flag());
}

#endif
