/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel and user stack of the interrupted thread, and the registers it returns to user mode with. */
#ifndef DUET_STACK_BPF_H
#define DUET_STACK_BPF_H

#include "compat.bpf.h"

/* Kernel addresses have the top bit set on both architectures. */
static __always_inline bool stack_in_kernel(struct bpf_perf_event_data *ctx)
{
	return (s64)PT_REGS_IP(&ctx->regs) < 0;
}

static __always_inline void stack_user_regs(struct bpf_perf_event_data *ctx, struct task_struct *task,
					    struct duet_sample *sample)
{
	if (!(sample->flags & DUET_SAMPLE_KERNEL)) {
		sample->user_pc = PT_REGS_IP(&ctx->regs);
		sample->user_sp = PT_REGS_SP(&ctx->regs);
	} else if (BPF_CORE_READ(task, mm) && !(BPF_CORE_READ(task, flags) & PF_KTHREAD)) {
		struct pt_regs *regs = task_user_regs(task);

		sample->user_pc = PT_REGS_IP_CORE(regs);
		sample->user_sp = PT_REGS_SP_CORE(regs);
	}
	if (sample->user_pc)
		sample->flags |= DUET_SAMPLE_USER_REGS;
}

/*
 * Frames written to `stack`, at most `depth`. The bound is checked here again
 * because the verifier follows it into the caller's address arithmetic.
 */
static __always_inline u32 stack_read(struct bpf_perf_event_data *ctx, u64 *stack, u32 depth, u64 flags,
				      enum duet_bpf_counter loss)
{
	long bytes;

	if (depth > DUET_MAX_STACK)
		depth = DUET_MAX_STACK;
	bytes = bpf_get_stack(ctx, stack, depth * sizeof(u64), flags);
	if (bytes < 0) {
		duet_count(loss);
		return 0;
	}
	depth = (u32)bytes / sizeof(u64);
	return depth > DUET_MAX_STACK ? DUET_MAX_STACK : depth;
}

/* Fills sample->stack, which has room for twice DUET_MAX_STACK; returns the frames of both. */
static __always_inline u32 stack_fill(struct bpf_perf_event_data *ctx, struct duet_sample *sample)
{
	u32 kernel = 0, user = 0;

	if (duet_config.kernel_stack_depth && sample->flags & DUET_SAMPLE_KERNEL)
		kernel = stack_read(ctx, sample->stack, duet_config.kernel_stack_depth, 0, DUET_BPF_NO_KERNEL_STACK);
	if (duet_config.user_stack_depth && sample->flags & DUET_SAMPLE_USER_REGS)
		user = stack_read(ctx, sample->stack + kernel, duet_config.user_stack_depth, BPF_F_USER_STACK,
				  DUET_BPF_NO_USER_STACK);
	sample->kernel_depth = kernel;
	sample->user_depth = user;
	return kernel + user;
}

#endif
