// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for threads that sleep over an edge: the end of the recording or of a window. Such a thread cannot take its
 * sample itself. The loader runs these programs for every thread of the host: they are iterators. First offcpu_look
 * shows the threads' kernel stacks and registers, and the loader walks their user stacks from outside, once for each
 * sleep. Then offcpu_report_edge reports the time slept up to the edge, and makes the rest of the sleep begin there.
 */
#include "core.bpf.h"
#include "offcpu.bpf.h"
#include "sample.bpf.h"

/* A thread that ends has no user stack any more. */
static __always_inline bool edge_is_asleep(struct task_struct *task)
{
	return !task->on_cpu && task->mm && !(task->flags & PF_EXITING) && offcpu_is_wanted(task) &&
	       filter_is_wanted(task);
}

static __always_inline u64 edge_switches(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* The kernel gave the pointers to the program, so fields are read without a helper. */
static __always_inline void edge_fill_ids(struct duet_sample *sample, struct task_struct *task,
					  const struct filter_ids *ids)
{
	struct task_struct *leader = task->group_leader;

	duet_begin(&sample->head, DUET_RECORD_SAMPLE, 0, 0, ids->tgid, ids->tid);
	sample->ns_tgid = ids->ns_tgid;
	sample->ns_tid = ids->ns_tid;
	sample->event = duet_event(offcpu_event())->shown_as;
	sample->start_ns = leader->start_boottime;
	sample->cgroup_id = task->cgroups->dfl_cgrp->kn->id;
	bpf_core_read_str(sample->comm, sizeof(sample->comm), &task->comm);
	bpf_core_read_str(sample->process_comm, sizeof(sample->process_comm), &leader->comm);
}

/*
 * The registers go through the scratch of a walk, as in a walk in BPF. The pc is 0 in threads that the kernel has made
 * for a process, as for io_uring: they have no user mode.
 */
static __always_inline void edge_fill_regs(struct duet_sleeper *sleeper, struct duet_scratch *room,
					   struct task_struct *task)
{
	struct pt_regs *regs = task_regs_of(task);
	const bpf_user_pt_regs_t *copy = (void *)room->java.head;

	unwind_java_regs_core(&room->java, regs);
	sleeper->pc = sleeper->sample.user_pc = PT_REGS_IP(copy);
	sleeper->sp = sleeper->sample.user_sp = PT_REGS_SP(copy);
	sleeper->fp = PT_REGS_FP(copy);
	sleeper->lr = room->java.regs[DUET_FRAME_LINK];
	bpf_probe_read_kernel(sleeper->regs, sizeof(room->java.regs), room->java.regs);
	sleeper->sample.flags = DUET_SAMPLE_KERNEL | offcpu_flags(task, regs);
	if (sleeper->pc)
		sleeper->sample.flags |= DUET_SAMPLE_USER_REGS;
}

/* Returns the bytes of the kernel stack, which follows the sample. */
static __always_inline u32 edge_fill_kernel(struct duet_sleeper *sleeper, struct task_struct *task)
{
	u32 depth;

	if (!duet_config.kernel_stack_depth)
		return 0;
	depth = stack_of_task(task, sleeper->sample.stack);
	if (!depth)
		duet_count(DUET_BPF_NO_KERNEL_STACK);
	if (depth > DUET_MAX_STACK)
		depth = DUET_MAX_STACK;
	sleeper->sample.kernel_depth = depth;
	return depth * sizeof(u64);
}

/*
 * Without the stacks if the thread is shown for its process alone: then it need not sleep, and may have none. Returns
 * false if there is no room for the record now: then the kernel runs the program again for this thread.
 */
static __always_inline bool edge_show(struct bpf_iter__task *ctx, struct duet_scratch *room, struct task_struct *task,
				      const struct filter_ids *ids)
{
	struct duet_sleeper *sleeper = (struct duet_sleeper *)room->room;
	u32 bytes = sizeof(*sleeper);

	__builtin_memset(sleeper, 0, sizeof(*sleeper));
	sleeper->switches = edge_switches(task);
	sleeper->tid = task->pid;
	edge_fill_ids(&sleeper->sample, task, ids);
	if (!duet_look_leaders) {
		edge_fill_regs(sleeper, room, task);
		bytes += edge_fill_kernel(sleeper, task);
	}
	sleeper->sample.head.size = bytes - __builtin_offsetof(struct duet_sleeper, sample);
	return !bpf_seq_write(ctx->meta->seq, sleeper, bytes);
}

/* Returns the note about a thread that has slept since before the recording, or NULL if there is no room for one. */
static __always_inline struct offcpu_parked *edge_parked(struct task_struct *task)
{
	struct offcpu_parked *parked = offcpu_find_parked(task), none = {};
	u32 tid = task->pid;

	if (parked || task->start_time >= duet_started_ns)
		return parked;
	none.start_ns = task->start_time;
	bpf_map_update_elem(&offcpu_parked, &tid, &none, BPF_ANY);
	return offcpu_find_parked(task);
}

/* Like filter_identify(), which reads all with a helper. Most threads are in the initial pid namespace. */
static __always_inline bool edge_identify(struct task_struct *task, struct filter_ids *ids)
{
	if (duet_config.pidns_inum || task->thread_pid->level)
		return filter_identify(task, task_ids(task), ids);
	ids->tgid = ids->ns_tgid = task->tgid;
	ids->tid = ids->ns_tid = task->pid;
	return true;
}

/* Returns true for the first thread of a process that has not ended, though that thread may have. */
static __always_inline bool edge_is_leader(struct task_struct *task)
{
	return task->pid == task->tgid && !(task->flags & PF_KTHREAD) && task->signal->live.counter > 0 &&
	       offcpu_is_wanted(task) && filter_is_wanted(task);
}

static __always_inline void edge_preview(struct bpf_iter__task *ctx, struct task_struct *task)
{
	struct filter_ids ids = {};
	struct duet_scratch *room;

	if (!edge_identify(task, &ids))
		return;
	room = scratch_take();
	if (!room)
		return;
	(void)edge_show(ctx, room, task, &ids);
	scratch_release(room);
}

/* Shows the thread, if it has slept since `began_ns`. *seen_switches is of its offcpu_thread or offcpu_parked. */
static __always_inline void edge_look(struct bpf_iter__task *ctx, struct task_struct *task, u64 *seen_switches,
				      u64 began_ns)
{
	struct filter_ids ids = {};
	struct duet_scratch *room;

	if ((*seen_switches == edge_switches(task) + 1 && !duet_look_again) ||
	    !offcpu_is_length(began_ns, bpf_ktime_get_ns()) || !edge_identify(task, &ids))
		return;
	room = scratch_take();
	if (!room)
		return;
	if (edge_show(ctx, room, task, &ids))
		*seen_switches = edge_switches(task) + 1;
	scratch_release(room);
}

SEC("?iter/task")
int offcpu_look(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_thread *thread;
	struct offcpu_parked *parked;

	if (!task)
		return 0;
	if (duet_look_leaders) {
		if (edge_is_leader(task))
			edge_preview(ctx, task);
		return 0;
	}
	if (!edge_is_asleep(task))
		return 0;
	thread = offcpu_state(task, false);
	parked = thread ? NULL : edge_parked(task);
	if (parked) {
		edge_look(ctx, task, &parked->seen_switches, duet_started_ns);
		return 0;
	}
	thread = offcpu_sleeper(task);
	if (thread)
		edge_look(ctx, task, &thread->seen_switches, thread->began_ns);
	return 0;
}

/*
 * Writes the report of a sleep up to the edge. `slept` has the time of which the thread waited for a CPU, and the
 * weight that was carried over. Returns false as edge_show().
 */
static __always_inline bool edge_report(struct bpf_iter__task *ctx, struct task_struct *task, u64 left_ns,
					struct duet_slept *slept)
{
	slept->switches = edge_switches(task);
	slept->tid = task->pid;
	if (left_ns == (duet_last_edge_ns ? duet_last_edge_ns : duet_started_ns))
		slept->flags = DUET_SAMPLE_IDLE;
	return !bpf_seq_write(ctx->meta->seq, slept, sizeof(*slept));
}

static __always_inline void edge_report_parked(struct bpf_iter__task *ctx, struct task_struct *task)
{
	struct offcpu_parked *parked = offcpu_find_parked(task);
	u64 left_ns = duet_started_ns;
	struct duet_slept slept = {};

	if (!parked || parked->seen_switches != edge_switches(task) + 1 ||
	    !offcpu_is_length(duet_started_ns, duet_edge_ns))
		return;
	if (parked->reported_ns)
		left_ns = parked->reported_ns;
	if (left_ns >= duet_edge_ns)
		return;
	slept.weight = sample_weigh(offcpu_event(), duet_edge_ns - left_ns);
	if (edge_report(ctx, task, left_ns, &slept))
		parked->reported_ns = duet_edge_ns;
}

static __always_inline void edge_report_known(struct bpf_iter__task *ctx, struct task_struct *task,
					      struct offcpu_thread *thread)
{
	struct duet_slept slept = {};
	u64 slept_ns;

	if (!thread->left_ns || thread->left_ns >= duet_edge_ns || !offcpu_has_length(thread, duet_edge_ns) ||
	    thread->seen_switches != edge_switches(task) + 1)
		return;
	slept_ns = duet_edge_ns - thread->left_ns;
	slept.weight = sample_weigh(offcpu_event(), slept_ns);
	slept.runnable = offcpu_runnable(thread, task, slept_ns, slept.weight) + thread->carried_runnable;
	slept.weight += thread->carried;
	if (!edge_report(ctx, task, thread->left_ns, &slept))
		return;
	thread->left_ns = duet_edge_ns;
	if (thread->woken_ns) { /* it waits for a CPU only; its blocked time is reported */
		thread->woken_ns = duet_edge_ns;
		thread->blocked = 0;
	}
	thread->run_delay = task->sched_info.run_delay;
	thread->carried = thread->carried_runnable = 0;
}

/* Reports only threads that have been shown to the loader in this sleep. */
SEC("?iter/task")
int offcpu_report_edge(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_thread *thread;

	if (!task || !edge_is_asleep(task))
		return 0;
	thread = offcpu_state(task, false);
	if (thread)
		edge_report_known(ctx, task, thread);
	else
		edge_report_parked(ctx, task);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
