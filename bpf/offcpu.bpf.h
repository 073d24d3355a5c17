/* SPDX-License-Identifier: GPL-2.0-only */
/* What is kept of a thread from when it leaves its CPU until its sleep is sampled. */
#ifndef DUET_OFFCPU_BPF_H
#define DUET_OFFCPU_BPF_H

#include "core.bpf.h"

struct offcpu_thread {
	u64 left_ns; /* when it left its CPU; 0: it has one */
	u64 slept_ns; /* its last sleep */
	u64 weight; /* of its last sleep, if that must be sampled; else 0 */
	u64 run_delay; /* the kernel's sum of its waits for a CPU, before the last sleep */
	u64 user_pc, user_sp; /* when it left; 0: not known */
	/* weights of sleeps that were not sampled because of the load or the memory: for the thread's next sample */
	u64 owed, owed_runnable;
	u64 is_runnable; /* 1: it did not wait for anything but a CPU */
};

/* Storage of a task ends with the task. The kernel allocates it in any context since Linux 6.4. */
struct duet_offcpu_threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct offcpu_thread);
};
extern struct duet_offcpu_threads_map offcpu_threads SEC(".maps");

#endif
