// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program for threads that release a lock and wake a thread that waits for it. The agent shows who waits, and for
 * what, in the memory of the process: the releasing thread is in the same one, so its program can read it.
 */
#include "core.bpf.h"
#include "filter.bpf.h"
#include "sample.bpf.h"
#include "syscalls.bpf.h"
#include "waking.bpf.h"

static __always_inline u32 holder_event(void)
{
	return duet_config.event_of[DUET_PROGRAM_HOLDERS];
}

/* Returns the lock for which the thread has waited long enough; 0: it does not wait for one. */
static __noinline u64 holder_lock(struct task_struct *sleeper, u64 array, u64 now_ns)
{
	struct duet_lock_waiter waiter = {};
	struct filter_ids ids = {};
	u64 offset;

	if (!filter_identify(sleeper, task_ids(sleeper), &ids))
		return 0;
	offset = (ids.ns_tid % DUET_LOCK_WAITERS) * sizeof(waiter);
	if (bpf_probe_read_user(&waiter, sizeof(waiter), (const void *)(array + offset)))
		return 0;
	return waiter.tid == ids.ns_tid && now_ns >= waiter.from_ns ? waiter.lock : 0;
}

/* Starts the record: everything but the user stack. Not inline, as sample_begin(). Returns NULL if there is none. */
static __noinline struct duet_scratch *holder_begin(void *ctx, u64 lock, u64 now_ns)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	const struct sample_from from = {ctx, NULL, now_ns, holder_event(), STACK_OF_CONTEXT};
	struct filter_ids ids = {};
	struct duet_scratch *room;

	if (!filter_identify(task, bpf_get_current_pid_tgid(), &ids))
		return NULL;
	room = scratch_take();
	if (!room)
		return NULL;
	sample_fill(&room->sample, task, BPF_CORE_READ(task, group_leader), &ids, now_ns);
	room->sample.event = from.event;
	room->sample.role = DUET_ROLE_HOLDER;
	room->sample.waker = lock;
	room->sample.flags = DUET_SAMPLE_KERNEL | DUET_SAMPLE_JVM;
	room->sample.no_signal = DUET_NO_SIGNAL_EVENT;
	stack_user_regs(&from, task, room);
	stack_fill_kernel(&from, room);
	return room;
}

/* Returns the address of the array of the current process; 0: it has none. */
static __noinline u64 holder_array(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u32 tgid = filter_tgid(task);
	struct duet_lock_waiters *waiters = bpf_map_lookup_elem(&lock_waiters, &tgid);

	if (!waiters || waiters->start_ticks != duet_ticks(BPF_CORE_READ(task, group_leader, start_boottime)))
		return 0;
	/*
	 * Signals wake threads, too, and so do interrupts, which are no calls. One that interrupts this call has kernel
	 * frames that show it.
	 */
	return regs_syscall(task_user_regs(task)) == SYSCALL_FUTEX ? waiters->address : 0;
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(holder_waking, struct task_struct *sleeper)
{
	u64 ids = bpf_get_current_pid_tgid(), now_ns, array, lock;
	struct duet_scratch *room = NULL;

	if ((u32)sleeper->tgid != ids >> 32 || (u32)sleeper->pid == (u32)ids)
		return 0;
	array = holder_array();
	now_ns = bpf_ktime_get_ns();
	lock = array ? holder_lock(sleeper, array, now_ns) : 0;
	if (!lock)
		return 0;
	if (waking_may_run(holder_event(), now_ns))
		room = holder_begin(ctx, lock, now_ns);
	if (!room) {
		duet_count(DUET_BPF_NO_HOLDER);
		return 0;
	}
	stack_fill_user(room);
	waking_end(room);
	waking_cost(holder_event(), now_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
