/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Like walk/frame_x86.h, for arm64. HotSpot's code stores x29 and x30, the caller's fp and the return address, at the
 * upper end of a frame. Before it stores them and after it loads them again, the return address is in x30, the link
 * register.
 */
#pragma once

#include "duet_jvm.h"
#include "walk/frame.h"

#define DUET_ARM64_RET 0xd65f03c0u
#define DUET_ARM64_NOP 0xd503201fu
#define DUET_ARM64_PUSH_FRAME 0xa9bf7bfdu /* stp x29, x30, [sp, #-16]! */
#define DUET_ARM64_POP_FRAME 0xa8c17bfdu /* ldp x29, x30, [sp], #16 */
#define DUET_ARM64_MOV_FP_SP 0x910003fdu
#define DUET_ARM64_SUB_SP_X8 0xcb2863ffu
#define DUET_ARM64_CMP_SP_X8 0xeb2863ffu
#define DUET_ARM64_BR_X8 0xd61f0100u

/* Returns an instruction. The mask shows the verifier the bound; the asm keeps the compiler from removing it. */
static inline uint32_t duet_insn(const uint8_t *code, uint32_t at)
{
	uint32_t insn;

	__asm__("" : "+r"(at));
	__builtin_memcpy(&insn, code + (at & (DUET_FRAME_CODE_BYTES - 4)), sizeof(insn));
	return insn;
}

static inline int duet_insn_is(uint32_t insn, uint32_t mask, uint32_t bits)
{
	return (insn & mask) == bits;
}

/* Does this lower sp: sub sp, sp, #n, also with n in units of 4096; sub sp, sp, x8? */
static inline int duet_insn_lowers_sp(uint32_t insn)
{
	return duet_insn_is(insn, 0xff8003ff, 0xd10003ff) || insn == DUET_ARM64_SUB_SP_X8;
}

/* Is this one of the instructions that sign lr, such as paciaz, or that check it? */
static inline int duet_insn_signs(uint32_t insn)
{
	return duet_insn_is(insn, 0xffffff1f, 0xd503231f);
}

/* Returns where this code ends, which follows the push of x29 and x30: [mov x29, sp] [mov $n, x8] sub $n, sp; or 0. */
static inline uint32_t duet_frame_lowered(const uint8_t *code, uint32_t at)
{
	for (int i = 0; i < 4; i++, at += 4) {
		uint32_t insn = duet_insn(code, at);

		if (duet_insn_lowers_sp(insn))
			return at + 4;
		/* movz, movk, movn, orr: x8 = n */
		if (insn != DUET_ARM64_MOV_FP_SP && !duet_insn_is(insn, 0x1f80001f, 0x12800008) &&
		    !duet_insn_is(insn, 0x7f8003ff, 0x320003e8))
			return 0;
	}
	return 0;
}

/*
 * Recognises how much of a method's prologue has run:
 *
 *	[nop] [bang: sub x9, sp, #n; str xzr, [x9]] sub sp, sp, #n; stp x29, x30, [sp, #n-16]
 *	stp x29, x30, [sp, #-16]!; [mov x29, sp] sub sp, sp, #n
 *
 * `code` begins at the method's entry; `done` bytes of it have run. Sets *ret_end to where the prologue ends.
 */
static inline int64_t duet_frame_prologue(const uint8_t *code, uint32_t done, uint32_t *ret_end)
{
	*ret_end = 0;
	for (uint32_t at = 0; at < DUET_FRAME_PROLOGUE_BYTES; at += 4) {
		uint32_t insn = duet_insn(code, at);

		if (done <= at)
			return 0;
		if (duet_insn_lowers_sp(insn)) {
			*ret_end = at + 8;
			return done == at + 4 ? DUET_FRAME_FP_UNSAVED : DUET_FRAME_BUILT;
		}
		if (insn == DUET_ARM64_PUSH_FRAME) {
			*ret_end = duet_frame_lowered(code, at + 4);
			return done == at + 4 || done < *ret_end ? 8 : DUET_FRAME_BUILT;
		}
	}
	return DUET_FRAME_BUILT;
}

/* Does this instruction store x29 and x30 in a frame that has room for them already: stp x29, x30, [sp, #n]? */
static inline int duet_frame_stores(uint32_t insn)
{
	return duet_insn_is(insn, 0xffc07fff, 0xa9007bfd);
}

/*
 * Does the code from `at` on, after a frame's end, check for a safepoint or an exception, and return? Poll: ldr x8,
 * [x28, #n]; cmp sp, x8; b.hi (JDK 16+), or ldr wzr, [x8] after that load or after an adrp. Exception: ldr x8; cbnz x8.
 * Execution may be at any of these instructions.
 */
static inline int duet_frame_returns(const uint8_t *code, uint32_t at)
{
	if (duet_insn_signs(duet_insn(code, at)))
		at += 4;
	if (duet_insn_is(duet_insn(code, at), 0xffc003ff, 0xf9400388) ||
	    duet_insn_is(duet_insn(code, at), 0x9f00001f, 0x90000008))
		at += 4;
	if (duet_insn(code, at) == DUET_ARM64_CMP_SP_X8)
		at += 4;
	if (duet_insn_is(duet_insn(code, at), 0xff00001f, 0x54000008) ||
	    duet_insn_is(duet_insn(code, at), 0xff00001f, 0xb5000008) ||
	    duet_insn_is(duet_insn(code, at), 0xffc003ff, 0xb940011f))
		at += 4;
	return duet_insn(code, at) == DUET_ARM64_RET;
}

/* Does the code jump from `at`: b; or adrp x8; add x8, x8, #n; br x8, beginning with any of them? */
static inline int duet_frame_jumps(const uint8_t *code, uint32_t at)
{
	if (duet_insn_is(duet_insn(code, at), 0xfc000000, 0x14000000))
		return 1;
	at += duet_insn_is(duet_insn(code, at), 0x9f00001f, 0x90000008) ? 4 : 0;
	at += duet_insn_is(duet_insn(code, at), 0xffc003ff, 0x91000108) ? 4 : 0;
	return duet_insn(code, at) == DUET_ARM64_BR_X8;
}

/*
 * Recognises how much of a frame is left in a method's epilogue. `code` begins at pc.
 *
 *	ldp x29, x30, [sp, #n-16]; add sp, sp, #n
 *	add sp, sp, #n; ldp x29, x30, [sp], #16
 *
 * Then come the poll and ret. When the poll is taken, the method's stub stores the poll's address and jumps: adr x8,
 * poll; str x8, [x28, #saved]; b.
 */
static inline int64_t duet_frame_epilogue(const uint8_t *code)
{
	uint32_t insn = duet_insn(code, 0), at = duet_insn_is(insn, 0x9f00001f, 0x10000008) ? 4 : 0;

	if (insn == DUET_ARM64_POP_FRAME)
		return 8;
	if (duet_insn_is(insn, 0xff8003ff, 0x910003ff))
		return duet_frame_returns(code, 4) ? DUET_FRAME_FP_UNSAVED : DUET_FRAME_BUILT;
	if (duet_frame_returns(code, 0))
		return 0;
	if (duet_insn_is(duet_insn(code, at), 0xffc003ff, 0xf9000388) && duet_frame_jumps(code, at + 4))
		return 0;
	return DUET_FRAME_BUILT;
}

/* Does a call precede this return address: bl, blr? `code` ends at the address, after `end` bytes. */
static inline int duet_code_calls(const uint8_t *code, uint32_t end)
{
	uint32_t insn = duet_insn(code, end - 4);

	return duet_insn_is(insn, 0xfc000000, 0x94000000) || duet_insn_is(insn, 0xfffffc1f, 0xd63f0000);
}

#define DUET_FRAME_CALL_BYTES 16 /* of the longest call sequence that contains its target */
#define DUET_FRAME_INDIRECT_BYTES 4

/* Returns what the code loads into x8, or 0: movz x8, #n; movk x8, #n, lsl #16; movk x8, #n, lsl #32. */
static inline uint64_t duet_frame_x8_moved(const uint8_t *code)
{
	uint32_t low = duet_insn(code, 0), middle = duet_insn(code, 4), high = duet_insn(code, 8);

	if (!duet_insn_is(low, 0xffe0001f, 0xd2800008) || !duet_insn_is(middle, 0xffe0001f, 0xf2a00008) ||
	    !duet_insn_is(high, 0xffe0001f, 0xf2c00008))
		return 0;
	return (uint64_t)(high >> 5 & 0xffff) << 32 | (middle >> 5 & 0xffff) << 16 | (low >> 5 & 0xffff);
}

/* Returns the target of the call before pc, where `code` ends: bl, or blr x8 after adrp, add or three moves; or 0. */
static inline uint64_t duet_frame_call_target(const uint8_t *code, uint64_t pc)
{
	uint32_t page = duet_insn(code, 4), low = duet_insn(code, 8), call = duet_insn(code, 12);

	if (duet_insn_is(call, 0xfc000000, 0x94000000))
		return pc - 4 + (uint64_t)((int64_t)(int32_t)(call << 6) >> 4);
	if (call != 0xd63f0100)
		return 0;
	if (duet_insn_is(page, 0x9f00001f, 0x90000008) && duet_insn_is(low, 0xffc003ff, 0x91000108)) {
		int64_t pages = (int64_t)(int32_t)((page >> 5 & 0x7ffff) << 13) >> 11 | (page >> 29 & 3);

		return ((pc - 12) & ~4095ull) + (uint64_t)(pages * 4096) + (low >> 10 & 4095);
	}
	return duet_frame_x8_moved(code);
}

/*
 * Is this a stub for a call? A call of a method that is not compiled goes through one of its caller's stubs: [isb] x12
 * = method; x8 = target; br x8. A call to a far target does too: ldr x8, target; br x8. The br x8 itself also occurs in
 * stubs that leave a whole frame, so it is not recognised.
 */
static inline int duet_frame_is_call_stub(const uint8_t *code)
{
	uint32_t insn = duet_insn(code, 0);

	if (insn == 0xd5033fdf || duet_insn_is(insn, 0xdf80001f, 0xd280000c))
		return 1;
	if (duet_insn_is(insn, 0xff00001f, 0x58000008))
		return duet_insn(code, 4) == DUET_ARM64_BR_X8;
	return duet_insn_is(insn, 0xdf80001f, 0xd2800008);
}

#define DUET_FRAME_STUB_BEFORE 0 /* bytes before pc of a method's stub that the function is given */

/*
 * Returns what is on the stack in a method's stub. The exception handler, bl or b, and the deoptimization handler, adr
 * lr, are entered with the whole frame.
 */
static inline enum duet_frame_stub duet_frame_stub(const uint8_t *code)
{
	uint32_t insn = duet_insn(code, 0);

	if (duet_frame_is_call_stub(code))
		return DUET_STUB_CALLED;
	return duet_insn_is(insn, 0x7c000000, 0x14000000) || duet_insn_is(insn, 0x9f00001f, 0x1000001e)
		       ? DUET_STUB_FRAMED
		       : DUET_STUB_OTHER;
}

/* Only x86-64 needs the next function: where an exception passes through the interpreter's code. */
static inline int duet_frame_find_thrown(const uint8_t *code, uint32_t bytes, struct duet_method_entry *ret)
{
	return 0;
}

/* Only x86-64 needs these: how code leaves a frame, and moves words in it. On arm64 the epilogue shows it. */
#define DUET_FRAME_LEFT_BYTES 8

static inline int duet_frame_jumps_on(const uint8_t *code)
{
	return 0;
}

static inline int duet_frame_has_left(const uint8_t *code)
{
	return 0;
}

static inline uint32_t duet_frame_moved_bytes(const uint8_t *code)
{
	return 0;
}

/* Has the wrapper of a native method pushed x29 and x30, and does it set its own frame pointer next: mov x29, sp? */
static inline int duet_frame_is_pushed(const uint8_t *code)
{
	return duet_insn(code, 0) == DUET_ARM64_MOV_FP_SP;
}

/* Does a stub that begins so have a frame pointer by which its frame is found, also while it is made? */
static inline int duet_frame_keeps_fp(const uint8_t *code)
{
	return duet_insn(code, 0) == DUET_ARM64_PUSH_FRAME && duet_insn(code, 4) == DUET_ARM64_MOV_FP_SP;
}

/* length of the instructions after a call that show how many operands are on the frame */
#define DUET_FRAME_POPS_BYTES 16

/*
 * Returns how many bytes of operands are popped here, after the call that they were pushed for: by C1 for a subtype
 * check, ldp, or by C2 for a call of the JVM, add sp, sp, #16 (JDK 8-22). Three instructions that do nothing may come
 * first (JDK 20+).
 */
static inline uint32_t duet_frame_operand_bytes(const uint8_t *code)
{
	uint32_t at = duet_insn(code, 0) == DUET_ARM64_NOP && duet_insn_is(duet_insn(code, 4), 0xff80001f, 0xf280001f)
			      ? 12
			      : 0;
	uint32_t insn = duet_insn(code, at);

	if (insn == 0x910043ff)
		return 16;
	return duet_insn_is(insn, 0xffff83e0, 0xa8c103e0) && insn != DUET_ARM64_POP_FRAME ? 16 : 0;
}

/* Returns how many bytes the instruction pops: ldp or ldr of any register, [sp], #n; add sp, sp, #n; else 0. */
static inline uint32_t duet_insn_pops(uint32_t insn)
{
	uint32_t pair = insn >> 15 & 0x3f;

	if (duet_insn_is(insn, 0xffc003ff, 0x910003ff))
		return insn >> 10 & 0xfff;
	if (duet_insn_is(insn, 0xffc003e0, 0xa8c003e0)) /* ldp x */
		return pair * 8;
	if (duet_insn_is(insn, 0x3fc003e0, 0x2cc003e0)) /* ldp of floating point */
		return pair << (2 + (insn >> 30));
	if (duet_insn_is(insn, 0xffe00fe0, 0xf84007e0) || duet_insn_is(insn, 0xffe00fe0, 0xfc4007e0)) /* ldr x, d */
		return insn >> 12 & 0xff;
	return 0;
}

/* Returns how many bytes the instruction pushes: stp x or str x, [sp, #-n]!; sub sp, sp, #n; else 0. */
static inline uint32_t duet_insn_pushes(uint32_t insn)
{
	if (duet_insn_is(insn, 0xffc003ff, 0xd10003ff))
		return insn >> 10 & 0xfff;
	if (duet_insn_is(insn, 0xffe003e0, 0xa9a003e0))
		return (64 - (insn >> 15 & 0x3f)) * 8;
	return duet_insn_is(insn, 0xfff00fe0, 0xf8100fe0) ? 256 - (insn >> 12 & 0xff) : 0;
}

/*
 * Returns how many bytes the code frees before the instruction `last`, beyond what it pushes itself. This is how much
 * is on the stack where the code starts. Branches need not be followed: where they meet, all have the same on the
 * stack. Returns -1 when the code does not come to `last`, or frees by its frame pointer.
 */
static inline int32_t duet_frame_freed_before(const uint8_t *code, uint32_t bytes, uint32_t mask, uint32_t last)
{
	uint32_t freed = 0, insn;

	for (uint32_t at = 0; at < bytes; at += 4) {
		__builtin_memcpy(&insn, code + at, sizeof(insn));
		if (duet_insn_is(insn, mask, last))
			return freed < 4096 ? (int32_t)freed : -1;
		if (insn == 0x910003bf || !insn) /* mov sp, x29 */
			return -1;
		freed += duet_insn_pops(insn) - duet_insn_pushes(insn);
	}
	return -1;
}

/* Returns how many bytes are freed before the next b, or 0: after a barrier's call, what was saved for it. */
static inline uint32_t duet_frame_freed_bytes(const uint8_t *code, uint32_t bytes)
{
	int32_t freed = duet_frame_freed_before(code, bytes, 0xfc000000, 0x14000000);

	return freed > 0 ? (uint32_t)freed : 0;
}

/* Returns how many bytes a stub has on the stack here, if it has no frame or is making it; else -1. */
static inline int32_t duet_frame_stub_bytes(const uint8_t *code, uint32_t bytes)
{
	if (duet_insn(code, 0) == DUET_ARM64_PUSH_FRAME)
		return 0;
	if (duet_insn(code, 0) == DUET_ARM64_MOV_FP_SP)
		return 16;
	return duet_frame_freed_before(code, bytes, ~0u, DUET_ARM64_RET);
}

/* Does a stub that begins with this code push anything? */
static inline int duet_frame_pushes(const uint8_t *code)
{
	for (uint32_t at = 0; at < DUET_FRAME_CODE_BYTES; at += 4)
		if (duet_insn_pushes(duet_insn(code, at)))
			return 1;
	return 0;
}

/* Is this an entry of a procedure linkage table, beginning with any of adrp x16; ldr x17, [x16]; add x16; br x17? */
static inline int duet_frame_is_linkage(const uint8_t *code)
{
	uint32_t at = 0;

	at += duet_insn(code, at) == 0xd503245f ? 4 : 0; /* bti c */
	at += duet_insn_is(duet_insn(code, at), 0x9f00001f, 0x90000010) ? 4 : 0;
	at += duet_insn_is(duet_insn(code, at), 0xffc003ff, 0xf9400211) ? 4 : 0;
	at += duet_insn_is(duet_insn(code, at), 0xffc003ff, 0x91000210) ? 4 : 0;
	return duet_insn(code, at) == 0xd61f0220;
}

/* Do these eight bytes begin with bl; sxtw x0, w0; bl; or as _start of glibc's dynamic linker with mov x21, x0? */
static inline int duet_frame_passes_result(uint64_t code)
{
	if ((uint32_t)code == 0xaa0003f5)
		return 1;
	if ((uint32_t)code == 0x93407c00)
		code >>= 32;
	return ((uint32_t)code & 0xfc000000) == 0x94000000;
}

/* Only x86-64 needs this: on arm64, lr has a leaf's return address. */
static inline int duet_frame_begins(uint64_t code)
{
	return 1;
}

/* ---- the interpreter ---- */

/* Registers by their number, and what the interpreter keeps in them. No register has the number 31. */
#define DUET_FRAME_REGISTERS 32
#define DUET_FRAME_LINK 30 /* has the return address from the call on */
#define DUET_FRAME_RETURN 30 /* the return address, while it is not on the stack */
#define DUET_FRAME_METHOD 12
#define DUET_FRAME_BCP 22 /* in a method's own code, the pointer to its byte code */
#define DUET_FRAME_THREAD 28
#define DUET_FRAME_RECEIVER 1 /* of a virtual call: j_rarg0 */
#define DUET_FRAME_SENDER(layout) (layout).frame_sender /* on the way into a method, its caller's sp */
#define DUET_ARM64_ESP 20 /* the interpreter's stack pointer; on the way out of a method, its caller's sp */

#define DUET_FRAME_FIXED_BYTES 80 /* of an interpreter frame, below its frame pointer */
#define DUET_FRAME_BCP_WORD (-9) /* where it saves the pointer to the byte code (JDK 9+), in words */
#define DUET_FRAME_STUB_THREAD (-8) /* bytes from its frame pointer to where the call stub keeps its JavaThread */
#define DUET_FRAME_STUB_WRAPPER (-64) /* and its JavaCallWrapper */

/* an entry stores the caller's sp within so many bytes after it stores the frame record */
#define DUET_ARM64_ENTRY_BYTES 64

/*
 * Returns the number of the register %sender of stp xzr, %sender, [sp, #offset], or 0 when the instruction is another.
 */
static inline uint32_t duet_insn_sender(uint32_t insn, uint32_t offset)
{
	return duet_insn_is(insn, 0xffff83ff, 0xa90003ff | offset / 8 << 15) ? insn >> 10 & 31 : 0;
}

/*
 * Finds where a method's entry stores the frame record (ret_push), stp x29, x30, [sp, #n]; add x29, sp, #n, and after
 * that (ret_pop) the caller's sp, stp xzr, %sender, [sp, #n-16]. The results are offsets from the start of the code.
 * Returns the register that has the caller's sp there, or 0 when the entry makes no such frame.
 */
static inline int duet_frame_find_entry(const uint8_t *code, uint32_t bytes, uint32_t *ret_pop, uint32_t *ret_push)
{
	uint32_t record = 0, offset = 0, insn, next;

	for (uint32_t at = 0; at + 8 <= bytes && !(offset && at > record + DUET_ARM64_ENTRY_BYTES); at += 4) {
		__builtin_memcpy(&insn, code + at, sizeof(insn));
		__builtin_memcpy(&next, code + at + 4, sizeof(next));
		if (offset && duet_insn_sender(insn, offset - 16)) {
			*ret_push = record;
			*ret_pop = at;
			return (int)duet_insn_sender(insn, offset - 16);
		}
		if (offset || !duet_insn_is(insn, 0xffe07fff, 0xa9007bfd) || (insn >> 15 & 0x3f) < 2 ||
		    next != (0x910003fd | (insn >> 15 & 0x3f) * 8 << 10))
			continue;
		offset = (insn >> 15 & 0x3f) * 8;
		record = at;
	}
	return 0;
}

/* x29 and x30 have the caller's values until both are stored and x29 is set. The caller's sp is stored last. */
static inline enum duet_frame_made duet_frame_made(uint32_t pop, uint32_t push, uint64_t at)
{
	if (at <= push + 4ull)
		return DUET_FRAME_MADE_NOTHING;
	return at <= pop ? DUET_FRAME_MADE_UNSENT : DUET_FRAME_MADE;
}

#define DUET_FRAME_BYTES_BEFORE 4 /* bytes before pc in the code that duet_frame_exit() is given */

/* Does this set sp to the caller's: and sp, x20, #-16; mov sp, x20 (native methods)? */
static inline int duet_insn_restores_sp(uint32_t insn)
{
	return insn == 0x927cee9f || insn == 0x9100029f;
}

/*
 * Is pc at one of the instructions that leave a method: ldp x29, x30, [sp], #16; and sp, x20, #-16; ret? One that
 * checks lr may come between. `code` begins DUET_FRAME_BYTES_BEFORE before pc.
 */
static inline int duet_frame_exit(const uint8_t *code, struct duet_frame_exit *ret_exit)
{
	uint32_t at = DUET_FRAME_BYTES_BEFORE, insn = duet_insn(code, at);

	*ret_exit = (struct duet_frame_exit){.to = DUET_FRAME_RETURN, .sp = DUET_ARM64_ESP};
	if (insn == DUET_ARM64_RET) {
		ret_exit->has_sp = 1;
		return duet_insn_restores_sp(duet_insn(code, 0));
	}
	if (insn == DUET_ARM64_POP_FRAME) {
		ret_exit->is_on_stack = 1;
		at += 4;
	}
	at += duet_insn_signs(duet_insn(code, at)) ? 4 : 0;
	return duet_insn_restores_sp(duet_insn(code, at)) && duet_insn(code, at + 4) == DUET_ARM64_RET;
}
