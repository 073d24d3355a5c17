/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What HotSpot's frames look like in machine code and registers, on the architecture that is built for: here it is
 * chosen, and what both have in common.
 */
#ifndef DUET_FRAME_H
#define DUET_FRAME_H

#include "duet_types.h"

#ifndef WALK_X86 /* a test has chosen */
#if defined(__TARGET_ARCH_x86) || (defined(__x86_64__) && !defined(__bpf__))
#define WALK_X86 1
#else
#define WALK_X86 0
#endif
#endif

#define DUET_FRAME_CODE_BYTES 64 /* of machine code that the functions are given */
#define DUET_FRAME_PROLOGUE_BYTES 64 /* this far behind its entry a method may still be in its prologue */

/* Else the functions return how many bytes above sp the return address lies; 0: nothing of a frame is made, or left. */
#define DUET_FRAME_BUILT (-1)
#define DUET_FRAME_FP_UNSAVED (-2) /* sp is where it will be, but the caller's fp is still in its register only */

/* How much of its frame a method has, in the interpreter's code that enters it. */
enum duet_frame_made {
	DUET_FRAME_MADE, /* by fp; on x86-64, what is not pushed yet lies below sp */
	DUET_FRAME_MADE_NOTHING, /* the return address is where the call has put it */
	DUET_FRAME_MADE_POPPED, /* x86-64: it is in a register */
	DUET_FRAME_MADE_FP_PUSHED, /* x86-64: on top of it, the caller's fp */
	DUET_FRAME_MADE_UNSENT, /* arm64: by fp, but the caller's sp is still in its register only */
	DUET_FRAME_MADE_NEVER, /* an entry that does its work without a frame: mathematics, method handles */
};

/* What a method has on the stack in one of the stubs behind its code. */
enum duet_frame_stub {
	DUET_STUB_OTHER, /* not known */
	DUET_STUB_CALLED, /* what it calls has nothing but the return address */
	DUET_STUB_FRAMED, /* its frame */
	DUET_STUB_PUSHED, /* and a word more */
};

/* How the interpreter leaves a method. fp is the caller's, unless it is on the stack, below the return address. */
struct duet_frame_exit {
	uint8_t to; /* register with the return address, */
	uint8_t is_on_stack; /* which is on the stack still: on top of it, or (arm64) of fp */
	uint8_t sp; /* register with the caller's sp, */
	uint8_t has_sp; /* which sp is already */
};

/* The operand of an instruction, which nothing aligns. */
static inline uint64_t walk_operand(const uint8_t *at, uint32_t width)
{
	int32_t half;
	uint64_t whole;

	if (width == 4) {
		__builtin_memcpy(&half, at, sizeof(half));
		return (uint64_t)(int64_t)half;
	}
	__builtin_memcpy(&whole, at, sizeof(whole));
	return whole;
}

#if WALK_X86
#include "duet_frame_x86.h"
#else
#include "duet_frame_arm64.h"
#endif

#endif
