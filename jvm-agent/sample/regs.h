/* SPDX-License-Identifier: MIT */
/* The registers that matter for walking, as the interrupted thread had them. */
#ifndef SAMPLE_REGS_H
#define SAMPLE_REGS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

struct regs {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
	uintptr_t lr; /* aarch64: the link register; x86-64: as in struct unwind_cursor */
};

#if defined(__x86_64__)
static inline struct regs regs_get(const ucontext_t *context)
{
	const greg_t *gregs = context->uc_mcontext.gregs;

	return (struct regs){
		.pc = (uintptr_t)gregs[REG_RIP],
		.sp = (uintptr_t)gregs[REG_RSP],
		.fp = (uintptr_t)gregs[REG_RBP],
		.lr = (uintptr_t)gregs[REG_RDI],
	};
}

/* All general registers, indexed by their number in machine code. */
static inline void regs_get_general(const ucontext_t *context, uint64_t registers[16])
{
	static const uint8_t places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
					   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < 16; i++)
		registers[i] = (uint64_t)context->uc_mcontext.gregs[places[i]];
}

static inline void regs_set(ucontext_t *context, const struct regs *regs)
{
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)regs->pc;
	context->uc_mcontext.gregs[REG_RSP] = (greg_t)regs->sp;
	context->uc_mcontext.gregs[REG_RBP] = (greg_t)regs->fp;
}

/* struct rt_sigframe, arch/x86/include/asm/sigframe.h: return address, struct ucontext, siginfo */
#define SIGFRAME_CONTEXT 8
#define SIGFRAME_INFO (SIGFRAME_CONTEXT + 304)

/*
 * If the thread is at a handler's first instruction, returns the context that the handler was given, else NULL. The
 * signal frame is then at sp, and the handler's arguments are its number and the addresses of the frame's parts.
 */
static inline const ucontext_t *regs_handler_context(const ucontext_t *context)
{
	const greg_t *gregs = context->uc_mcontext.gregs;
	greg_t sp = gregs[REG_RSP];

	if (gregs[REG_RDX] != sp + SIGFRAME_CONTEXT || gregs[REG_RSI] != sp + SIGFRAME_INFO || gregs[REG_RDI] < 1 ||
	    gregs[REG_RDI] > 64)
		return NULL;
	return (const ucontext_t *)gregs[REG_RDX];
}
#elif defined(__aarch64__)
static inline struct regs regs_get(const ucontext_t *context)
{
	const mcontext_t *machine = &context->uc_mcontext;

	return (struct regs){
		.pc = machine->pc,
		.sp = machine->sp,
		.fp = machine->regs[29],
		.lr = machine->regs[30],
	};
}

/* All general registers, indexed by their number; there is no x31. */
static inline void regs_get_general(const ucontext_t *context, uint64_t registers[32])
{
	for (int i = 0; i < 31; i++)
		registers[i] = context->uc_mcontext.regs[i];
	registers[31] = 0;
}

static inline void regs_set(ucontext_t *context, const struct regs *regs)
{
	context->uc_mcontext.pc = regs->pc;
	context->uc_mcontext.sp = regs->sp;
	context->uc_mcontext.regs[29] = regs->fp;
	context->uc_mcontext.regs[30] = regs->lr;
}

/* The same with struct rt_sigframe of arch/arm64/kernel/signal.c: siginfo, struct ucontext. */
static inline const ucontext_t *regs_handler_context(const ucontext_t *context)
{
	const mcontext_t *machine = &context->uc_mcontext;

	if (machine->regs[1] != machine->sp || machine->regs[2] != machine->sp + sizeof(siginfo_t) ||
	    machine->regs[0] < 1 || machine->regs[0] > 64)
		return NULL;
	return (const ucontext_t *)machine->regs[2];
}
#endif

#define REGS_MAX_SIGNALS 4

/*
 * Returns the context of the code that was really interrupted. When other signals were delivered at the same return to
 * user mode, as JFR's, the kernel has stacked their handlers first: our context is at the last one's first instruction.
 */
static inline const ucontext_t *regs_interrupted(const ucontext_t *context)
{
	for (int i = 0; i < REGS_MAX_SIGNALS; i++) {
		const ucontext_t *below = regs_handler_context(context);

		if (!below)
			break;
		context = below;
	}
	return context;
}

/* A struct regs of the caller of the function that this stands in: its fp is the first word of that one's frame. */
#define REGS_OF_CALLER() \
	((struct regs){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)__builtin_dwarf_cfa(), \
		       .fp = *(const uintptr_t *)__builtin_frame_address(0)})

#endif
