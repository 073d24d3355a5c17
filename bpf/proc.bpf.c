// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports exec and exit of processes to the loader, and makes sure that such a process is not signalled any more. Also
 * follows forks and reports new cgroups. The programs use raw tracepoints, which need no tracefs.
 */
#include "core.bpf.h"
#include "filter.bpf.h"
#include "unwind_native.bpf.h"

/*
 * Deletes what the maps hold about the process, except its row in `targets`. Returns true if the loader knows the
 * process.
 */
static __always_inline bool proc_forget(u32 tgid, u64 start_ns)
{
	bool was_jvm = bpf_map_delete_elem(&jvms, &tgid) == 0;
	bool was_known = bpf_map_delete_elem(&jvm_layouts, &tgid) == 0;
	bool was_seen = bpf_map_delete_elem(&seen, &tgid) == 0;
	/* the loader makes tables for those that it knows; others may have pushed the process out of `seen` */
	bool had_tables = bpf_map_delete_elem(&unwind_processes, &tgid) == 0;

	bpf_map_delete_elem(&lock_waiters, &tgid);
	bpf_map_delete_elem(&unwind_heirs, &tgid);
	bpf_map_delete_elem(&contexts, &tgid);
	bpf_map_delete_elem(&unwind_learnt, &tgid);
	return was_jvm || was_known || was_seen || had_tables || filter_is_target(tgid, start_ns);
}

static __always_inline void proc_report(struct task_struct *task, enum duet_record_type type)
{
	u64 start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	struct duet_process_record record = {};
	struct filter_ids ids = {};

	if (!filter_identify(task, bpf_get_current_pid_tgid(), &ids) || !proc_forget(ids.tgid, start_ns))
		return;
	if (type == DUET_RECORD_EXEC)
		filter_mark_seen(ids.tgid);
	else
		bpf_map_delete_elem(&targets, &ids.tgid);
	duet_begin(&record.head, type, sizeof(record), bpf_ktime_get_ns(), ids.tgid, ids.tid);
	record.start_ns = start_ns;
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	duet_emit(&record.head, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

SEC("raw_tracepoint/sched_process_exec")
int on_process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	proc_report((struct task_struct *)bpf_get_current_task(), DUET_RECORD_EXEC);
	return 0;
}

/*
 * Runs once for each thread that exits. The kernel decrements `live` before this tracepoint, so the process has ended
 * when `live` is 0.
 */
SEC("raw_tracepoint/sched_process_exit")
int on_process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		proc_report(task, DUET_RECORD_EXIT);
	return 0;
}

/*
 * Makes a child of a target a target too, if follow_forks is set (a command profiled from its start). Also lets any
 * child use its parent's unwind tables. A new thread has its leader's tgid and is ignored.
 */
SEC("raw_tracepoint/sched_process_fork")
int on_process_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx->args[0];
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	u64 parent_start_ns = BPF_CORE_READ(parent, group_leader, start_boottime);
	u64 start_ticks = duet_ticks(BPF_CORE_READ(child, group_leader, start_boottime));
	u32 parent_tgid = filter_tgid(parent), tgid = filter_tgid(child);

	if (!tgid || tgid == parent_tgid)
		return 0;
	unwind_bequeath(parent_tgid, duet_ticks(parent_start_ns), tgid, start_ticks);
	if (!duet_config.follow_forks || !filter_is_target(parent_tgid, parent_start_ns))
		return 0;
	if (bpf_map_update_elem(&targets, &tgid, &start_ticks, BPF_ANY))
		duet_count(DUET_BPF_TARGETS_FULL);
	return 0;
}

/*
 * Reports a new cgroup of cgroup v2, whose hierarchy id is 0. A path that does not fit is not reported, since a cut
 * path would be a guess.
 */
SEC("raw_tracepoint/cgroup_mkdir")
int on_cgroup_made(struct bpf_raw_tracepoint_args *ctx)
{
	struct cgroup *cgroup = (struct cgroup *)ctx->args[0];
	u64 ids = bpf_get_current_pid_tgid();
	struct duet_cgroup_record record = {};
	long len;

	if (BPF_CORE_READ(cgroup, root, hierarchy_id))
		return 0;
	duet_begin(&record.head, DUET_RECORD_CGROUP, sizeof(record), bpf_ktime_get_ns(), ids >> 32, (u32)ids);
	record.id = BPF_CORE_READ(cgroup, kn, id);
	len = bpf_probe_read_kernel_str(record.path, sizeof(record.path), (const void *)ctx->args[1]);
	if (len > 0 && len < DUET_MAX_CGROUP_PATH)
		duet_emit(&record.head, sizeof(record), duet_wakeup_flag());
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
