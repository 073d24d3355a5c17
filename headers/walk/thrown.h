/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * x86-64: the walk while the JVM passes an exception from one frame to the next. The thread then runs HotSpot's stubs,
 * which may have no frame: they have not made it yet, have removed it, or never make one. The stubs are entered by a
 * jump. The address that the exception comes from is in rdx, and serves as the return address.
 */
#pragma once

#include "walk/entered.h"

#if WALK_X86

#define JAVA_POPPED_BYTES 48 /* bytes from the pops of C2's exception blob to the blob's end, at most */

/* ---- C2's exception blob, which a method's handler jumps to ---- */

/* Does java->code begin by pushing the address that threw, as a return address: push %rdx; sub $8, %rsp? */
static inline int java_is_catcher(const struct walk_java *java)
{
	return java->code[0] == 0x52 && duet_code_is(java->code, 1, 0x4883ec) && java->code[4] == WALK_WORD;
}

/* Has the code before pc popped that address again, after add $8, %rsp? */
static inline int java_has_popped(struct walk_java *java, uint64_t pc)
{
	uint64_t bytes = 0, is_popped = 0;

	if (walk_read(java, java->code, JAVA_POPPED_BYTES, pc - JAVA_POPPED_BYTES))
		return 0;
	for (uint32_t i = 0; i < JAVA_POPPED_BYTES; i++) {
		bytes = bytes << 8 | java->code[i];
		/* the top bit is set if the five bytes are equal; BPF's verifier would follow both sides of a branch */
		is_popped |= ((bytes & 0xffffffffff) ^ 0x4883c4085a) - 1;
	}
	return (int)(is_popped >> 63);
}

/* push %rdx; sub $8, %rsp; mov %rbp, (%rsp) ... mov (%rsp), %rbp; add $8, %rsp; pop %rdx ... jmp */
static inline walk_result java_leaf_catcher(struct walk_java *java, struct unwind_cursor *cursor, uint64_t done)
{
	if (done == 1)
		return WALK_JAVA_RETURN(cursor, 0, 1);
	if (done == 5)
		return WALK_JAVA_RETURN(cursor, WALK_WORD, 1);
	if (!walk_read(java, java->code, 1, cursor->pc) && java->code[0] == 0x5a)
		return WALK_JAVA_RETURN(cursor, 0, 1);
	if (!done || java_has_popped(java, cursor->pc))
		return walk_to_caller(cursor, java->regs[DUET_X86_RDX], cursor->sp, cursor->fp);
	return WALK_JAVA_RETURN(cursor, WALK_WORD, 0);
}

/*
 * Returns the address that the code before pc has popped, if a jump through a register is at pc. pop %rcx; jmp *%rcx
 * (C1) pops the handler, which has replaced the return address. pop %rdx; jmp *%r10 (C2) pops the return address, and
 * jumps to code that handles the exception. 0: there is no such jump or pop.
 */
static inline uint64_t java_popped(struct walk_java *java, uint64_t pc)
{
	uint8_t before;

	if (duet_code_register(java->code, 0, 0xff, 0xe0) < 0 || walk_read(java, &before, sizeof(before), pc - 1))
		return 0;
	return before == 0x5a ? java->regs[DUET_X86_RDX] : before == 0x59 ? java->regs[DUET_X86_RCX] : 0;
}

/* Is java->code at such a pop? The stub that rethrows pops to rdx, whatever instruction follows. */
static inline int java_pops_return(const struct walk_java *java)
{
	return java->code[0] == 0x5a || (java->code[0] == 0x59 && duet_code_register(java->code, 1, 0xff, 0xe0) >= 0);
}

/*
 * Does java->code forward an exception that a stub's call into the JVM has thrown: [mov $0, result(%r15);] mov
 * pending(%r15), %rax; jmp?
 */
static inline int java_forwards(const struct walk_java *java)
{
	uint32_t at = duet_code_is(java->code, 0, 0x49c787) ? 11 : 0;

	if (duet_code_is(java->code, at, 0x498b47))
		at += 4;
	else if (duet_code_is(java->code, at, 0x498b87))
		at += 7;
	return duet_code_at(java->code, at) == 0xe9;
}

/* Does the stub forward without a frame? C1's have one. Sets java->code and the current blob to the caller's. */
static inline int java_has_none(struct walk_java *java, const struct unwind_cursor *cursor)
{
	uint64_t to;

	return !walk_read_word(java, &to, cursor->sp) && java_is_caller(java, to, cursor->sp + WALK_WORD);
}

#define JAVA_UNPACK_BEFORE 6 /* bytes: push $0; push %rbp */

/*
 * HotSpot's entry for an exception that deoptimized code will catch is: mov %rax, oop(%r15); mov %rdx, pc(%r15);
 * push $0; push %rbp; mov %rsp, %rbp. Returns how many bytes the thread has pushed by now; -1 when the code is
 * another. After the last instruction the frame pointer is valid, and this function is not needed.
 */
static inline int java_unpack_bytes(struct walk_java *java, uint64_t pc)
{
	uint8_t before[JAVA_UNPACK_BEFORE];
	uint32_t at = 0;

	for (int i = 0; i < 2; i++)
		at += duet_code_is(java->code, at, 0x498987) || duet_code_is(java->code, at, 0x498997) ? 7 : 0;
	if (duet_code_is(java->code, at, 0x680000) && duet_code_is(java->code, at + 5, 0x55488b))
		return 0;
	if (at || walk_read(java, before, sizeof(before), pc - sizeof(before)))
		return -1;
	if (before[1] == 0x68 && duet_code_is(java->code, 0, 0x55488b))
		return WALK_WORD;
	return before[0] == 0x68 && before[5] == 0x55 && duet_code_is(java->code, 0, 0x488bec) ? 2 * WALK_WORD : -1;
}

/*
 * Interrupted in a stub that makes a frame, at instructions where it has none. java->code has the instructions at pc.
 */
static inline walk_result java_leaf_thrown(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t to = java_popped(java, cursor->pc), fp = cursor->fp;
	int pushed = 0;

	if (java_pops_return(java))
		return WALK_JAVA_RETURN(cursor, 0, 1);
	if (!to) {
		to = java->regs[DUET_X86_RDX];
		pushed = java_unpack_bytes(java, cursor->pc);
	}
	if (pushed < 0 || (pushed > WALK_WORD && walk_read_word(java, &fp, cursor->sp)))
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, cursor->sp + (uint32_t)pushed, fp);
}

/* A step by a stub's frame pointer. The stub has pushed 0 for the return address, and stores rdx there later. */
static inline walk_result java_step_entered(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t words[2];

	if (walk_read(java, words, sizeof(words), cursor->fp))
		return DUET_WALK_UNREADABLE;
	return walk_to_caller(cursor, words[1] ? words[1] : java->regs[DUET_X86_RDX], cursor->fp + sizeof(words),
			      words[0]);
}

/*
 * Returned to in a stub that has aligned sp, so that its frame begins a word higher than the frame's size says? Such a
 * stub has laid out the frames that replace a deoptimized one, and has then made its own frame anew.
 */
static inline int java_is_realigned(struct walk_java *java, const struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	return cursor->fp - cursor->sp == frame_bytes - WALK_WORD && java_enters(java);
}

#else

#define java_is_catcher(java) 0
#define java_forwards(java) 0
#define java_has_none(java, cursor) 0
#define java_leaf_catcher(java, cursor, done) DUET_WALK_LEAF
#define java_leaf_thrown(java, cursor) DUET_WALK_LEAF
#define java_step_entered(java, cursor) DUET_WALK_LEAF
#define java_is_realigned(java, cursor, frame_bytes) 0

#endif
