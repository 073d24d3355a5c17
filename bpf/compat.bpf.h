/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernel versions and between architectures. */
#ifndef DUET_COMPAT_BPF_H
#define DUET_COMPAT_BPF_H

#include "core.bpf.h"

#define PF_EXITING 0x00000004 /* include/linux/sched.h */
#define PF_KTHREAD 0x00200000
#define EBUSY 16

/*
 * Where the task entered the kernel. The helper is of 5.15. Before, the
 * registers end at the top of the kernel stack, on x86-64 (padding came with FRED,
 * 6.9) and on arm64 alike.
 */
static __always_inline struct pt_regs *task_user_regs(struct task_struct *task)
{
	if (duet_config.has_task_pt_regs)
		return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(task, stack) + duet_config.kernel_stack_bytes - bpf_core_type_size(struct pt_regs);
}

/* Number of the system call that these registers entered by; negative for an exception or interrupt. */
static __always_inline s64 regs_syscall(struct pt_regs *regs)
{
#ifdef __TARGET_ARCH_x86
	return BPF_CORE_READ(regs, orig_ax);
#else
	return BPF_CORE_READ(regs, syscallno);
#endif
}

/* Where the caller's pc may still be; x86-64 has it on the stack. The context of a program is read as it is. */
static __always_inline u64 regs_link(const bpf_user_pt_regs_t *regs)
{
#ifdef __TARGET_ARCH_x86
	return 0;
#else
	return PT_REGS_RET(regs);
#endif
}

static __always_inline u64 regs_link_core(struct pt_regs *regs)
{
#ifdef __TARGET_ARCH_x86
	return 0;
#else
	return PT_REGS_RET_CORE(regs);
#endif
}

static __always_inline bool task_in_exec(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/*
 * Is one of the cgroups from `cgroup` upwards the one with this id. From below: most tasks of a target stand in it or
 * right under it. Not by the helper for the ancestors of the current task: perf_event programs may not call it before
 * Linux 5.15. One loop for each form: clang would read the field that is not there in front of a common one.
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

#endif
