/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What HotSpot's frames look like in machine code and registers. This header has what both architectures share, and
 * includes the header of the architecture for which the code is built.
 */
#pragma once

#include "duet_types.h"

#ifndef WALK_X86 /* unless a test has chosen */
#if defined(__TARGET_ARCH_x86) || (defined(__x86_64__) && !defined(__bpf__))
#define WALK_X86 1
#else
#define WALK_X86 0
#endif
#endif

#define DUET_FRAME_CODE_BYTES 64 /* of machine code that the functions are given */
#define DUET_FRAME_PROLOGUE_BYTES 64 /* a method may be in its prologue up to this distance from its entry */

/*
 * Results of duet_frame_prologue() and duet_frame_epilogue(). Other results are how many bytes above sp the return
 * address lies; 0: the frame is not begun yet, or has been left.
 */
#define DUET_FRAME_BUILT (-1)
#define DUET_FRAME_FP_UNSAVED (-2) /* sp has been moved, but the caller's fp is only in its register */

/* How much of its frame a method has, at an instruction of the interpreter's entry code. */
enum duet_frame_made {
	DUET_FRAME_MADE, /* found by fp; on x86-64, words that are not pushed yet lie below sp */
	DUET_FRAME_MADE_NOTHING, /* the return address is where the call has put it */
	DUET_FRAME_MADE_POPPED, /* x86-64: the return address is in a register */
	DUET_FRAME_MADE_FP_PUSHED, /* x86-64: the caller's fp is on top of the return address */
	DUET_FRAME_MADE_UNSENT, /* arm64: found by fp, but the caller's sp is only in its register */
	DUET_FRAME_MADE_NEVER, /* an entry that never makes a frame: mathematics, method handles */
};

/* What is on the stack when a compiled method runs one of the stubs after its code. */
enum duet_frame_stub {
	DUET_STUB_OTHER, /* not known */
	DUET_STUB_CALLED, /* only the return address: the stub is on the way to what the method calls */
	DUET_STUB_FRAMED, /* the method's frame */
	DUET_STUB_PUSHED, /* the method's frame, and a word on top of it */
};

/*
 * How the interpreter leaves a method. fp is the caller's, unless it is still on the stack, below the return address.
 */
struct duet_frame_exit {
	uint8_t to; /* register with the return address */
	uint8_t is_on_stack; /* the return address is on the stack: on top of it, or (arm64) of the saved fp */
	uint8_t sp; /* register with the caller's sp */
	uint8_t has_sp; /* sp is the caller's already */
};

/* The operand of an instruction; it need not be aligned. One of 4 bytes is extended with its sign. */
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
#include "walk/frame_x86.h"
#else
#include "walk/frame_arm64.h"
#endif
