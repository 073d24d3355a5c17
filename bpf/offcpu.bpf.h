/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a thread from when it leaves its CPU to its sample, and what the programs for sleeps share. */
#pragma once

#include "core.bpf.h"
#include "filter.bpf.h"
#include "of_thread.bpf.h"
#include "sample.bpf.h"

struct offcpu_thread {
	/* when it left its CPU, or the edge up to which its sleep was reported; 0: it has a CPU */
	u64 left_ns;
	u64 began_ns; /* when it left its CPU, or when the recording began */
	u64 slept_ns; /* its last sleep */
	u64 weight; /* weight of its last sleep, if that must be sampled; else 0 */
	u64 woken_ns; /* with wakers: when it was woken; 0: not yet. Then `weight` is the sum of the next two */
	u64 blocked; /* weight of the time until then */
	u64 waited; /* weight of the time from then on */
	u64 waker; /* duet_sample.waker of the record about who woke it; 0: there is none */
	u64 run_delay; /* the kernel's sum of its waits for a CPU, before the last sleep */
	u64 user_pc, user_sp; /* when it left its CPU; 0: not known */
	/*
	 * weights of sleeps that were not sampled because of the load or the memory; its next sample accounts for them
	 */
	u64 carried, carried_runnable;
	u64 is_runnable; /* 1: it waited for a CPU only */
	u64 is_in_call; /* 1: it blocked in a system call; not known with DUET_RETURN_SWITCH_EXIT */
	u64 is_due; /* 1: its sleep must be sampled before it continues; not used with DUET_RETURN_SWITCH_EXIT */
	/* of a sleep whose stack was taken when it began: that record's id, and the chance of being taken, in 256ths */
	u64 early;
	u64 early_chance;
	/* the longest of its last sleeps of that kind, of which older ones count less; 0: there was none */
	u64 foreseen_ns;
	u64 seen_switches; /* 1 + its context switches when the loader was shown its stack; 0: never */
};

/* The kernel allocates storage of tasks in any context since Linux 6.4. */
DUET_MAPS OF_THREAD(offcpu_threads, struct offcpu_thread);

/* The same by tid, on older kernels. A row is deleted when its thread ends. The loader sets the size. */
DUET_MAP(offcpu_tids, HASH, 1, u32, struct offcpu_thread);

/* A thread that sleeps since before the recording has this until it wakes. The kernel makes it ten times as fast. */
struct offcpu_parked {
	u64 start_ns; /* of the thread: a later one may have the same tid */
	u64 seen_switches; /* as in offcpu_thread */
	u64 reported_ns; /* the edge up to which its sleep was reported; 0: none yet */
};

/* By tid. The loader makes room for the threads that there are when the recording begins. */
DUET_MAP(offcpu_parked, HASH, 1, u32, struct offcpu_parked);

/* The number of the last interrupt of a device. */
DUET_MAP(irqs, PERCPU_ARRAY, 1, u32, u32);

/* Returns an id of a record that another one refers to, unique for 73 minutes, longer than any record waits. */
static __always_inline u64 offcpu_id(struct task_struct *task, u64 now_ns)
{
	return (u64)task->pid << 42 | (now_ns & ((1ull << 42) - 1));
}

static __always_inline u32 offcpu_event(void)
{
	return duet_config.event_of[DUET_PROGRAM_OFFCPU];
}

/*
 * Returns false for kernel threads: they have nothing to do most of the time. A row of offcpu_tids that is made while
 * its thread exits would stay.
 */
static __always_inline bool offcpu_is_wanted(struct task_struct *task)
{
	if (!task->pid || task->flags & (PF_KTHREAD | (duet_config.state_by_tid ? PF_EXITING : 0)))
		return false;
	if (!duet_config.filter_targets)
		return true;
	/* The kernel gave the pointer to the program, so its fields are read without a helper. */
	return filter_is_target(duet_config.pidns_inum ? filter_tgid(task) : task->tgid,
				task->group_leader->start_boottime);
}

/* Returns the state of a thread, or NULL. With `create` it is made, if there is memory. */
static __always_inline struct offcpu_thread *offcpu_state(struct task_struct *task, bool create)
{
	static const struct offcpu_thread none = {};
	struct offcpu_thread *thread;
	u32 tid;

	if (!duet_config.state_by_tid)
		return bpf_task_storage_get(&offcpu_threads, task, NULL, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	tid = task->pid;
	thread = bpf_map_lookup_elem(&offcpu_tids, &tid);
	if (thread || !create)
		return thread;
	bpf_map_update_elem(&offcpu_tids, &tid, &none, BPF_ANY);
	return bpf_map_lookup_elem(&offcpu_tids, &tid);
}

/* Returns what was noted about a thread that has no state, or NULL. */
static __always_inline struct offcpu_parked *offcpu_find_parked(struct task_struct *task)
{
	u32 tid = task->pid;
	struct offcpu_parked *parked = bpf_map_lookup_elem(&offcpu_parked, &tid);

	return parked && parked->start_ns == task->start_time ? parked : NULL;
}

/*
 * Returns the state of a thread that sleeps, or NULL if its sleep is not wanted. A thread that has no state yet and is
 * older than the recording has slept since before the recording.
 */
static __always_inline struct offcpu_thread *offcpu_sleeper(struct task_struct *task)
{
	struct offcpu_thread *thread = offcpu_state(task, false);
	struct offcpu_parked *parked;

	if (thread)
		return thread->left_ns ? thread : NULL;
	if (task->start_time >= duet_started_ns || !offcpu_is_wanted(task))
		return NULL;
	thread = offcpu_state(task, true);
	if (!thread)
		return NULL;
	thread->left_ns = thread->began_ns = duet_started_ns;
	thread->run_delay = task->sched_info.run_delay;
	parked = offcpu_find_parked(task);
	if (parked) {
		thread->seen_switches = parked->seen_switches;
		if (parked->reported_ns)
			thread->left_ns = parked->reported_ns;
	}
	return thread;
}

/* Returns true if sleeps that have begun then, and last until now, are to be sampled (--off-cpu). */
static __always_inline bool offcpu_is_length(u64 began_ns, u64 now_ns)
{
	u64 slept_ns = now_ns - began_ns;

	return slept_ns >= duet_config.options.sleeps.least_ns && slept_ns <= duet_config.options.sleeps.most_ns;
}

static __always_inline bool offcpu_has_length(const struct offcpu_thread *thread, u64 now_ns)
{
	return offcpu_is_length(thread->began_ns, now_ns);
}

/* Returns the part of a sleep's weight that was a wait for a CPU. */
static __always_inline u64 offcpu_runnable(const struct offcpu_thread *thread, struct task_struct *task, u64 slept_ns,
					   u64 weight)
{
	u64 waited = BPF_CORE_READ(task, sched_info.run_delay) - thread->run_delay;

	if (thread->is_runnable || waited >= slept_ns)
		return weight;
	/* Either the two are equal, or both are below 2^32. */
	return weight == slept_ns ? waited : weight * waited / slept_ns;
}

/* `regs` are the task's registers in user mode. */
static __always_inline u16 offcpu_flags(struct task_struct *task, struct pt_regs *regs)
{
	u16 flags = DUET_SAMPLE_OFF_CPU;

	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		flags |= DUET_SAMPLE_IO;
	if (regs_syscall(regs) < 0)
		flags |= DUET_SAMPLE_FAULT;
	return flags;
}
