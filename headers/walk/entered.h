/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * x86-64: HotSpot's code that is not entered in the usual way: stubs that native code calls or jumps to, and stubs that
 * forward an exception. Also methods that move their stack pointer while they run.
 */
#pragma once

#include "walk/calls.h"

#if WALK_X86

#define JAVA_KEPT_BYTES 72 /* pushed at most by a method that keeps its old sp: two strings, five words */
/* the call stub lies within this distance of its return address, on both sides; JDK 25's has 257 bytes */
#define JAVA_CALL_STUB_BYTES 256
#define JAVA_ENTERED_BYTES 512 /* between sp and fp in a stub that native code calls, at most */
#define JAVA_ENTERED_LITTLE 16 /* the same, in a stub that native code is not known to call */

/* ---- methods that keep their old stack pointer ---- */

/* Does the code that begins with these bytes save sp in rcx: mov %rsp, %rcx? */
static inline int java_saves_sp(uint64_t code)
{
	return (code & 0xffffff) == 0xcc8b48;
}

/* Does it restore sp: sub %rdi, %rbx; [shr %ebx;] pop %rsp? */
static inline int java_restores_sp(uint64_t code)
{
	return (code & 0xffffffff) == 0x5cdf2b48 || (code & 0xffffffffffff) == 0x5cebd1df2b48;
}

/*
 * Is sp in rcx after the eight bytes `at` in head? is_kept says whether it was before them. An instruction that begins
 * in these bytes may end in the next eight.
 */
static inline int java_kept_sp(const struct walk_java *java, uint64_t at, int is_kept)
{
	const uint64_t *words = (const uint64_t *)(java->head + (at & (JAVA_BLOB_MASK - 7)));
	uint64_t code = words[0], next = words[1];

	for (uint32_t i = 0; i < WALK_WORD; i++) {
		if (java_saves_sp(code))
			is_kept = 1;
		else if (java_restores_sp(code))
			is_kept = 0;
		code = code >> 8 | next << 56;
		next >>= 8;
	}
	return is_kept;
}

/*
 * Is pc between the instructions that save sp and those that restore it? C2's indexOf with SSE 4.2 begins and ends with
 * them (C2_MacroAssembler::string_indexof(), JDK 8 to 27, which uses fixed registers). At most 400 bytes lie between.
 */
static inline int java_keeps_sp(struct walk_java *java, uint64_t pc)
{
	int is_kept = 0;

	java->blob = 0; /* head holds code from here on */
	__builtin_memset(java->head + JAVA_BLOB_MASK + 1, 0, WALK_WORD); /* zero: no instruction ends there */
	if (walk_read(java, java->head, JAVA_BLOB_MASK + 1, pc - (JAVA_BLOB_MASK + 1)))
		return 0;
	for (uint32_t at = 0; at <= JAVA_BLOB_MASK; at += WALK_WORD)
		is_kept = WALK_JAVA_KEPT_SP(java, at, is_kept);
	/* pc may be among the instructions that restore sp: begin the search before it. */
	if (!is_kept || walk_read(java, java->head, JAVA_BLOB_MASK + 1, pc - WALK_WORD))
		return 0;
	for (uint32_t at = 0; is_kept && at <= JAVA_BLOB_MASK; at += WALK_WORD)
		is_kept = WALK_JAVA_KEPT_SP(java, at, is_kept);
	return !is_kept;
}

/* Can this be the sp that the method had before it pushed? Then its return address lies `slot` bytes above it. */
static inline int java_is_kept_sp(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t sp,
				   uint64_t slot)
{
	uint64_t bytes = sp - cursor->sp, word;

	return bytes && bytes <= JAVA_KEPT_BYTES && bytes % WALK_WORD == 0 && !walk_read_word(java, &word, sp + slot) &&
	       java_is_return(java, word);
}

/*
 * Returns how many bytes C2's indexOf has pushed on its frame; 0: none, or the code is not indexOf. It keeps its old sp
 * in rcx, and later on top of the stack. java_pushed_bytes() cannot be used: an earlier call may have left a word in
 * the frame that looks like the return address.
 */
static inline uint32_t java_kept_bytes(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t slot)
{
	uint64_t kept;

	if (walk_read_word(java, &kept, cursor->sp))
		return 0;
	if (!java_is_kept_sp(java, cursor, kept, slot))
		kept = java->regs[DUET_X86_RCX];
	if (!java_is_kept_sp(java, cursor, kept, slot) || !java_keeps_sp(java, cursor->pc))
		return 0;
	return (uint32_t)(kept - cursor->sp);
}

/* ---- stubs that native code or an exception has entered ---- */

/* Does java->code begin with push %rbp; mov %rsp, %rbp? */
static inline int java_code_enters(const struct walk_java *java)
{
	return java->code[0] == 0x55 && duet_code_is(java->code, 1, 0x488bec);
}

/* Does the current blob, a stub of its own, begin with these instructions? */
static inline int java_enters(struct walk_java *java)
{
	return !walk_read(java, java->code, 8, java_code_begin(java)) && java_code_enters(java);
}

/* Like java_is_called(), for code of a C compiler, which also calls through pointers: *(%rax) or *8(%rsp). */
static inline int java_is_called_natively(struct walk_java *java, uint64_t return_address)
{
	const uint8_t *code = java->code;

	return java_is_called(java, return_address) ||
	       (code[DUET_FRAME_INDIRECT_BYTES - 2] == 0xff && (code[DUET_FRAME_INDIRECT_BYTES - 1] & 0xf8) == 0x10) ||
	       (code[DUET_FRAME_INDIRECT_BYTES - 4] == 0xff && (code[DUET_FRAME_INDIRECT_BYTES - 3] & 0xf8) == 0x50);
}

/*
 * Does the stub at pc return to `to`? Its frame pointer lies `above` bytes above sp. Native code calls the call stub,
 * the stubs of up-calls, and JDK 25's fmod (SharedRuntime::frem()). Java calls native code that jumps to a stub (drem()
 * there). If fp is another frame's, it leads past the stub's own return address, which lies between sp and fp and is
 * not in Java's code then. So fp is believed only where it is near sp or the stub is known to keep one.
 */
static inline int java_is_entered_from(struct walk_java *java, uint64_t pc, uint64_t to, uint64_t above)
{
	uint64_t target;

	if (java_heap(&java->layout, to) >= 0) {
		target = java_call_target(java, to);
		return target && java_heap(&java->layout, target) < 0;
	}
	return java_is_called_natively(java, to) &&
	       (above <= JAVA_ENTERED_LITTLE ||
		pc - java->layout.call_stub_return + JAVA_CALL_STUB_BYTES < 2 * JAVA_CALL_STUB_BYTES ||
		(!WALK_JAVA_BLOB(java, pc) && java_enters(java) &&
		 (duet_code_is(java->code, 4, 0x4881ec) || duet_code_is(java->code, 4, 0x4883ec))));
}

/*
 * A step from a stub that native code has called or jumped to. It keeps a frame pointer from its first instructions on.
 */
static inline walk_result java_leaf_entered(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t at = cursor->fp + WALK_WORD, above = cursor->fp - cursor->sp, to;
	int64_t slot;

	if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
		return DUET_WALK_LEAF;
	slot = java->code[0] == 0x55		       ? 0
	       : duet_code_is(java->code, 0, 0x488bec) ? WALK_WORD
						       : WALK_JAVA_EPILOGUE(java, cursor->pc);
	if (slot >= 0) {
		at = cursor->sp + (uint64_t)slot;
		above = 0;
	}
	if (above > JAVA_ENTERED_BYTES || walk_read_word(java, &to, at) ||
	    !java_is_entered_from(java, cursor->pc, to, above))
		return DUET_WALK_LEAF;
	return slot >= 0 ? WALK_JAVA_RETURN(cursor, (uint64_t)slot, slot == 0) : WALK_JAVA_BY_FP(cursor);
}

#define JAVA_ALIGN_BYTES 4 /* length of sub $8, %rsp and of add $8, %rsp: one comes before a call, the other after it */

/* Returns how many bytes of padding are on top of the stack at pc, where sp was aligned for a call. */
static inline uint32_t java_aligned_bytes(struct walk_java *java, uint64_t pc)
{
	const uint8_t *at = java->code + JAVA_ALIGN_BYTES;

	if (walk_read(java, java->code, 2 * JAVA_ALIGN_BYTES, pc - JAVA_ALIGN_BYTES))
		return 0;
	return (duet_code_is(at, 0, 0x4883c4) && at[3] == WALK_WORD) ||
			       (at[0] == 0xe8 && duet_code_is(java->code, 0, 0x4883ec) && at[-1] == WALK_WORD)
		       ? WALK_WORD
		       : 0;
}

/*
 * Is pc in a stub that another stub jumped to when its whole frame was built already, below fp? C1's forward_exception
 * is one. It frees the saved registers itself, and keeps the frame pointer to the end.
 */
static inline int java_is_whole(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t to;

	return frame_bytes && cursor->fp - cursor->sp <= frame_bytes - 2 * WALK_WORD &&
	       !walk_read_word(java, &to, cursor->fp + WALK_WORD) &&
	       java_is_caller(java, to, cursor->fp + 2 * WALK_WORD);
}

/*
 * Interrupted in a stub that forwards an exception to the caller of a method that has left its frame:
 * forward_exception, or a stub of the same kind of C1 or C2. The stub looks up the handler by the return address on top
 * of the stack, and pops that address to rdx. Or interrupted in a stub that native code has called.
 */
static inline walk_result java_leaf_odd(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t rdx = java->regs[DUET_X86_RDX], slot = java_aligned_bytes(java, cursor->pc), to;

	if (java_is_whole(java, cursor, frame_bytes))
		return WALK_JAVA_BY_FP(cursor);
	if (walk_read_word(java, &to, cursor->sp + slot))
		return DUET_WALK_UNREADABLE;
	if (java_is_caller(java, to, cursor->sp + slot + WALK_WORD))
		return WALK_JAVA_RETURN(cursor, slot, 1);
	if (java_is_caller(java, rdx, cursor->sp))
		return walk_to_caller(cursor, rdx, cursor->sp, cursor->fp);
	return java_leaf_entered(java, cursor);
}

/*
 * Returned to in a stub that forwards an exception to the caller. On top of the stack is the return address of the
 * method that has left its frame. After a call for which sp was aligned, a word of padding is on top of that, until add
 * $8, %rsp removes it. Otherwise this is a stub that native code has called, for an up-call.
 */
static inline walk_result java_step_forwarder(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t slot = java_aligned_bytes(java, cursor->pc), to;

	if (walk_read_word(java, &to, cursor->sp + slot))
		return DUET_WALK_NO_FRAME;
	if (java_is_caller(java, to, cursor->sp + slot + WALK_WORD))
		return WALK_JAVA_RETURN(cursor, slot, 1);
	if (cursor->fp < cursor->sp || walk_read_word(java, &to, cursor->fp + WALK_WORD) ||
	    !java_is_entered_from(java, cursor->pc, to, cursor->fp - cursor->sp))
		return DUET_WALK_NO_FRAME;
	return WALK_JAVA_BY_FP(cursor);
}

#else

#define java_kept_bytes(java, cursor, slot) 0
#define java_kept_sp(java, at, is_kept) 0
#define java_code_enters(java) 0
#define java_enters(java) 0
#define java_leaf_odd(java, cursor, frame_bytes) DUET_WALK_LEAF
#define java_step_forwarder(java, cursor) DUET_WALK_NO_FRAME

#endif
