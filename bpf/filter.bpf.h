/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the process and thread of a sample and decides whether the sample is wanted. */
#pragma once

#include "compat.bpf.h"

#define MAX_PID_NS_LEVEL 32 /* include/linux/pid_namespace.h */

/* The ids of one thread in two pid namespaces. */
struct filter_ids {
	u32 tgid; /* in the loader's pid namespace */
	u32 tid;
	u32 ns_tgid; /* in the thread's own pid namespace */
	u32 ns_tid;
};

static __always_inline int filter_read_upid(struct upid *upid, struct pid *pid, u32 level)
{
	return bpf_probe_read_kernel(upid, sizeof(*upid), (void *)&pid->numbers[0] + level * sizeof(*upid));
}

/* Returns the number of `pid` in the pid namespace `inum`, or 0 if it has none there. */
static __always_inline u32 filter_number_in(struct pid *pid, u64 inum)
{
	u32 depth = BPF_CORE_READ(pid, level);

	for (u32 level = 0; level <= MAX_PID_NS_LEVEL && level <= depth; level++) {
		struct upid upid = {};

		if (filter_read_upid(&upid, pid, level) == 0 && BPF_CORE_READ(upid.ns, ns.inum) == inum)
			return upid.nr;
	}
	return 0;
}

/*
 * Returns the number of `pid` in its own, innermost, namespace. `number` is its number in the initial namespace, which
 * is the innermost one for most processes.
 */
static __always_inline u32 filter_innermost(struct pid *pid, u32 number)
{
	u32 depth = BPF_CORE_READ(pid, level);
	struct upid upid = {};

	if (depth == 0 || depth > MAX_PID_NS_LEVEL)
		return number;
	return filter_read_upid(&upid, pid, depth) == 0 ? (u32)upid.nr : 0;
}

/*
 * Fills *ids. `pid_tgid` has the thread's numbers in the initial pid namespace, as bpf_get_current_pid_tgid() returns
 * them. Returns false if the thread has no number in the loader's pid namespace.
 */
static __always_inline bool filter_identify(struct task_struct *task, u64 pid_tgid, struct filter_ids *ids)
{
	struct pid *process = BPF_CORE_READ(task, group_leader, thread_pid);
	struct pid *thread = BPF_CORE_READ(task, thread_pid);

	ids->tgid = pid_tgid >> 32;
	ids->tid = (u32)pid_tgid;
	ids->ns_tgid = filter_innermost(process, ids->tgid);
	ids->ns_tid = filter_innermost(thread, ids->tid);
	if (duet_config.pidns_inum) {
		ids->tgid = filter_number_in(process, duet_config.pidns_inum);
		ids->tid = filter_number_in(thread, duet_config.pidns_inum);
	}
	return ids->tgid && ids->tid;
}

/* Returns the tgid of any task in the loader's pid namespace, or 0 if it has none there. */
static __always_inline u32 filter_tgid(struct task_struct *task)
{
	if (!duet_config.pidns_inum)
		return BPF_CORE_READ(task, tgid);
	return filter_number_in(BPF_CORE_READ(task, group_leader, thread_pid), duet_config.pidns_inum);
}

static __always_inline bool filter_is_target(u32 tgid, u64 start_ns)
{
	u64 *start_ticks = bpf_map_lookup_elem(&targets, &tgid);

	return start_ticks && *start_ticks == duet_ticks(start_ns);
}

/* Returns the entry of this process in `jvms`, or NULL if it is no JVM with an agent. */
static __always_inline struct duet_jvm_target *filter_jvm(u32 tgid, u64 start_ns)
{
	struct duet_jvm_target *jvm = bpf_map_lookup_elem(&jvms, &tgid);

	return jvm && jvm->start_ticks == duet_ticks(start_ns) ? jvm : NULL;
}

/* Marks the process as known to the loader, which without a list of targets learns of it from its first sample. */
static __always_inline void filter_mark_seen(u32 tgid)
{
	u8 yes = 1;

	if (!duet_config.filter_targets && !bpf_map_lookup_elem(&seen, &tgid))
		bpf_map_update_elem(&seen, &tgid, &yes, BPF_ANY);
}

static __always_inline bool filter_in_cgroup(struct task_struct *task)
{
	return cgroup_is_below(BPF_CORE_READ(task, cgroups, dfl_cgrp), duet_config.cgroup_id);
}

static __always_inline bool filter_has_comm(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	char comm[DUET_COMM_LEN] = {};

	bpf_core_read_str(comm, sizeof(comm), &leader->comm);
	for (u32 i = 0; i < sizeof(comm); i++) {
		if (comm[i] != duet_config.comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

/* Applies --cgroup, --container and --comm. */
static __always_inline bool filter_is_wanted(struct task_struct *task)
{
	return (!duet_config.cgroup_id || filter_in_cgroup(task)) && (!duet_config.comm[0] || filter_has_comm(task));
}

/* Returns true if the current thread must be sampled. */
static __always_inline bool filter_pass(struct task_struct *task, struct filter_ids *ids, u64 start_ns)
{
	if (bpf_get_current_pid_tgid() == 0 || !filter_is_wanted(task)) /* 0: the idle thread */
		return false;
	if (!filter_identify(task, bpf_get_current_pid_tgid(), ids)) {
		if (!duet_config.filter_targets)
			duet_count(DUET_BPF_NOT_VISIBLE);
		return false;
	}
	return !duet_config.filter_targets || filter_is_target(ids->tgid, start_ns);
}

/*
 * Returns the leader of the process that the thread counts for. A child of vfork() that has not executed its program
 * yet counts for its parent: it runs the parent's code in the parent's memory. Then *ids gets the parent's ids, but for
 * the thread's own.
 */
static __always_inline struct task_struct *filter_leader(struct task_struct *task, struct filter_ids *ids)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader), *parent;
	struct mm_struct *mm;
	u32 tgid;

	if (!(BPF_CORE_READ(leader, flags) & PF_FORKNOEXEC))
		return leader;
	parent = BPF_CORE_READ(leader, real_parent, group_leader);
	mm = BPF_CORE_READ(task, mm);
	if (!mm || mm != BPF_CORE_READ(leader, real_parent, mm))
		return leader;
	tgid = filter_tgid(parent);
	if (!tgid)
		return leader;
	ids->tgid = tgid;
	ids->ns_tgid = filter_innermost(BPF_CORE_READ(parent, thread_pid), BPF_CORE_READ(parent, tgid));
	return parent;
}
