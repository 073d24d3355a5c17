// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for the threads and interrupts that end sleeps. The waker runs the first program, when it is known how long
 * the sleeper was blocked. So this program decides whether to sample that time, and takes the waker's stack only for
 * sleeps that will be sampled. An interrupt wakes threads on behalf of the kernel: the thread that it interrupted is
 * not the waker, unless it delivers that thread's own packet (packets.bpf.h).
 */
#include "core.bpf.h"
#include "offcpu.bpf.h"
#include "packets.bpf.h"
#include "sample.bpf.h"
#include "waking.bpf.h"

/* include/linux/preempt.h; Linux 5.10 to 7.2 have the same */
#define SOFTIRQ_SERVED (1u << 8)
#define HARDIRQ_AND_NMI (0xffu << 16)

#ifdef __TARGET_ARCH_x86
extern const int __preempt_count __ksym __weak; /* until Linux 6.1, and since 6.15 */
extern const struct pcpu_hot pcpu_hot __ksym __weak; /* from Linux 6.2 to 6.14 */
#endif

/* Returns the preemption count, which shows whether an interrupt is being served. */
static __always_inline u32 wakeup_preempt_count(void)
{
#ifdef __TARGET_ARCH_x86
	if (&__preempt_count)
		return *(const int *)bpf_this_cpu_ptr(&__preempt_count);
	if (&pcpu_hot)
		return ((const struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
	return 0;
#else
	return BPF_CORE_READ((struct task_struct___arm64 *)bpf_get_current_task(), thread_info.preempt_count);
#endif
}

static __always_inline u32 wakeup_last_irq(void)
{
	u32 key = 0, *irq = bpf_map_lookup_elem(&irqs, &key);

	return irq ? *irq : 0;
}

/* Like offcpu_is_wanted(), by a pointer that the kernel does not vouch for. */
static __always_inline bool wakeup_is_wanted(struct task_struct *task)
{
	if (!BPF_CORE_READ(task, pid) || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return false;
	return !duet_config.filter_targets ||
	       filter_is_target(filter_tgid(task), BPF_CORE_READ(task, group_leader, start_boottime));
}

/*
 * Returns the role of the current stack, and stores the ids of the thread for DUET_ROLE_WAKER. `is_own`: a
 * softirq delivers what the thread has sent.
 */
static __always_inline enum duet_role wakeup_role(struct task_struct *task, u32 preempt_count, bool is_own,
						  struct filter_ids *ids)
{
	if (preempt_count & HARDIRQ_AND_NMI || (preempt_count & SOFTIRQ_SERVED && !is_own))
		return DUET_ROLE_INTERRUPT;
	if (!wakeup_is_wanted(task) || !filter_is_wanted(task) || !filter_identify(task, task_ids(task), ids))
		return DUET_ROLE_STRANGER;
	return DUET_ROLE_WAKER;
}

static __always_inline void wakeup_fill_comm(struct duet_sample *sample, struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_core_read_str(sample->comm, sizeof(sample->comm), &task->comm);
	bpf_core_read_str(sample->process_comm, sizeof(sample->process_comm), &leader->comm);
}

/*
 * Starts the record of the waker, which is the current thread or an interrupt: everything but its user stack. Returns
 * NULL if there is none. Not inline, as sample_begin().
 */
static __noinline struct duet_scratch *wakeup_begin(void *ctx, struct task_struct *sleeper, u64 now_ns,
						  u32 preempt_count)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	const struct sample_from from = {ctx, NULL, now_ns, offcpu_event(), STACK_OF_CONTEXT};
	struct filter_ids ids = {};
	bool is_own = packets_are_of(task);
	enum duet_role role = wakeup_role(task, preempt_count, is_own, &ids);
	struct task_struct *subject = role == DUET_ROLE_WAKER ? task : sleeper;
	struct duet_scratch *room;

	if (subject == sleeper && !filter_identify(sleeper, task_ids(sleeper), &ids))
		return NULL;
	room = scratch_take();
	if (!room)
		return NULL;
	sample_fill(&room->sample, subject, filter_leader(subject, &ids), &ids, now_ns);
	wakeup_fill_comm(&room->sample, task);
	room->sample.event = from.event;
	room->sample.role = role;
	room->sample.irq = wakeup_last_irq();
	room->sample.flags = DUET_SAMPLE_KERNEL | (is_own ? DUET_SAMPLE_OWN_SOFTIRQ : 0);
	if (role == DUET_ROLE_WAKER) {
		if (filter_jvm(ids.tgid, room->sample.start_ns))
			room->sample.flags |= DUET_SAMPLE_JVM;
		room->sample.no_signal = DUET_NO_SIGNAL_EVENT;
		stack_user_regs(&from, task, room);
		filter_mark_seen(ids.tgid);
	}
	stack_fill_kernel(&from, room);
	return room;
}

/* `knows_interrupts` is a constant: a kernel without the variable refuses a program that refers to it. */
static __always_inline int wakeup(void *ctx, struct task_struct *sleeper, bool knows_interrupts)
{
	struct offcpu_thread *thread = sleeper->flags & PF_KTHREAD ? NULL : offcpu_sleeper(sleeper);
	u64 now_ns = bpf_ktime_get_ns();
	struct duet_scratch *room = NULL;

	/* A thread that has a CPU does not sleep yet. A thread that was preempted is not blocked. */
	if (!thread || thread->is_runnable || thread->woken_ns || !sleeper->pid)
		return 0;
	thread->woken_ns = now_ns > thread->left_ns ? now_ns : thread->left_ns;
	thread->blocked = 0;
	if (offcpu_has_length(thread, thread->woken_ns))
		thread->blocked = sample_weigh(offcpu_event(), thread->woken_ns - thread->left_ns);
	if (!thread->blocked)
		return 0;
	if (waking_may_run(offcpu_event(), now_ns))
		room = wakeup_begin(ctx, sleeper, now_ns, knows_interrupts ? wakeup_preempt_count() : 0);
	if (!room) {
		duet_count(DUET_BPF_NO_WAKER);
		return 0;
	}
	thread->waker = room->sample.waker = offcpu_id(sleeper, now_ns);
	if (room->sample.role == DUET_ROLE_WAKER)
		stack_fill_user(room);
	waking_end(room);
	waking_cost(offcpu_event(), now_ns);
	return 0;
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(wakeup_waking, struct task_struct *sleeper)
{
	return wakeup(ctx, sleeper, true);
}

/* The loader recognizes interrupts by their kernel frames. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(wakeup_waking_plain, struct task_struct *sleeper)
{
	return wakeup(ctx, sleeper, false);
}

/*
 * Only stores the number, because the interrupt's handler may wake a thread. No other handler runs on this CPU until it
 * ends.
 */
SEC("?tp_btf/irq_handler_entry")
int BPF_PROG(wakeup_irq, int number)
{
	u32 key = 0, *irq = bpf_map_lookup_elem(&irqs, &key);

	if (irq)
		*irq = number;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
