/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Which words on the stack are return addresses into Java: by the code before them, and the frame that follows. */
#pragma once

#include "walk/blobs.h"

#define JAVA_MAX_STUB_BYTES 16384
#define JAVA_PUSHED_WORDS 8 /* words that a compiled method pushes on its frame, at most */

/* Returns the target of the call that returns to pc, or 0 when it is not known. */
static inline uint64_t java_call_target(struct walk_java *java, uint64_t pc)
{
	if (java_heap(&java->layout, pc) < 0 ||
	    walk_read(java, java->code, DUET_FRAME_CALL_BYTES, pc - DUET_FRAME_CALL_BYTES))
		return 0;
	return duet_frame_call_target(java->code, pc);
}

/* Does this return address belong to a call of the stub that pc is in? */
static inline int java_called_here(struct walk_java *java, uint64_t return_address, uint64_t pc)
{
	uint64_t target = java_call_target(java, return_address);

	return target && target <= pc && pc - target < JAVA_MAX_STUB_BYTES;
}

/* Does the code that was called here begin with push %rbp? */
static inline int java_callee_saves_fp(struct walk_java *java, uint64_t return_address)
{
	return !walk_read(java, java->code, 1, java_call_target(java, return_address)) && java->code[0] == 0x55;
}

/* Does a call precede this address? */
static inline int java_is_called(struct walk_java *java, uint64_t return_address)
{
	return !walk_read(java, java->code, DUET_FRAME_INDIRECT_BYTES, return_address - DUET_FRAME_INDIRECT_BYTES) &&
	       duet_code_calls(java->code, DUET_FRAME_INDIRECT_BYTES);
}

/* Is this word a return address into Java's code? */
static inline int java_is_return(struct walk_java *java, uint64_t word)
{
	word = walk_strip(word);
	return java_heap(&java->layout, word) >= 0 &&
	       (word == java->layout.call_stub_return || java_is_interpreter(java, word) || java_is_called(java, word));
}

/*
 * Returns how many bytes a compiled method has pushed on its frame, or -1 when no return address is found. Without
 * them, the return address would lie `slot` bytes above sp. C2's string intrinsics push a few words, C1 the operands of
 * a subtype check. Nothing says how many. The words that the search passes are pushed words or the upper end of the
 * frame, which are not return addresses.
 */
static inline int java_pushed_bytes(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t slot)
{
	uint64_t word;

	for (uint32_t i = 0; i <= JAVA_PUSHED_WORDS; i++) {
		if (walk_read_word(java, &word, cursor->sp + slot + i * WALK_WORD))
			return -1;
		word = walk_strip(word);
		if (java_heap(&java->layout, word) >= 0 &&
		    (java_keeps_fp(java, word) || WALK_JAVA_CALLED(java, word)))
			return (int)(i * WALK_WORD);
	}
	return -1;
}

/*
 * Returns how many bytes of operands the current method has on its frame for the call that returns to `return_address`.
 * x86-64: a frame that holds only fp ends with pop %rbp, which may directly follow a call and pops no operand.
 */
static inline uint32_t java_operand_bytes(struct walk_java *java, uint64_t return_address)
{
	if (walk_read(java, java->code, DUET_FRAME_POPS_BYTES, return_address))
		return 0;
	if (WALK_X86 && java->code[0] == 0x5d && java_field(java, java->layout.blob_frame_words, 4) <= 2)
		return 0;
	return duet_frame_operand_bytes(java->code);
}

/*
 * The current blob is compiled code, whose call left the return address `to` at address `at`. Is there a return address
 * at the end of its frame too?
 */
static inline int java_has_frame(struct walk_java *java, uint64_t to, uint64_t at)
{
	uint64_t words = java_field(java, java->layout.blob_frame_words, 4), above;

	at += words * WALK_WORD + java_operand_bytes(java, to);
	return words < JAVA_MAX_FRAME_WORDS && !walk_read_word(java, &above, at) && java_is_return(java, above);
}

/*
 * Is the word `slot` bytes above sp the return address of the stub java->stub? The stack also holds return addresses of
 * earlier calls. Only the right one is followed by its caller's frame, with a return address at the end.
 */
static inline int java_is_stub_return(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t slot)
{
	uint64_t to;

	if (walk_read_word(java, &to, cursor->sp + slot) || java_call_target(java, to) - java->stub >= java->stub_bytes)
		return 0;
	if (WALK_JAVA_BLOB(java, to) || !java_is_compiled(java))
		return !slot;
	return java_has_frame(java, to, cursor->sp + slot);
}

/* Is `to` a return address into compiled code whose stack pointer was `sp` when it called? */
static inline int java_is_sender(struct walk_java *java, uint64_t to, uint64_t sp)
{
	return java_heap(&java->layout, to) >= 0 && java_is_called(java, to) && !WALK_JAVA_BLOB(java, to) &&
	       java_is_compiled(java) && java_has_frame(java, to, sp - WALK_WORD);
}

/*
 * Like java_is_sender(), but `to` may also be where compiled code has thrown or will catch. A stub that forwards an
 * exception uses as return address first the address of the instruction that threw, then that of the handler.
 */
static inline int java_is_thrower(struct walk_java *java, uint64_t to, uint64_t sp)
{
	return java_heap(&java->layout, to) >= 0 && !WALK_JAVA_BLOB(java, to) && java_is_compiled(java) &&
	       java_has_frame(java, to, sp - WALK_WORD);
}

/* Like java_is_thrower(), but the caller may also be the interpreter or the call stub. */
static inline int java_is_caller(struct walk_java *java, uint64_t to, uint64_t sp)
{
	return java_keeps_fp(java, to) || WALK_JAVA_THROWER(java, to, sp);
}
