// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for the time that threads spend off CPU: blocked, or waiting for a CPU. A context switch stores times only.
 * When the thread runs again, its sleep of t ns becomes a sample with the probability min(1, t / interval). The sample
 * has the weight max(t, interval). So sums are right on average, and each sleep as long as the interval is sampled with
 * its exact length. The thread itself takes the sample, before it leaves the scheduler: its stack is still that of the
 * sleep.
 */
#include "core.bpf.h"
#include "offcpu.bpf.h"
#include "sample.bpf.h"

#define TASK_RUNNING 0 /* include/linux/sched.h */

/* The registers that a trusted pointer leads to may be read without a helper. */
static __always_inline const bpf_user_pt_regs_t *offcpu_regs(struct task_struct *task)
{
	return (const void *)bpf_task_pt_regs(task);
}

static __always_inline void offcpu_leave(struct task_struct *task, bool is_preempted, u64 now_ns)
{
	const bpf_user_pt_regs_t *regs;
	struct offcpu_thread *thread;

	if (!offcpu_is_wanted(task))
		return;
	thread = bpf_task_storage_get(&offcpu_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return duet_count(DUET_BPF_NO_THREAD_STATE);
	regs = offcpu_regs(task);
	thread->user_pc = PT_REGS_IP(regs);
	thread->user_sp = PT_REGS_SP(regs);
	thread->run_delay = task->sched_info.run_delay;
	thread->is_runnable = is_preempted || task->__state == TASK_RUNNING;
	thread->woken_ns = thread->waker = 0;
	thread->left_ns = thread->began_ns = now_ns;
}

static __always_inline void offcpu_come_back(struct task_struct *task, u64 now_ns)
{
	struct offcpu_thread *thread = offcpu_sleeper(task);

	if (!thread)
		return;
	/* The sleep may have been reported up to an edge that is a moment later than now. */
	thread->slept_ns = now_ns > thread->left_ns ? now_ns - thread->left_ns : 0;
	thread->left_ns = 0;
	if (!offcpu_has_length(thread, thread->woken_ns ? thread->woken_ns : now_ns)) {
		thread->weight = 0;
	} else if (thread->woken_ns) {
		thread->waited = sample_weigh(offcpu_event(), now_ns - thread->woken_ns);
		thread->weight = thread->blocked + thread->waited;
	} else {
		thread->weight = sample_weigh(offcpu_event(), thread->slept_ns);
	}
}

static __always_inline void offcpu_count_run(void)
{
	struct duet_cost *cost = duet_cost(offcpu_event());

	if (cost)
		cost->runs++;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(offcpu_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
	u64 now_ns = bpf_ktime_get_ns();

	offcpu_count_run();
	offcpu_leave(prev, is_preempted, now_ns);
	if (next->pid && !(next->flags & PF_KTHREAD))
		offcpu_come_back(next, now_ns);
	return 0;
}

/* Returns true if the thread has not been in user mode since its sleep began. */
static __always_inline bool offcpu_has_stack(const struct offcpu_thread *thread, struct task_struct *task)
{
	const bpf_user_pt_regs_t *regs = offcpu_regs(task);

	return !thread->user_pc || (thread->user_pc == PT_REGS_IP(regs) && thread->user_sp == PT_REGS_SP(regs));
}

/* Records what the run has cost. Not inline, like offcpu_settle(): the walk needs the BPF stack. */
static __noinline void offcpu_cost(u64 began_ns, bool made_sample)
{
	const struct sample_from from = {.began_ns = began_ns, .event = offcpu_event()};
	struct duet_cost *cost = duet_cost(from.event);

	if (cost)
		cost->pending = 0;
	sample_cost(&from, made_sample);
}

/* Adds the sleep to what the thread owes. Returns true if a sample can be taken now. */
static __noinline bool offcpu_settle(struct task_struct *task, struct offcpu_thread *thread)
{
	struct duet_cost *cost = duet_cost(offcpu_event());

	thread->owed_runnable += thread->woken_ns ? thread->waited
						   : offcpu_runnable(thread, task, thread->slept_ns, thread->weight);
	thread->owed += thread->weight;
	thread->weight = 0;
	if (!offcpu_has_stack(thread, task)) {
		thread->owed = thread->owed_runnable = 0;
		duet_count(DUET_BPF_MOVED);
		return false;
	}
	if (cost)
		cost->pending = thread->owed - 1; /* the ticks before this run, which is the last one */
	return cost != NULL;
}

/* If there is no sample now, because of the load or the memory, the thread still owes all of it. */
static __noinline void offcpu_finish(struct duet_scratch *room, struct task_struct *task, struct offcpu_thread *thread)
{
	room->sample.flags |= offcpu_flags(task);
	room->sample.runnable = thread->owed_runnable;
	room->sample.waker = thread->waker;
	thread->owed = thread->owed_runnable = 0;
	sample_end(room);
}

/* Runs at the end of each call of the scheduler, in the thread that continues, with interrupts enabled. */
SEC("?tp_btf/sched_exit_tp")
int BPF_PROG(offcpu_return, bool is_switch)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct offcpu_thread *thread = is_switch ? bpf_task_storage_get(&offcpu_threads, task, NULL, 0) : NULL;
	u64 began_ns = bpf_ktime_get_ns();
	struct duet_scratch *room;

	if (!thread || !thread->weight || !offcpu_settle(task, thread))
		return 0;
	room = sample_take(&(struct sample_from){ctx, NULL, began_ns, offcpu_event(), true});
	if (room)
		offcpu_finish(room, task, thread);
	offcpu_cost(began_ns, room != NULL);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
