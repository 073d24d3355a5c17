/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a thread from when it leaves its CPU until its sleep is sampled, and the code that the programs for
 * sleeps share.
 */
#ifndef DUET_OFFCPU_BPF_H
#define DUET_OFFCPU_BPF_H

#include "core.bpf.h"
#include "filter.bpf.h"
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
	u64 owed, owed_runnable;
	u64 is_runnable; /* 1: it waited for a CPU only */
	u64 seen_switches; /* 1 + its context switches when the loader was shown its stack; 0: never */
};

/* Storage of a task ends with the task. The kernel allocates it in any context since Linux 6.4. */
struct duet_offcpu_threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct offcpu_thread);
};
extern struct duet_offcpu_threads_map offcpu_threads SEC(".maps");

/* The number of the last interrupt of a device. */
struct duet_irqs_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
extern struct duet_irqs_map irqs SEC(".maps");

static __always_inline u32 offcpu_event(void)
{
	return duet_config.event_of[DUET_PROGRAM_OFFCPU];
}

/* Returns false for kernel threads: they have nothing to do most of the time. */
static __always_inline bool offcpu_is_wanted(struct task_struct *task)
{
	if (!task->pid || task->flags & PF_KTHREAD)
		return false;
	return !duet_config.filter_targets ||
	       filter_is_target(filter_tgid(task), BPF_CORE_READ(task, group_leader, start_boottime));
}

/*
 * Returns the state of a thread that sleeps, or NULL if its sleep is not wanted. A thread that has no state yet and is
 * older than the recording has slept since before the recording.
 */
static __always_inline struct offcpu_thread *offcpu_sleeper(struct task_struct *task)
{
	struct offcpu_thread *thread = bpf_task_storage_get(&offcpu_threads, task, NULL, 0);

	if (thread)
		return thread->left_ns ? thread : NULL;
	if (task->start_time >= duet_started_ns || !offcpu_is_wanted(task))
		return NULL;
	thread = bpf_task_storage_get(&offcpu_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return NULL;
	thread->left_ns = thread->began_ns = duet_started_ns;
	thread->run_delay = task->sched_info.run_delay;
	return thread;
}

/* Returns true if sleeps that have this length by now are to be sampled (--off-cpu). */
static __always_inline bool offcpu_has_length(const struct offcpu_thread *thread, u64 now_ns)
{
	u64 slept_ns = now_ns - thread->began_ns;

	return slept_ns >= duet_config.least_sleep_ns && slept_ns <= duet_config.most_sleep_ns;
}

/* Returns the part of a sleep's weight that was a wait for a CPU. */
static __always_inline u64 offcpu_runnable(const struct offcpu_thread *thread, struct task_struct *task, u64 slept_ns,
					   u64 weight)
{
	u64 waited = task->sched_info.run_delay - thread->run_delay;

	if (thread->is_runnable || waited >= slept_ns)
		return weight;
	/* Either the two are equal, or both are below 2^32. */
	return weight == slept_ns ? waited : weight * waited / slept_ns;
}

static __always_inline u16 offcpu_flags(struct task_struct *task)
{
	u16 flags = DUET_SAMPLE_OFF_CPU;

	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		flags |= DUET_SAMPLE_IO;
	if (regs_syscall((struct pt_regs *)bpf_task_pt_regs(task)) < 0)
		flags |= DUET_SAMPLE_FAULT;
	return flags;
}

#endif
