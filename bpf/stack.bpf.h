/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel and user stack of the current thread, and its user-mode registers. */
#pragma once

#include "compat.bpf.h"
#include "unwind_java.bpf.h"
#include "unwind_loop.bpf.h"

/* Where the kernel frames of a sample come from. */
enum stack_kernel_source {
	STACK_NO_KERNEL, /* there are none: they would be those of the tracing */
	STACK_OF_CONTEXT, /* from the program's context */
	STACK_OF_TRACEPOINT, /* the same, without the STACK_TRACING_FRAMES */
	STACK_KEPT, /* from stack_keep(), which another program has called */
};

/*
 * The leaf frames in a raw tracepoint: sample_begin(), the program that calls it, and the kernel's bpf_trace_run*(). On
 * arm64 there are two more of the kernel's.
 */
#ifdef __TARGET_ARCH_x86
#define STACK_TRACING_FRAMES 3
#else
#define STACK_TRACING_FRAMES 5
#endif

/* The kernel frames of a thread that has slept, leaf first. */
struct stack_kept {
	u64 depth;
	u64 frames[DUET_MAX_STACK];
};

/* By tid. The number of entries is that of threads between two hooks, not of threads. */
DUET_MAP(offcpu_kernels, LRU_HASH, 2048, u32, struct stack_kept);

/* To build an entry of the other map. */
DUET_MAP(offcpu_kernel, PERCPU_ARRAY, 1, u32, struct stack_kept);

/* A run of a program, and where it finds the stacks and registers of the current thread. */
struct sample_from {
	void *ctx; /* the program's context, from which bpf_get_stack() takes the kernel stack */
	/*
	 * Registers in the context; NULL: the context has none, and the thread is in the kernel. They are the thread's
	 * registers in user mode (a tick, a uprobe) or in the kernel (a tick, a kprobe).
	 */
	const bpf_user_pt_regs_t *regs;
	u64 began_ns;
	u32 event; /* index of the event that the program samples */
	enum stack_kernel_source kernel;
};

/* Kernel addresses have the top bit set on both architectures. */
static __always_inline bool stack_in_kernel(const struct sample_from *from)
{
	return !from->regs || (s64)PT_REGS_IP(from->regs) < 0;
}

/*
 * Stores the thread's user-mode registers in the sample and as the first frame of the walk. While the thread is in the
 * kernel, all of them are on its kernel stack.
 */
static __always_inline void stack_user_regs(const struct sample_from *from, struct task_struct *task,
					    struct duet_scratch *room)
{
	struct unwind_cursor cursor = {.has_lr = 1};

	if (from->regs && !(room->sample.flags & DUET_SAMPLE_KERNEL)) {
		cursor.pc = PT_REGS_IP(from->regs);
		cursor.sp = PT_REGS_SP(from->regs);
		cursor.fp = PT_REGS_FP(from->regs);
		unwind_java_regs(&room->java, from->regs);
	} else if (BPF_CORE_READ(task, mm) && !(BPF_CORE_READ(task, flags) & PF_KTHREAD)) {
		struct pt_regs *regs = task_user_regs(task);

		cursor.pc = PT_REGS_IP_CORE(regs);
		cursor.sp = PT_REGS_SP_CORE(regs);
		cursor.fp = PT_REGS_FP_CORE(regs);
		unwind_java_regs_core(&room->java, regs);
	}
	cursor.lr = room->java.regs[DUET_FRAME_LINK];
	room->cursor = cursor;
	room->sample.user_pc = cursor.pc;
	room->sample.user_sp = cursor.sp;
	if (cursor.pc)
		room->sample.flags |= DUET_SAMPLE_USER_REGS;
}

/*
 * Writes the kernel frames to `stack`, except `skip` of the leaf, and returns their number. The bound is checked again
 * here because the verifier follows it into the caller's address arithmetic.
 */
static __always_inline u32 stack_kernel(void *ctx, u64 *stack, u64 skip)
{
	u32 depth = duet_config.kernel_stack_depth;
	long bytes;

	if (depth > DUET_MAX_STACK)
		depth = DUET_MAX_STACK;
	bytes = bpf_get_stack(ctx, stack, depth * sizeof(u64), skip);
	if (bytes < 0) {
		duet_count(DUET_BPF_NO_KERNEL_STACK);
		return 0;
	}
	depth = (u32)bytes / sizeof(u64);
	return depth > DUET_MAX_STACK ? DUET_MAX_STACK : depth;
}

/* Writes the kernel frames of a thread that does not run to `stack`. Returns their number, or 0. */
static __always_inline u32 stack_of_task(struct task_struct *task, u64 *stack)
{
	u32 depth = duet_config.kernel_stack_depth;
	long bytes;

	if (depth > DUET_MAX_STACK)
		depth = DUET_MAX_STACK;
	bytes = bpf_get_task_stack(task, stack, depth * sizeof(u64), 0);
	return bytes > 0 ? (u32)bytes / sizeof(u64) : 0;
}

/* Keeps the kernel stack of a thread that does not run. Call with interrupts disabled: the CPU has one buffer. */
static __always_inline void stack_keep(struct task_struct *task)
{
	u32 key = 0, tid = task->pid;
	struct stack_kept *kept = duet_config.kernel_stack_depth ? bpf_map_lookup_elem(&offcpu_kernel, &key) : NULL;

	if (!kept)
		return;
	kept->depth = stack_of_task(task, kept->frames);
	if (!kept->depth)
		return; /* counted when the sample looks for it */
	bpf_map_update_elem(&offcpu_kernels, &tid, kept, BPF_ANY);
}

/* Moves the kept kernel frames of the current thread to `stack`, and returns their number. */
static __always_inline u32 stack_kept(u64 *stack)
{
	u32 tid = (u32)bpf_get_current_pid_tgid(), depth;
	struct stack_kept *kept = bpf_map_lookup_elem(&offcpu_kernels, &tid);

	if (!kept) {
		duet_count(DUET_BPF_NO_KERNEL_STACK);
		return 0;
	}
	depth = kept->depth < DUET_MAX_STACK ? kept->depth : DUET_MAX_STACK;
	if (bpf_probe_read_kernel(stack, depth * sizeof(u64), kept->frames))
		depth = 0;
	bpf_map_delete_elem(&offcpu_kernels, &tid);
	return depth;
}

/* Sets the process's slice of the unwind tables, if the loader has made one for the process or for its parent. */
static __always_inline void stack_find_tables(struct duet_scratch *room)
{
	u64 start_ticks = duet_ticks(room->sample.start_ns);
	struct duet_unwind_process *process = unwind_own_tables(room->sample.head.tgid, start_ticks);

	if (!process)
		process = unwind_inherited_tables(room->sample.head.tgid, start_ticks);
	room->mapping = (struct duet_unwind_mapping){};
	room->unpublished = (struct duet_unwind_mapping){};
	room->asked = 0;
	room->process = (struct duet_unwind_process){};
	if (process)
		room->process = *process;
}

/* Fills in the kernel stack, which comes first in the record. */
static __always_inline void stack_fill_kernel(const struct sample_from *from, struct duet_scratch *room)
{
	u32 kernel = 0;

	if (!duet_config.kernel_stack_depth || !(room->sample.flags & DUET_SAMPLE_KERNEL))
		kernel = 0;
	else if (from->kernel == STACK_OF_CONTEXT)
		kernel = stack_kernel(from->ctx, room->sample.stack, 0);
	else if (from->kernel == STACK_OF_TRACEPOINT)
		kernel = stack_kernel(from->ctx, room->sample.stack, STACK_TRACING_FRAMES);
	else if (from->kernel == STACK_KEPT)
		kernel = stack_kept(room->sample.stack);
	room->sample.kernel_depth = kernel;
}

/* A thread in do_exit() behind exit_mm(). The sample is whole: it needs no signal. */
static __always_inline void stack_of_exiting(struct duet_sample *sample)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if ((BPF_CORE_READ(task, flags) & (PF_EXITING | PF_KTHREAD)) != PF_EXITING || BPF_CORE_READ(task, mm))
		return;
	sample->walk_end = DUET_WALK_EXITING;
	sample->flags |= DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_WALKED;
}

static __always_inline void stack_fill_user(struct duet_scratch *room)
{
	if (!duet_config.user_stack_depth)
		return;
	if (!(room->sample.flags & DUET_SAMPLE_USER_REGS))
		return stack_of_exiting(&room->sample);
	stack_find_tables(room);
	unwind_java_begin(room);
	unwind_user(room);
	if (room->java.layout.call_stub_return)
		unwind_java_virtual(room->level);
}

/* Appends the frame ids. Returns the size of the whole sample. The bounds are checked again for the verifier. */
static __always_inline u32 stack_bytes(struct duet_scratch *room)
{
	u32 kernel = room->sample.kernel_depth, user = room->sample.user_depth;
	u32 ids = room->sample.id_depth, bytes;

	if (kernel > DUET_MAX_STACK || user > DUET_MAX_USER_STACK || ids > DUET_MAX_USER_STACK)
		return 0;
	bytes = (kernel + user) * sizeof(u64);
	ids = (ids + 1) / 2 * sizeof(u64);
	if (ids)
		bpf_probe_read_kernel((void *)room->sample.stack + bytes, ids, room->ids);
	return bytes + ids;
}
