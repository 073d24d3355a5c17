/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets over the loopback device. A thread that sends one only queues it; a softirq on the same CPU delivers it, and
 * wakes the receiver. The kernel runs that softirq in the sender's system call, before the call continues. So the
 * sender is the waker, although an interrupt does the work. The packets of other threads and of devices may wait in the
 * same queue. Therefore it is noted whose packet each one is.
 */
#pragma once

#include "compat.bpf.h"

#define PACKETS 128 /* a power of 2; of two packets in one row, the older one has no sender */

struct loop_packet {
	u64 skb; /* address of the packet */
	u64 sender; /* address of the thread that has sent it; 0: an interrupt has */
	u64 user_pc, user_sp; /* of the system call that has sent it */
};

struct packets {
	struct loop_packet queued[PACKETS];
	struct loop_packet arriving; /* what the softirq delivers; without sender: another packet, or none */
	u64 in_softirq; /* 1: the CPU runs a softirq */
};

DUET_MAP(packets, PERCPU_ARRAY, 1, u32, struct packets);

static __always_inline struct packets *packets_of_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&packets, &key);
}

/*
 * Returns true if this thread has sent the packet that the current softirq delivers, and is still in the system call
 * that has sent it: then its user stack is that of the sender.
 */
static __always_inline bool packets_are_of(struct task_struct *task)
{
	const struct packets *own = packets_of_cpu();
	struct pt_regs *regs = task_user_regs(task);

	return own && own->arriving.sender == (u64)task && own->arriving.user_pc == PT_REGS_IP_CORE(regs) &&
	       own->arriving.user_sp == PT_REGS_SP_CORE(regs);
}
