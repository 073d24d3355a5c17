// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for tracepoints and for probes of functions, in the kernel and in files. A program samples the thread that
 * reached the place. No thread is signalled: it may be in a system call, which would end with EINTR.
 */
#include "core.bpf.h"
#include "sample.bpf.h"

/* Returns the value of the field that is the weight of a hit; 0 if it is negative or cannot be read. */
static __always_inline u64 probe_field(void *ctx, const volatile struct duet_event *event)
{
	u32 bits = 64 - 8 * event->field_bytes, bytes = event->field_bytes & 15;
	u64 value = 0;

	if (bytes > sizeof(value) || bpf_probe_read_kernel(&value, bytes, ctx + event->field_offset))
		return 0;
	if (!event->field_is_signed)
		return value;
	value = (s64)(value << (bits & 63)) >> (bits & 63);
	return (s64)value > 0 ? value : 0;
}

SEC("?tracepoint")
int tracepoint_hit(void *ctx)
{
	u32 index = sample_event(ctx, DUET_PROGRAM_TRACEPOINT);
	const volatile struct duet_event *event = duet_event(index);
	const struct sample_from from = {
		.ctx = ctx,
		.began_ns = bpf_ktime_get_ns(),
		.event = index,
		.kernel = event->no_kernel_stack ? STACK_NO_KERNEL : STACK_OF_CONTEXT,
	};

	if (event->field_bytes)
		return sample_take_chosen(&from, probe_field(ctx, event));
	return sample_take_one(&from);
}

SEC("?kprobe")
int probe_hit(struct pt_regs *ctx)
{
	const struct sample_from from = {
		.ctx = ctx,
		.regs = (const bpf_user_pt_regs_t *)ctx,
		.began_ns = bpf_ktime_get_ns(),
		.event = sample_event(ctx, DUET_PROGRAM_PROBE),
		.kernel = STACK_OF_CONTEXT,
	};

	return sample_take_one(&from);
}

char LICENSE[] SEC("license") = "GPL";
