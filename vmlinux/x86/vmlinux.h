/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel types that bpf/ touches, x86-64; see ../README.md. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#include "../common.h"

/*
 * The part up to `sp` is the ptrace ABI. `cs` and `ss` are left out on purpose:
 * 6.9 (FRED) narrowed them to 16 bits inside a union, and the verifier refuses a
 * 2-byte read of a perf_event context.
 */
struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long __cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long __ss;
};

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct thread_info {
	unsigned int status;
} __attribute__((preserve_access_index));

struct task_struct___x86 {
	struct thread_info thread_info;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

typedef struct pt_regs bpf_user_pt_regs_t;

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

#endif
