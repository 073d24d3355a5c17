/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs keep of threads lies in the storage of the task, which ends with it, so that nobody's threads take the
 * room of others. Without it (config.state_by_tid) it lies in a map by tid, where old rows make room for new ones.
 */
#pragma once

#include "core.bpf.h"

#define OF_THREAD(name, value_type) \
	struct { \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE); \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__type(key, int); \
		__type(value, value_type); \
	} name SEC(".maps")

/* Returns what is kept of the current thread, or NULL. With `create` it is made, if there is memory: zeros. */
static __always_inline void *of_thread(void *storage, void *by_tid, const void *zeros, bool create)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	void *kept;

	if (!duet_config.state_by_tid)
		return bpf_task_storage_get(storage, bpf_get_current_task_btf(), NULL,
					    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	kept = bpf_map_lookup_elem(by_tid, &tid);
	if (kept || !create)
		return kept;
	bpf_map_update_elem(by_tid, &tid, zeros, BPF_ANY);
	return bpf_map_lookup_elem(by_tid, &tid);
}
