/* SPDX-License-Identifier: GPL-2.0-only */
/* One step in the JVM's own code, for processes whose layout the loader has published. */
#pragma once

#include "unwind.bpf.h"

/* Called after the walk. Stores in the sample which virtual thread was mounted on its thread. */
int unwind_java_virtual(u32 level);
/*
 * Called after the walk, whose state it replaces. Returns 1 if the interrupted instruction is one of a vtable or itable
 * stub, which finds the method that a virtual call runs.
 */
int unwind_java_dispatches(u32 level);

/*
 * Stores the user-mode registers by their number in machine code; the interpreter keeps its state in some of them.
 * `regs` may be in a program's context.
 */
static __always_inline void unwind_java_regs(struct walk_java *java, const bpf_user_pt_regs_t *regs)
{
#ifdef __TARGET_ARCH_x86
	u64 *to = java->regs;

	to[0] = regs->ax, to[1] = regs->cx, to[2] = regs->dx, to[3] = regs->bx;
	to[4] = regs->sp, to[5] = regs->bp, to[6] = regs->si, to[7] = regs->di;
	to[8] = regs->r8, to[9] = regs->r9, to[10] = regs->r10, to[11] = regs->r11;
	to[12] = regs->r12, to[13] = regs->r13, to[14] = regs->r14, to[15] = regs->r15;
#else
#pragma unroll /* the verifier allows no computed offset into a program's context */
	for (int i = 0; i < DUET_FRAME_REGISTERS - 1; i++) {
		java->regs[i] = regs->regs[i];
		/* otherwise the compiler loads all before it stores the first, and spills them to the BPF stack */
		__asm__ volatile("" ::: "memory");
	}
#endif
}

static __always_inline void unwind_java_regs_core(struct walk_java *java, struct pt_regs *regs)
{
	/* unused until the first step; the BPF stack is too small for the copy */
	bpf_user_pt_regs_t *copy = (void *)java->head;

	/* On arm64, the kernel's struct pt_regs begins with struct user_pt_regs. */
	if (bpf_probe_read_kernel(copy, sizeof(*copy), regs))
		__builtin_memset(copy, 0, sizeof(*copy));
	unwind_java_regs(java, copy);
	/* Else the compiler merges the last loads with those from a program's context, which the verifier rejects. */
	__asm__ volatile("" ::: "memory");
}

/* Prepares a walk: takes the layout of the sample's process, or an empty one, and resets the state. */
static __always_inline void unwind_java_begin(struct duet_scratch *room)
{
	struct duet_jvm_entry *entry = NULL;

	if (room->sample.flags & DUET_SAMPLE_JVM)
		entry = bpf_map_lookup_elem(&jvm_layouts, &room->sample.head.tgid);
	if (entry && entry->start_ticks == duet_ticks(room->sample.start_ns))
		room->java.layout = entry->layout;
	else
		__builtin_memset(&room->java.layout, 0, sizeof(room->java.layout));
	room->safepoints = 0;
	if (room->java.layout.safepoints &&
	    !walk_read_word(&room->java, &room->safepoints, room->java.layout.safepoints))
		room->safepoints++;
	room->sample.unloads = 0;
	if (room->java.layout.unloads &&
	    !walk_read_word(&room->java, &room->sample.unloads, room->java.layout.unloads))
		room->sample.unloads++;
	room->java.thread = walk_java_owns(&room->java, room->cursor.pc) ? room->java.regs[DUET_FRAME_THREAD] : 0;
	walk_java_begin(&room->java);
}
