/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Which words on the stack are return addresses into Java: by what lies in front of them, and the frame behind. */
#ifndef DUET_WALK_CALLS_H
#define DUET_WALK_CALLS_H

#include "duet_walk_blobs.h"

#define JAVA_MAX_STUB_BYTES 16384
#define JAVA_PUSHED_WORDS 8 /* on a compiled method's frame, at most */

/* Where the call before this return address went, or 0. */
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

/* Is this behind a call? */
static inline int java_is_called(struct walk_java *java, uint64_t return_address)
{
	return !walk_read(java, java->code, DUET_FRAME_INDIRECT_BYTES, return_address - DUET_FRAME_INDIRECT_BYTES) &&
	       duet_code_calls(java->code, DUET_FRAME_INDIRECT_BYTES);
}

/* Is this where a call returns to, in Java's code? */
static inline int java_is_return(struct walk_java *java, uint64_t word)
{
	word = walk_strip(word);
	return java_heap(&java->layout, word) >= 0 &&
	       (word == java->layout.call_stub_return || java_is_interpreter(java, word) || java_is_called(java, word));
}

/*
 * How many bytes a compiled method has pushed on its frame, whose return address would else lie `slot` above sp:
 * C2's string intrinsics keep a few words there, C1 pushes the operands of a subtype check. Where it lies the method
 * does not say, but what is above such words in the frame are no return addresses. -1 when there is none.
 */
static inline int java_pushed_bytes(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t slot)
{
	uint64_t word;

	for (uint32_t i = 0; i <= JAVA_PUSHED_WORDS; i++) {
		if (walk_read_word(java, &word, cursor->sp + slot + i * WALK_WORD))
			return -1;
		if (java_is_return(java, word))
			return (int)(i * WALK_WORD);
	}
	return -1;
}

/*
 * What lies on the frame of the method at hand while its call is made, of operands for that. x86-64: a frame that has
 * nothing but fp is left with pop %rbp, which may stand behind a call too.
 */
static inline uint32_t java_operand_bytes(struct walk_java *java, uint64_t return_address)
{
	if (walk_read(java, java->code, DUET_FRAME_POPS_BYTES, return_address))
		return 0;
	if (WALK_X86 && java->code[0] == 0x5d && java_field(java, java->layout.blob_frame_words, 4) <= 2)
		return 0;
	return duet_frame_operand_bytes(java->code);
}

/* Is there a return address at the end too of the frame of the compiled code at hand, whose call left `to` at `at`? */
static inline int java_has_frame(struct walk_java *java, uint64_t to, uint64_t at)
{
	uint64_t words = java_field(java, java->layout.blob_frame_words, 4), above;

	at += words * WALK_WORD + java_operand_bytes(java, to);
	return words < JAVA_MAX_FRAME_WORDS && !walk_read_word(java, &above, at) && java_is_return(java, above);
}

/*
 * Is this word, `slot` bytes above sp, the return address of the stub that java->stub tells? Those of earlier calls lie
 * around on the stack: behind the right one the caller's frame follows, and at its end a return address.
 */
static inline int java_is_stub_return(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t slot)
{
	uint64_t to;

	if (walk_read_word(java, &to, cursor->sp + slot) || java_call_target(java, to) - java->stub >= java->stub_bytes)
		return 0;
	if (java_find_blob(java, to) || !java_is_compiled(java))
		return !slot;
	return java_has_frame(java, to, cursor->sp + slot);
}

/* Is this the return address into compiled code that had this sp when it made the call? */
static inline int java_is_sender(struct walk_java *java, uint64_t to, uint64_t sp)
{
	return java_heap(&java->layout, to) >= 0 && java_is_called(java, to) && !java_find_blob(java, to) &&
	       java_is_compiled(java) && java_has_frame(java, to, sp - WALK_WORD);
}

/*
 * Is this where compiled code with this sp has called, or has thrown, or will catch? A stub that leads an exception on
 * takes the address of the instruction that has thrown for a return address, and then that of the handler.
 */
static inline int java_is_thrower(struct walk_java *java, uint64_t to, uint64_t sp)
{
	return java_heap(&java->layout, to) >= 0 && !java_find_blob(java, to) && java_is_compiled(java) &&
	       java_has_frame(java, to, sp - WALK_WORD);
}

/* Likewise, in any Java. */
static inline int java_is_caller(struct walk_java *java, uint64_t to, uint64_t sp)
{
	return java_keeps_fp(java, to) || WALK_JAVA_THROWER(java, to, sp);
}

#endif
