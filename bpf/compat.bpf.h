/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernel versions and between architectures. */
#pragma once

#include "core.bpf.h"

#define PF_EXITING 0x00000004 /* include/linux/sched.h */
#define PF_IO_WORKER 0x00000010 /* a thread of io_uring that belongs to the process */
#define PF_FORKNOEXEC 0x00000040 /* of a leader: the process runs the program that it was forked from */
#define PF_KTHREAD 0x00200000
#define TS_COMPAT 0x0002 /* arch/x86/include/asm/thread_info.h */
#define PSR_MODE32_BIT 0x10 /* arch/arm64/include/uapi/asm/ptrace.h */
#define EBUSY 16

/*
 * Returns the user-mode registers that the task had when it entered the kernel. The helper bpf_task_pt_regs() exists
 * since Linux 5.15. On older kernels the registers end at the top of the kernel stack, both on arm64 and on x86-64
 * (which has padding above them only since FRED, Linux 6.9).
 */
static __always_inline struct pt_regs *task_user_regs(struct task_struct *task)
{
	if (duet_config.has_task_pt_regs)
		return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(task, stack) + duet_config.kernel_stack_bytes - bpf_core_type_size(struct pt_regs);
}

/* The same of any task, by a pointer that the kernel gave to the program. */
static __always_inline struct pt_regs *task_regs_of(struct task_struct *task)
{
	if (duet_config.has_task_pt_regs)
		return (struct pt_regs *)bpf_task_pt_regs(task);
	return BPF_CORE_READ(task, stack) + duet_config.kernel_stack_bytes - bpf_core_type_size(struct pt_regs);
}

/* Returns 0 for a task that can run. `task` as above. */
static __always_inline u64 task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___before_5_14 *)task)->state;
}

/* Returns what bpf_get_current_pid_tgid() returns in this task. */
static __always_inline u64 task_ids(struct task_struct *task)
{
	return (u64)BPF_CORE_READ(task, tgid) << 32 | (u32)BPF_CORE_READ(task, pid);
}

/* Returns the number of the system call that saved these registers; negative for an exception or interrupt. */
static __always_inline s64 regs_syscall(struct pt_regs *regs)
{
#ifdef __TARGET_ARCH_x86
	return BPF_CORE_READ(regs, orig_ax);
#else
	return BPF_CORE_READ(regs, syscallno);
#endif
}

/* Returns the sixth argument of the system call, which libbpf has no name for. */
static __always_inline u64 regs_sixth(struct pt_regs *regs)
{
#ifdef __TARGET_ARCH_x86
	return BPF_CORE_READ(regs, r9);
#else
	return BPF_CORE_READ(regs, user_regs.regs[5]);
#endif
}

/* Returns true if the current system call is one of the 32-bit architecture, whose calls have other numbers. */
static __always_inline bool regs_are_of_32_bits(struct pt_regs *regs)
{
#ifdef __TARGET_ARCH_x86
	struct task_struct___x86 *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
#else
	return BPF_CORE_READ(regs, user_regs.pstate) & PSR_MODE32_BIT;
#endif
}

/* Returns the address from which the thread-local variables of the current task are found. */
static __always_inline u64 task_thread_pointer(struct task_struct *task)
{
#ifdef __TARGET_ARCH_x86
	return BPF_CORE_READ((struct task_struct___x86 *)task, thread.fsbase);
#else
	return BPF_CORE_READ((struct task_struct___arm64 *)task, thread.uw.tp_value);
#endif
}

/* Returns the address from which struct duet_jvm_compiling finds the JavaThread of the current task. */
static __always_inline u64 task_thread_block(struct task_struct *task)
{
#ifdef __TARGET_ARCH_x86
	return task_thread_pointer(task);
#else
	return (u64)BPF_CORE_READ(task, clear_child_tid);
#endif
}

static __always_inline bool task_in_exec(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/*
 * Returns true if `cgroup` or one of its ancestors has the id `wanted`. The search goes upwards, because most tasks of
 * a target are in that cgroup or directly below it. The helper for the ancestors of the current task is not used:
 * perf_event programs may not call it before Linux 5.15. Each kernel form has its own loop: with a common loop, clang
 * would load the field that does not exist ahead of the loop.
 */
static __always_inline bool cgroup_is_below(struct cgroup *cgroup, u64 wanted)
{
	struct cgroup___before_6_1 *before = (void *)cgroup;
	u32 depth = BPF_CORE_READ(cgroup, level);
	struct cgroup *ancestor = NULL;
	u64 id = 0;

	if (bpf_core_field_exists(cgroup->ancestors)) {
		for (u32 up = 0; up <= DUET_MAX_CGROUP_DEPTH && up <= depth && id != wanted; up++) {
			bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
					      (void *)&cgroup->ancestors + (depth - up) * sizeof(ancestor));
			id = BPF_CORE_READ(ancestor, kn, id);
		}
	} else {
		for (u32 up = 0; up <= DUET_MAX_CGROUP_DEPTH && up <= depth && id != wanted; up++)
			bpf_probe_read_kernel(&id, sizeof(id),
					      (void *)&before->ancestor_ids + (depth - up) * sizeof(id));
	}
	return id == wanted;
}
