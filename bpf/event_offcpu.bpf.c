// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for the time that threads spend off CPU: blocked, or waiting for a CPU. A context switch stores times only.
 * When the thread runs again, its sleep of t ns becomes a sample with the probability min(1, t / interval). The sample
 * has the weight max(t, interval). So sums are right on average, and each sleep as long as the interval is sampled with
 * its exact length. The thread itself takes the sample, before it executes an instruction in user mode: its user stack
 * is still that of the sleep. Which program does that depends on the kernel, see enum duet_return.
 */
#include "core.bpf.h"
#include "offcpu.bpf.h"
#include "sample.bpf.h"

#define TASK_RUNNING 0 /* include/linux/sched.h */

/* The thread leaves the functions in which it slept before it takes its sample. */
static __always_inline bool offcpu_is_late(void)
{
	return duet_config.sleep_return != DUET_RETURN_SWITCH_EXIT;
}

/* The registers that a trusted pointer leads to may be read without a helper. */
static __always_inline void offcpu_note_regs(struct offcpu_thread *thread, struct task_struct *task)
{
	struct pt_regs *regs = task_regs_of(task);

	if (duet_config.has_task_pt_regs) {
		thread->user_pc = PT_REGS_IP((const bpf_user_pt_regs_t *)regs);
		thread->user_sp = PT_REGS_SP((const bpf_user_pt_regs_t *)regs);
	} else {
		thread->user_pc = PT_REGS_IP_CORE(regs);
		thread->user_sp = PT_REGS_SP_CORE(regs);
	}
	thread->is_in_call = !thread->is_runnable && regs_syscall(regs) >= 0;
}

/* Adds the thread's last sleep to what its next sample accounts for. */
static __always_inline void offcpu_carry_over(struct task_struct *task, struct offcpu_thread *thread)
{
	thread->carried_runnable += thread->woken_ns ? thread->waited
						   : offcpu_runnable(thread, task, thread->slept_ns, thread->weight);
	thread->carried += thread->weight;
	thread->weight = 0;
}

static __always_inline bool offcpu_has_rseq(struct task_struct *task)
{
	return bpf_core_field_exists(task->rseq) && BPF_CORE_READ(task, rseq);
}

/* Returns the hook at which the thread takes its samples. */
static __always_inline u32 offcpu_hook(struct task_struct *task)
{
	if (duet_config.sleep_return != DUET_RETURN_RSEQ || offcpu_has_rseq(task))
		return duet_config.sleep_return;
	if (!duet_fallback_hook)
		duet_needs_fallback_hook = true;
	return duet_fallback_hook;
}

/* Returns true if the thread will take no sample although it has slept: it is in no system call. */
static __always_inline bool offcpu_has_no_late_hook(const struct offcpu_thread *thread, struct task_struct *task)
{
	return offcpu_is_late() && !thread->is_in_call && offcpu_hook(task) == DUET_RETURN_SYS_EXIT;
}

#define OFFCPU_CHANCES 256
#define OFFCPU_LEAST_CHANCE 16

static __always_inline void offcpu_leave(struct task_struct *task, bool is_preempted, u64 now_ns)
{
	struct offcpu_thread *thread;

	if (!offcpu_is_wanted(task))
		return;
	thread = offcpu_state(task, true);
	if (!thread)
		return duet_count(DUET_BPF_NO_THREAD_STATE);
	thread->is_runnable = is_preempted || task_state(task) == TASK_RUNNING;
	if (offcpu_is_late()) {
		if (thread->weight) /* it sleeps again before it continues: one sample accounts for both sleeps */
			offcpu_carry_over(task, thread);
		offcpu_note_regs(thread, task);
	}
	thread->run_delay = task->sched_info.run_delay;
	thread->woken_ns = thread->waker = thread->early = 0;
	thread->left_ns = thread->began_ns = now_ns;
}

/*
 * How long it has waited for a CPU since it was woken. An edge that is a moment later than now may have moved woken_ns
 * there.
 */
static __always_inline u64 offcpu_waited(const struct offcpu_thread *thread, u64 now_ns)
{
	return now_ns > thread->woken_ns ? now_ns - thread->woken_ns : 0;
}

/* Reports the weight of a sleep whose stack was taken when it began. */
static __always_inline void offcpu_emit_weight(struct offcpu_thread *thread, struct task_struct *task, u64 now_ns)
{
	struct duet_slept_record record = {};
	u64 waited_ns = thread->is_runnable ? thread->slept_ns : thread->woken_ns ? offcpu_waited(thread, now_ns) : 0;

	duet_begin(&record.head, DUET_RECORD_SLEPT, sizeof(record), now_ns, task->tgid, task->pid);
	record.id = thread->early;
	record.weight = thread->slept_ns * OFFCPU_CHANCES / thread->early_chance;
	record.runnable = waited_ns * OFFCPU_CHANCES / thread->early_chance;
	record.waker = thread->waker;
	duet_emit(&record.head, sizeof(record), BPF_RB_NO_WAKEUP);
}

/* Returns true if the sleep was left to chance when it began. */
static __always_inline bool offcpu_had_no_late_hook(struct offcpu_thread *thread, struct task_struct *task, u64 now_ns)
{
	if (!offcpu_has_no_late_hook(thread, task))
		return false;
	thread->foreseen_ns -= thread->foreseen_ns / 16;
	if (thread->slept_ns > thread->foreseen_ns)
		thread->foreseen_ns = thread->slept_ns;
	if (thread->early && offcpu_has_length(thread, thread->woken_ns ? thread->woken_ns : now_ns))
		offcpu_emit_weight(thread, task, now_ns);
	return true;
}

/* Prepares the sample of a thread that takes it late. */
static __always_inline void offcpu_request_sample(struct offcpu_thread *thread, struct task_struct *task)
{
	if (!offcpu_hook(task)) {
		thread->weight = 0;
		return duet_count(DUET_BPF_NO_RETURN);
	}
	thread->is_due = 1;
	stack_keep(task);
}

/* Returns true if the sleep must be sampled. */
static __always_inline bool offcpu_come_back(struct task_struct *task, u64 now_ns)
{
	struct offcpu_thread *thread = offcpu_sleeper(task);

	if (!thread)
		return false;
	/* The sleep may have been reported up to an edge that is a moment later than now. */
	thread->slept_ns = now_ns > thread->left_ns ? now_ns - thread->left_ns : 0;
	thread->left_ns = 0;
	if (offcpu_had_no_late_hook(thread, task, now_ns)) {
		thread->weight = 0;
		return false;
	}
	if (!offcpu_has_length(thread, thread->woken_ns ? thread->woken_ns : now_ns)) {
		thread->weight = 0;
	} else if (thread->woken_ns) {
		thread->waited = sample_weigh(offcpu_event(), offcpu_waited(thread, now_ns));
		thread->weight = thread->blocked + thread->waited;
	} else {
		thread->weight = sample_weigh(offcpu_event(), thread->slept_ns);
	}
	if (thread->weight && offcpu_is_late())
		offcpu_request_sample(thread, task);
	return thread->weight;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(offcpu_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
	struct duet_cost *cost = duet_cost(offcpu_event());
	u64 now_ns = bpf_ktime_get_ns();

	if (!cost)
		return 0;
	cost->runs++;
	cost->is_due = 0;
	offcpu_leave(prev, is_preempted, now_ns);
	if (next->pid && !(next->flags & PF_KTHREAD))
		cost->is_due = offcpu_come_back(next, now_ns);
	return 0;
}

/* With state_by_tid. */
SEC("?raw_tracepoint/sched_process_exit")
int offcpu_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&offcpu_tids, &tid);
	return 0;
}

#ifdef __TARGET_ARCH_x86
#define OFFCPU_CALL_BYTES 2 /* length of the instruction for a system call */
#else
#define OFFCPU_CALL_BYTES 4
#endif

/*
 * Returns true if the thread has not been in user mode since its sleep began. If a signal ended its call, or a suspend,
 * the kernel may have moved pc back to make the thread repeat the call.
 */
static __always_inline bool offcpu_has_stack(const struct offcpu_thread *thread, struct task_struct *task)
{
	struct pt_regs *regs = task_user_regs(task);
	u64 pc = PT_REGS_IP_CORE(regs);

	if (!offcpu_is_late() || !thread->user_pc)
		return true;
	if (pc == thread->user_pc - OFFCPU_CALL_BYTES)
		pc = thread->user_pc;
	return thread->user_pc == pc && thread->user_sp == PT_REGS_SP_CORE(regs);
}

/* Records what the run has cost. Not inline, like offcpu_prepare(): the walk needs the BPF stack. */
static __noinline void offcpu_cost(u64 began_ns, bool made_sample)
{
	const struct sample_from from = {.began_ns = began_ns, .event = offcpu_event()};
	struct duet_cost *cost = duet_cost(from.event);

	if (cost)
		cost->pending = 0;
	sample_cost(&from, made_sample);
}

/* Adds the sleep to what the sample accounts for. Returns true if a sample can be taken now. */
static __noinline bool offcpu_prepare(struct task_struct *task, struct offcpu_thread *thread)
{
	struct duet_cost *cost = duet_cost(offcpu_event());

	thread->is_due = 0;
	if (thread->weight)
		offcpu_carry_over(task, thread);
	if (!offcpu_has_stack(thread, task)) {
		thread->carried = thread->carried_runnable = 0;
		duet_count(DUET_BPF_MOVED);
		return false;
	}
	if (cost)
		cost->pending = thread->carried - 1; /* the ticks before this run, which is the last one */
	return cost && thread->carried;
}

/* If there is no sample now, because of the load or the memory, the weight is carried over to the next one. */
static __noinline void offcpu_finish(struct duet_scratch *room, struct task_struct *task, struct offcpu_thread *thread)
{
	room->sample.flags |= offcpu_flags(task, task_user_regs(task));
	room->sample.runnable = thread->carried_runnable;
	room->sample.waker = thread->waker;
	thread->carried = thread->carried_runnable = 0;
	sample_end(room);
}

/* Takes the sample of the current thread. */
static __always_inline int offcpu_take(void *ctx, struct offcpu_thread *thread, enum stack_kernel_source kernel)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u64 began_ns = bpf_ktime_get_ns();
	struct duet_scratch *room;

	if (!offcpu_prepare(task, thread))
		return 0;
	room = sample_take(&(struct sample_from){ctx, NULL, began_ns, offcpu_event(), kernel});
	if (room)
		offcpu_finish(room, task, thread);
	offcpu_cost(began_ns, room != NULL);
	return 0;
}

/* Returns the state of the current thread if it is to take a sample late. */
static __always_inline struct offcpu_thread *offcpu_due(void)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct offcpu_thread *thread;

	if (duet_config.state_by_tid)
		thread = bpf_map_lookup_elem(&offcpu_tids, &tid);
	else
		thread = bpf_task_storage_get(&offcpu_threads, bpf_get_current_task_btf(), NULL, 0);
	return thread && thread->is_due ? thread : NULL;
}

/* Returns true if the current thread takes its samples at rseq_update, where it may be interrupted. */
static __always_inline bool offcpu_is_left_to_rseq(void)
{
	return duet_config.sleep_return == DUET_RETURN_RSEQ &&
	       offcpu_has_rseq((struct task_struct *)bpf_get_current_task());
}

/*
 * Runs at the end of each call of the scheduler, in the thread that continues, with interrupts enabled. No other switch
 * comes between offcpu_switch and this program on a CPU.
 */
SEC("?tp_btf/sched_exit_tp")
int BPF_PROG(offcpu_return, bool is_switch)
{
	struct duet_cost *cost = is_switch ? duet_cost(offcpu_event()) : NULL;
	struct offcpu_thread *thread;

	if (!cost || !cost->is_due)
		return 0;
	cost->is_due = 0;
	thread = offcpu_state(bpf_get_current_task_btf(), false);
	return thread && thread->weight ? offcpu_take(ctx, thread, STACK_OF_CONTEXT) : 0;
}

SEC("?tp_btf/rseq_update")
int BPF_PROG(offcpu_rseq)
{
	struct offcpu_thread *thread = offcpu_due();

	return thread ? offcpu_take(ctx, thread, STACK_KEPT) : 0;
}

/* The loader attaches it to finish_task_switch(), whatever the compiler has made of that name. */
SEC("?kprobe")
int offcpu_kprobe(struct pt_regs *ctx)
{
	struct offcpu_thread *thread = offcpu_due();

	return thread && !offcpu_is_left_to_rseq() ? offcpu_take(ctx, thread, STACK_KEPT) : 0;
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(offcpu_sys_exit)
{
	struct offcpu_thread *thread = offcpu_due();

	return thread && !offcpu_is_left_to_rseq() ? offcpu_take(ctx, thread, STACK_KEPT) : 0;
}

/* ---- at the beginning of a sleep ---- */

/* Returns the chance of a sleep to be sampled when it begins. The better it foresees the length, the less noise. */
static __always_inline u64 offcpu_chance(const struct offcpu_thread *thread)
{
	u64 chance = OFFCPU_CHANCES, interval = sample_interval(offcpu_event());

	if (thread->foreseen_ns && thread->foreseen_ns < interval)
		chance = thread->foreseen_ns * OFFCPU_CHANCES / interval;
	return chance > OFFCPU_LEAST_CHANCE ? chance : OFFCPU_LEAST_CHANCE;
}

static __noinline void offcpu_emit_early(struct duet_scratch *room, struct task_struct *task, u64 id)
{
	u32 bytes = sizeof(room->sample) + stack_bytes(room);

	room->sample.role = DUET_ROLE_EARLY;
	room->sample.waker = id;
	room->sample.weight = 0;
	room->sample.flags |= offcpu_flags(task, task_user_regs(task));
	sample_emit(room, bytes, BPF_RB_NO_WAKEUP);
}

/*
 * Takes the stack of a thread that begins to sleep. Its weight is reported when it runs again, so it is in the
 * proportion of its length to the chance, whatever that was. A run queue is locked, so the loader is not woken.
 */
static __always_inline int offcpu_take_early(void *ctx, struct offcpu_thread *thread, struct task_struct *task)
{
	const struct sample_from from = {ctx, NULL, bpf_ktime_get_ns(), offcpu_event(), STACK_OF_CONTEXT};
	struct duet_scratch *room;

	thread->early_chance = offcpu_chance(thread);
	if (bpf_get_prandom_u32() % OFFCPU_CHANCES >= thread->early_chance)
		return 0;
	room = sample_take(&from);
	if (!room) {
		duet_count(DUET_BPF_NO_RETURN);
		return 0;
	}
	thread->early = offcpu_id(task, from.began_ns);
	offcpu_emit_early(room, task, thread->early);
	offcpu_cost(from.began_ns, true);
	return 0;
}

/* Attached after offcpu_switch, and where sleeps are sampled at sys_exit only. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(offcpu_early, bool is_preempted, struct task_struct *prev)
{
	struct offcpu_thread *thread = offcpu_is_wanted(prev) ? offcpu_state(prev, false) : NULL;

	return thread && offcpu_has_no_late_hook(thread, prev) ? offcpu_take_early(ctx, thread, prev) : 0;
}

char LICENSE[] SEC("license") = "GPL";
