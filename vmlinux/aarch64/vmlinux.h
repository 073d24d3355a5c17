/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel types that bpf/ touches, arm64; see ../README.md. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#include "../common.h"

/* The ptrace ABI. */
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

/* Kernel-internal: what follows user_regs has moved between versions. */
struct pt_regs {
	struct user_pt_regs user_regs;
	s32 syscallno;
} __attribute__((preserve_access_index));

struct thread_info {
	u64 preempt_count; /* the upper half says whether to schedule */
} __attribute__((preserve_access_index));

struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
} __attribute__((preserve_access_index));

struct task_struct___arm64 {
	struct thread_info thread_info;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

typedef struct user_pt_regs bpf_user_pt_regs_t;

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

#endif
