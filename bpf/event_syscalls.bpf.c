// SPDX-License-Identifier: GPL-2.0-only
/*
 * Program for system calls. It runs when a thread of any process has entered the kernel for one. A clock's tick may
 * interrupt it. No thread is signalled: its call, which begins next, could end with EINTR.
 */
#include "core.bpf.h"
#include "sample.bpf.h"

SEC("?raw_tracepoint/sys_enter")
int syscalls(struct bpf_raw_tracepoint_args *ctx)
{
	const struct sample_from from = {
		.ctx = ctx,
		.began_ns = bpf_ktime_get_ns(),
		.event = duet_config.event_of[DUET_PROGRAM_SYSCALLS],
	};

	return sample_take_one(&from);
}

char LICENSE[] SEC("license") = "GPL";
