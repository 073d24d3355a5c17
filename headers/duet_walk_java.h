/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * One step of a walk through HotSpot's frames on x86-64: compiled code by its frame size, the interpreter by its frame
 * pointer, the call stub back to native code. As duet_walk.h, the same code runs in BPF and in tests.
 *
 * All that is read belongs to the process: nothing leads out of bounds, and what does not fit together ends the walk.
 */
#ifndef DUET_WALK_JAVA_H
#define DUET_WALK_JAVA_H

#include "duet_walk_blobs.h"
#include "duet_walk_interpreter.h"

/* BPF runs these apart, so that the verifier follows each of them once and not for every way that leads there. */
#ifndef WALK_JAVA_LEAF
#define WALK_JAVA_LEAF java_step_leaf
#define WALK_JAVA_PUSHED java_pushed_bytes
#define WALK_JAVA_STUB_RETURN java_is_stub_return
#define WALK_JAVA_SENDER java_is_sender
#define WALK_JAVA_BARRIER java_step_barrier
#define WALK_JAVA_INTERPRETER java_step_interpreter
#define WALK_JAVA_CONTINUATION java_step_continuation
#endif

#define JAVA_MAX_STUB_BYTES 16384
#define JAVA_STUB_THREAD 24 /* the call stub's last argument, from its frame pointer on */
#define JAVA_INDIRECT_BYTES 6 /* of the longest call through memory */
#define JAVA_CALL_BYTES 13 /* of the longest call sequence that tells its target */
#define JAVA_PUSHED_WORDS 8 /* on a compiled method's frame, at most (C2's indexOf of a short string: 4) */
#define JAVA_OPERANDS_BYTES 16 /* of a subtype check */
#define JAVA_BARRIER_BYTES 160 /* of instructions that load what a barrier has saved */
#define JAVA_BARRIER_SAVED 4096 /* bytes: 32 registers of 64 bytes, and others */
#define JAVA_POPS_BYTES 4 /* of the two instructions that pop them, at most */
#define JAVA_STUB_WORDS 16 /* that a stub without a frame size has pushed at most (JDK 25's subtype check: 8) */

/* Where the call before this return address went, or 0: call rel32; or mov $target, %r10; call *%r10. */
static inline uint64_t java_call_target(struct walk_java *java, uint64_t pc)
{
	const uint8_t *code = java->code;

	if (java_heap(&java->layout, pc) < 0 || walk_read(java, java->code, JAVA_CALL_BYTES, pc - JAVA_CALL_BYTES))
		return 0;
	if (code[JAVA_CALL_BYTES - 5] == 0xe8)
		return pc + walk_operand(code + JAVA_CALL_BYTES - 4, 4);
	if (code[0] == 0x49 && code[1] == 0xba && code[10] == 0x41 && code[11] == 0xff && code[12] == 0xd2)
		return walk_operand(code + 2, 8);
	return 0;
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
	return !walk_read(java, java->code, JAVA_INDIRECT_BYTES, return_address - JAVA_INDIRECT_BYTES) &&
	       duet_code_calls(java->code, JAVA_INDIRECT_BYTES);
}

/*
 * A stub's own frame pointer, when it leads to a call of a stub in this blob: the first may have jumped to another. The
 * barrier at a method's entry pushes -1 before (JDK 14+, StubGenerator::generate_method_entry_barrier()).
 */
static inline walk_result java_step_stub_frame(struct walk_java *java, struct unwind_cursor *cursor, walk_result none)
{
	uint64_t words[2], above = cursor->fp + sizeof(words);

	if (cursor->fp < cursor->sp || cursor->fp % WALK_WORD || walk_read(java, words, sizeof(words), cursor->fp))
		return none;
	if (words[1] == ~0ull) {
		if (walk_read_word(java, &words[1], above))
			return none;
		above += WALK_WORD;
	}
	if (java_call_target(java, words[1]) - java->blob >= java_field(java, java->layout.blob_bytes, 4))
		return none;
	return walk_to_caller(cursor, words[1], above, words[0]);
}

/* Is this where a call returns to, in Java's code? */
static inline int java_is_return(struct walk_java *java, uint64_t word)
{
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

/* From a compiled method with its whole frame, and perhaps more. A return address may lead to where one deoptimizes. */
static inline walk_result java_return_pushed(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t slot = frame_bytes - WALK_WORD, word;
	int pushed = 0;

	if (walk_read_word(java, &word, cursor->sp + slot))
		return DUET_WALK_UNREADABLE;
	if (java_heap(&java->layout, word) < 0)
		pushed = WALK_JAVA_PUSHED(java, cursor, slot);
	return pushed < 0 ? DUET_WALK_LEAF : java_return(cursor, slot + (uint32_t)pushed, 0);
}

/* Bytes of a pop into another register than fp, or 0. */
static inline uint32_t java_pop_bytes(const uint8_t *code)
{
	uint32_t prefix = code[0] == 0x41;

	return (code[prefix] & 0xf8) == 0x58 && (prefix || code[0] != 0x5d) ? prefix + 1 : 0;
}

/* What lies on a frame while its call is made: C1 pushes a subtype check's two operands, and pops them after it. */
static inline uint32_t java_operand_bytes(struct walk_java *java, uint64_t return_address)
{
	uint32_t first;

	if (walk_read(java, java->code, JAVA_POPS_BYTES, return_address))
		return 0;
	first = java_pop_bytes(java->code);
	return first && java_pop_bytes(java->code + first) ? JAVA_OPERANDS_BYTES : 0;
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

/* A stub that has left its frame, or has pushed registers without one: fp is still the caller's. */
static inline walk_result java_leaf_pushed(struct walk_java *java, struct unwind_cursor *cursor)
{
	java->stub = java->blob;
	java->stub_bytes = java_field(java, java->layout.blob_bytes, 4);
	for (uint32_t i = 0; i < JAVA_STUB_WORDS; i++)
		if (WALK_JAVA_STUB_RETURN(java, cursor, i * WALK_WORD))
			return java_return(cursor, i * WALK_WORD, 1);
	return DUET_WALK_LEAF;
}

/* Is this the return address into compiled code that had this sp when it made the call? */
static inline int java_is_sender(struct walk_java *java, uint64_t to, uint64_t sp)
{
	return java_heap(&java->layout, to) >= 0 && java_is_called(java, to) && !java_find_blob(java, to) &&
	       java_is_compiled(java) && java_has_frame(java, to, sp - WALK_WORD);
}

/* Java's callers that keep a frame pointer. */
static inline int java_keeps_fp(const struct walk_java *java, uint64_t to)
{
	return java_is_interpreter(java, to) || to == java->layout.call_stub_return;
}

/*
 * Interrupted between compiled code and the interpreter. On the way there the return address is popped into rax, sp
 * kept in r13 and moved, the address put on top of the stack again; on the way back sp is aligned and the address
 * pushed out of rax. Which of it has been done, the caller's frame shows.
 */
static inline walk_result java_leaf_adapter(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t rax = java->regs[DUET_X86_RAX], r13 = java->regs[DUET_X86_R13], moved = r13 - cursor->sp, to;
	int is_moved = moved < JAVA_MAX_FRAME_WORDS * WALK_WORD;

	if (walk_read_word(java, &to, cursor->sp))
		return DUET_WALK_UNREADABLE;
	if (is_moved && WALK_JAVA_SENDER(java, to, r13))
		return walk_to_caller(cursor, to, r13, cursor->fp);
	if (java_keeps_fp(java, to) || WALK_JAVA_SENDER(java, to, cursor->sp + WALK_WORD))
		return java_return(cursor, 0, 1);
	if (is_moved && WALK_JAVA_SENDER(java, rax, r13))
		return walk_to_caller(cursor, rax, r13, cursor->fp);
	if (java_keeps_fp(java, rax) || WALK_JAVA_SENDER(java, rax, cursor->sp))
		return walk_to_caller(cursor, rax, cursor->sp, cursor->fp);
	/* A caller whose own caller is deoptimized shows no return address. */
	return !is_moved && java_is_called(java, to) ? java_return(cursor, 0, 1) : DUET_WALK_LEAF;
}

/*
 * Interrupted in a stub that tells no frame size: at its first instruction, behind its first push, with a frame of its
 * own, or none. Whatever else lies around on the stack, the right return address follows a call to this stub.
 */
static inline walk_result java_leaf_stub(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t pc = cursor->pc, words[2];

	java->is_below_stub = 1;
	if (walk_read(java, words, sizeof(words), cursor->sp))
		return DUET_WALK_UNREADABLE;
	if (java_called_here(java, words[0], pc))
		return java_return(cursor, 0, 1);
	if (java_called_here(java, words[1], pc - 1))
		return java_return(cursor, WALK_WORD, !java_callee_saves_fp(java, words[1]));
	if (java_step_stub_frame(java, cursor, DUET_WALK_LEAF) == DUET_WALK_NONE)
		return DUET_WALK_NONE;
	return java_leaf_pushed(java, cursor);
}

/* Interrupted in a stub with a frame: it has it, or its first or last instructions show that it has not. */
static inline walk_result java_leaf_framed(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t begin = java_code_begin(java), done = cursor->pc - begin;
	int64_t slot = DUET_FRAME_BUILT;
	uint32_t end = 0;

	if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, begin))
		return DUET_WALK_LEAF;
	/* C2's own begin as its methods do, and do not say where that ends. */
	slot = done ? duet_frame_prologue(java->code, (uint32_t)done, &end) : 0;
	if (slot == DUET_FRAME_BUILT) {
		if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
			return DUET_WALK_LEAF;
		slot = duet_frame_epilogue(java->code);
		if (slot < 0 && !end && cursor->pc < java_frame_complete(java))
			return DUET_WALK_LEAF;
	}
	if (slot >= 0)
		return java_return(cursor, (uint64_t)slot, slot == 0);
	return java_return(cursor, frame_bytes - WALK_WORD, slot == DUET_FRAME_FP_UNSAVED);
}

/*
 * Interrupted in the wrapper of a native method: whatever it does between, it keeps a frame pointer from its first
 * instructions, push %rbp; mov %rsp, %rbp, to a leave behind which the end is told by the instructions. Before, fp is
 * that of a caller, which cannot be where this frame's would be.
 */
static inline walk_result java_leaf_wrapper(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t above = cursor->fp - cursor->sp;
	int64_t slot;

	if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
		return DUET_WALK_LEAF;
	slot = duet_code_is(java->code, 0, 0x488bec) ? WALK_WORD : duet_frame_epilogue(java->code);
	if (slot < 0 && cursor->pc < java_frame_complete(java) && above && above != frame_bytes - 2 * WALK_WORD)
		slot = 0;
	if (slot >= 0)
		return java_return(cursor, (uint64_t)slot, slot == 0);
	return java_step_by_fp(cursor);
}

/* Interrupted in a compiled method: how far its frame is built, the instructions tell. */
static inline walk_result java_leaf_compiled(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t entry = java_entry(java), done = cursor->pc - entry;
	int64_t slot = DUET_FRAME_BUILT;
	uint32_t end;

	if (cursor->pc >= java->blob + java_field(java, java->layout.nmethod_stubs, 4)) {
		if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc) ||
		    !duet_frame_is_call_stub(java->code))
			return DUET_WALK_LEAF;
		return java_return(cursor, 0, 1);
	}
	if (cursor->pc < entry || !frame_bytes) /* inline cache check; method handle intrinsics have no frame */
		return java_return(cursor, 0, 1);
	if (done < DUET_FRAME_PROLOGUE_BYTES) {
		if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, entry))
			return DUET_WALK_LEAF;
		slot = duet_frame_prologue(java->code, (uint32_t)done, &end);
	}
	if (slot == DUET_FRAME_BUILT) {
		if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
			return DUET_WALK_LEAF;
		slot = duet_frame_epilogue(java->code);
	}
	if (slot >= 0)
		return java_return(cursor, (uint64_t)slot, slot == 0);
	if (slot == DUET_FRAME_FP_UNSAVED)
		return java_return(cursor, frame_bytes - WALK_WORD, 1);
	return java_return_pushed(java, cursor, frame_bytes);
}

/*
 * A method that is deoptimized returns into its stubs, and keeps in its frame where it would have gone on. That is the
 * pc by which its inlined methods can be told.
 */
static inline void java_original_pc(struct walk_java *java, const struct unwind_cursor *cursor)
{
	uint64_t stubs = java->blob + java_field(java, java->layout.nmethod_stubs, 4);
	uint64_t offset = java_field(java, java->layout.nmethod_original_pc, 4);
	uint64_t pc;

	if (cursor->pc < stubs || walk_read_word(java, &pc, cursor->sp + offset))
		return;
	if (pc >= java_code_begin(java) && pc < stubs)
		java->pc = pc;
}

/* Whoever calls Java is in a code heap as well: native code gets there by the call stub. */
static inline walk_result java_step_leaf(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	walk_result end;

	if (java_is_adapter(java))
		return java_leaf_adapter(java, cursor);
	if (java_is_frameless(java))
		return java_return(cursor, 0, 1);
	if (java_is_native(java))
		end = java_leaf_wrapper(java, cursor, frame_bytes);
	else if (java_is_compiled(java))
		end = java_leaf_compiled(java, cursor, frame_bytes);
	else if (!frame_bytes)
		end = java_leaf_stub(java, cursor);
	else
		end = java_leaf_framed(java, cursor, frame_bytes);
	if (end == DUET_WALK_NONE && java_heap(&java->layout, cursor->pc) < 0)
		end = DUET_WALK_LEAF;
	return end;
}

#define JAVA_ENTRY_STEPS 8 /* of 16 bytes: arguments on the stack */

#define JAVA_ENTRY_WORDS 64 /* of its frame at most; JDK 21 and 25: 10 */

/*
 * Where a mounted virtual thread's frames on the stack end, the others are on the heap, and the lowest one's return
 * address is a stub's that brings the next from there. Right above, but for its arguments, lies the frame of
 * Continuation.enterSpecial on the carrier's stack. No word in it, a ContinuationEntry, is an address of code, so the
 * first that is tells where it ends. Not so while those stubs themselves have called and make room for frames.
 */
static inline walk_result java_step_continuation(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t entry = (cursor->sp + 15) & ~15ull, to, pc, words;

	if (java_is_called(java, cursor->pc) || walk_read_word(java, &pc, java->layout.enter_special) ||
	    java_find_blob(java, pc))
		return DUET_WALK_NO_FRAME;
	words = java_field(java, java->layout.blob_frame_words, 4);
	if (!java_is_native(java) || words < 2 || words > JAVA_ENTRY_WORDS)
		return DUET_WALK_NO_FRAME;
	for (int i = 0; i < JAVA_ENTRY_STEPS; i++, entry += 16) {
		if (walk_read_word(java, &to, entry + (words - 1) * WALK_WORD))
			return DUET_WALK_UNREADABLE;
		if (java_heap(&java->layout, to) >= 0 && (java_is_interpreter(java, to) || java_is_called(java, to))) {
			java->code_id = DUET_ID_ON_HEAP;
			cursor->pc = pc;
			cursor->sp = entry;
			return DUET_WALK_NONE;
		}
	}
	return DUET_WALK_NO_FRAME;
}

#define JAVA_ADAPTER_R13 (2 * WALK_WORD) /* above the floating point registers: the others, from r15 up to rax */
#define JAVA_ADAPTER_RAX (15 * WALK_WORD)

/* An adapter's caller, when the adapter has saved its registers here. */
static inline walk_result java_step_saved(struct walk_java *java, struct unwind_cursor *cursor, uint64_t saved)
{
	uint64_t entry, rax, to;

	if (walk_read_word(java, &entry, saved + JAVA_ADAPTER_R13) ||
	    walk_read_word(java, &rax, saved + JAVA_ADAPTER_RAX) ||
	    entry < cursor->sp || walk_read_word(java, &to, entry) || to != rax || !java_is_return(java, to))
		return DUET_WALK_NO_FRAME;
	return walk_to_caller(cursor, to, entry + WALK_WORD, cursor->fp);
}

/*
 * An adapter, while it has the JVM lead its caller to the code compiled since (patch_callers_callsite() of
 * sharedRuntime_x86_64.cpp): it has saved all registers, with sp as it came in r13 and the return address in rax, below
 * them those for floating point: fxsave's 512 bytes (JDK 8), or room for xsave's.
 */
static inline walk_result java_step_adapter(struct walk_java *java, struct unwind_cursor *cursor)
{
	walk_result end = java_step_saved(java, cursor, cursor->sp + 2688);

	return end ? java_step_saved(java, cursor, cursor->sp + 512) : end;
}

/* Returned to, without a frame size. */
static inline walk_result java_step_stub(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t name = java_field(java, java->layout.blob_name, 8);

	if (name && name == java->layout.continuation_name)
		return WALK_JAVA_CONTINUATION(java, cursor);
	if (java_is_adapter(java))
		return java_step_adapter(java, cursor);
	return java_step_stub_frame(java, cursor, DUET_WALK_NO_FRAME);
}

/* Do these bytes add to sp and jump? How much: behind a barrier's call that ends what has been saved for it. */
static inline uint32_t java_freed_bytes(const uint8_t *code)
{
	if (code[0] != 0x48 || code[2] != 0xc4)
		return 0;
	if (code[1] == 0x83 && (code[4] == 0xeb || code[4] == 0xe9))
		return code[3] < 0x80 ? code[3] : 0;
	return code[1] == 0x81 && (code[7] == 0xeb || code[7] == 0xe9) ? (uint32_t)walk_operand(code + 3, 4) : 0;
}

/*
 * From a method that has called the collector out of a load or store (ZGC; C2's barriers since JDK 14) to its caller:
 * it has saved what was in registers below its frame, and frees the room before it jumps back.
 */
static inline walk_result java_step_barrier(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t slot = frame_bytes - WALK_WORD, freed = 0, word;

	java->blob = 0; /* head is for its code now */
	if (walk_read(java, java->head, JAVA_BARRIER_BYTES + 8, cursor->pc))
		return DUET_WALK_NO_FRAME;
	for (uint32_t i = 0; i < JAVA_BARRIER_BYTES && !freed; i++)
		freed = java_freed_bytes(java->head + i);
	slot += freed;
	if (!freed || freed > JAVA_BARRIER_SAVED || walk_read_word(java, &word, cursor->sp + slot) ||
	    !java_is_return(java, word))
		return DUET_WALK_NO_FRAME;
	return java_return(cursor, slot, 0);
}

/* From a method that has called. Its caller is Java's code as well. */
static inline walk_result java_step_compiled(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t pc = cursor->pc, sp = cursor->sp, fp = cursor->fp;
	walk_result end = java_return(cursor, frame_bytes - WALK_WORD, 0);

	if (end != DUET_WALK_NONE || java_heap(&java->layout, cursor->pc) >= 0)
		return end;
	cursor->pc = pc;
	cursor->sp = sp;
	cursor->fp = fp;
	return WALK_JAVA_BARRIER(java, cursor, frame_bytes);
}

static inline walk_result java_step_code(struct walk_java *java, struct unwind_cursor *cursor)
{
	int is_below_stub = java->is_below_stub;
	uint64_t words, frame_bytes;
	walk_result end = java_find_blob(java, cursor->pc);

	if (end)
		return end;
	words = java_field(java, java->layout.blob_frame_words, 4);
	if (words == UINT32_MAX || words == 1) /* Runtime1::no_frame_size; a stub that saves nothing tells the call's */
		words = 0;
	if (words >= JAVA_MAX_FRAME_WORDS)
		return DUET_WALK_NO_BLOB;
	frame_bytes = words * WALK_WORD;
	java->is_below_stub = 0;
	if (java_is_compiled(java))
		java->code_id = (uint32_t)java_field(java, java->layout.nmethod_id, 4);
	if (!cursor->is_return)
		return WALK_JAVA_LEAF(java, cursor, frame_bytes);
	if (!words)
		return java_step_stub(java, cursor);
	if (!java_is_compiled(java))
		return java_return(cursor, frame_bytes - WALK_WORD, 0);
	java_original_pc(java, cursor);
	if (is_below_stub)
		return java_return_pushed(java, cursor, frame_bytes + java_operand_bytes(java, cursor->pc));
	return java_step_compiled(java, cursor, frame_bytes);
}

/* ---- the step ---- */

/* Is this the JVM's code, and so for walk_java_step()? */
static inline int walk_java_owns(const struct walk_java *java, uint64_t pc)
{
	return java_heap(&java->layout, pc) >= 0;
}

static inline walk_result walk_java_step(struct walk_java *java, struct unwind_cursor *cursor)
{
	java->has_found = 0;
	java->code_id = 0;
	java->pc = cursor->pc;
	if (!cursor->is_return && cursor->signal_frame)
		java_signal_regs(java, cursor);
	if (cursor->is_return && cursor->pc == java->layout.call_stub_return) { /* entered from native code */
		java->thread_at = cursor->fp + JAVA_STUB_THREAD;
		return java_step_by_fp(cursor);
	}
	if (java_is_interpreter(java, cursor->pc))
		return WALK_JAVA_INTERPRETER(java, cursor);
	return java_step_code(java, cursor);
}

/* Behind a step through an interpreter frame: what a record has of it in the place of its address, and as its id. */
static inline void walk_java_note(struct walk_java *java)
{
	java->pc = java->found_method;
	java->code_id =
		DUET_ID_INTERPRETED | (java->found_bci == DUET_BCI_NATIVE ? DUET_ID_BCI : (uint32_t)java->found_bci);
}

#endif
