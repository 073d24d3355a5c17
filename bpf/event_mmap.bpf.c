// SPDX-License-Identifier: GPL-2.0-only
/*
 * Program for address space. It runs when a thread has entered the kernel for a system call. A call that asks for more
 * address space is sampled by the bytes it asks for. That the call may fail is not known yet.
 */
#include "core.bpf.h"
#include "sample.bpf.h"

/* include/uapi/asm-generic/unistd.h, arch/x86/entry/syscalls/syscall_64.tbl */
#ifdef __TARGET_ARCH_x86
#define SYSCALL_MMAP 9
#define SYSCALL_BRK 12
#define SYSCALL_MREMAP 25
#else
#define SYSCALL_BRK 214
#define SYSCALL_MREMAP 216
#define SYSCALL_MMAP 222
#endif

static __always_inline u64 mmap_growth(u64 new_bytes, u64 old_bytes)
{
	return new_bytes > old_bytes ? new_bytes - old_bytes : 0;
}

static __always_inline u64 mmap_brk(u64 end)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return mmap_growth(end, BPF_CORE_READ(task, mm, brk));
}

static __always_inline u64 mmap_bytes(struct pt_regs *regs, u64 call)
{
	switch (call) {
	case SYSCALL_MMAP:
		return PT_REGS_PARM2_CORE_SYSCALL(regs);
	case SYSCALL_BRK:
		return mmap_brk(PT_REGS_PARM1_CORE_SYSCALL(regs));
	case SYSCALL_MREMAP:
		return mmap_growth(PT_REGS_PARM3_CORE_SYSCALL(regs), PT_REGS_PARM2_CORE_SYSCALL(regs));
	default:
		return 0;
	}
}

SEC("?raw_tracepoint/sys_enter")
int mmap_enter(struct bpf_raw_tracepoint_args *ctx)
{
	const struct sample_from from = {
		.ctx = ctx,
		.began_ns = bpf_ktime_get_ns(),
		.event = duet_config.event_of[DUET_PROGRAM_MMAP],
	};
	u64 bytes = mmap_bytes((struct pt_regs *)ctx->args[0], ctx->args[1]);

	return bytes ? sample_take_chosen(&from, bytes) : 0;
}

char LICENSE[] SEC("license") = "GPL";
