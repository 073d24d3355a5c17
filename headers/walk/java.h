/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * One step of a walk through HotSpot's frames: compiled code by its frame size, the interpreter by its frame pointer,
 * the call stub back to native code. Like walk/native.h, the same code runs in BPF, in the agent and in tests.
 *
 * All memory that is read belongs to the process and is not trusted: no value can lead out of bounds, and values that
 * do not fit together end the walk.
 */
#pragma once

#include "walk/calls.h"
#include "walk/entered.h"
#include "walk/interpreter.h"
#include "walk/thrown.h"

#define JAVA_BARRIER_BYTES 160 /* bytes of the instructions that reload the registers that a barrier has saved */
#define JAVA_BARRIER_SAVED 4096 /* bytes that a barrier saves, at most: 32 registers of 64 bytes, and some more */
#define JAVA_STUB_BYTES 256 /* bytes of a stub's instructions that free what it has pushed */
/* words on the stack of a stub without frame size, at most (SHA-512 aligns sp: 20; SHA-256: 83) */
#define JAVA_STUB_WORDS 96

/*
 * A step from a compiled method that has its whole frame, and may have pushed more. The return address only has to be
 * in a code heap: it may lead to the deoptimization handler, which follows no call.
 */
static inline walk_result java_return_pushed(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t slot = frame_bytes - WALK_WORD, word;
	int pushed = cursor->is_return ? 0 : (int)WALK_JAVA_KEPT(java, cursor, slot);

	if (walk_read_stack(cursor, &word, 1, cursor->sp + slot))
		return DUET_WALK_UNREADABLE;
	if (!pushed && java_heap(&java->layout, walk_strip(word)) < 0)
		pushed = WALK_JAVA_PUSHED(java, cursor, slot);
	return pushed < 0 ? DUET_WALK_LEAF : WALK_JAVA_RETURN(cursor, slot + (uint32_t)pushed, 0);
}

/* A step from a stub that has left its frame, or has pushed registers without one: fp is still the caller's. */
static inline walk_result java_leaf_pushed(struct walk_java *java, struct unwind_cursor *cursor)
{
	java->stub = java->blob;
	java->stub_bytes = java_field(java, java->layout.blob_bytes, 4);
	for (uint32_t i = 0; i < JAVA_STUB_WORDS; i++)
		if (WALK_JAVA_STUB_RETURN(java, cursor, i * WALK_WORD))
			return WALK_JAVA_RETURN(cursor, i * WALK_WORD, 1);
	return DUET_WALK_LEAF;
}

#define JAVA_ADAPTER_SAVED 4096 /* bytes that an adapter saves below the return address, at most */
#define JAVA_ADAPTER_R13 (2 * WALK_WORD) /* above the floating point registers: here r15 to rax, upwards */
#define JAVA_ADAPTER_RAX (15 * WALK_WORD)

/* A step from an adapter, if it has saved its registers at `saved`. */
static inline walk_result java_step_saved(struct walk_java *java, struct unwind_cursor *cursor, uint64_t saved)
{
	uint64_t entry, rax, to;

	if (walk_read_word(java, &entry, saved + JAVA_ADAPTER_R13) ||
	    walk_read_word(java, &rax, saved + JAVA_ADAPTER_RAX) ||
	    entry < cursor->sp || walk_read_word(java, &to, entry) || to != rax || !java_is_return(java, to))
		return DUET_WALK_NO_FRAME;
	return walk_to_caller(cursor, to, entry + WALK_WORD, cursor->fp);
}

/* arm64: a step from code that keeps a frame pointer while it calls. */
static inline walk_result java_step_record(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t fp = cursor->fp, record[2];

	if (fp < cursor->sp || fp % WALK_WORD || walk_read(java, record, sizeof(record), fp) ||
	    !java_is_return(java, record[1]))
		return DUET_WALK_NO_FRAME;
	return walk_to_caller(cursor, record[1], fp + sizeof(record), record[0]);
}

/*
 * A step from an adapter that has called the JVM. The call directs the adapter's caller to code that has been compiled
 * since (patch_callers_callsite() of sharedRuntime_x86_64.cpp). The adapter has saved all registers. r13 has the sp at
 * its entry, rax the return address. Below these are the floating point registers: fxsave's 512 bytes (JDK 8), or room
 * for xsave's.
 */
static inline walk_result java_step_adapter(struct walk_java *java, struct unwind_cursor *cursor)
{
	walk_result end;

	if (!WALK_X86)
		return java_step_record(java, cursor);
	end = java_step_saved(java, cursor, cursor->sp + 2688);
	return end ? java_step_saved(java, cursor, cursor->sp + 512) : end;
}

/*
 * Interrupted in an adapter that saves its registers for that call, or restores them. Meanwhile sp is aligned and
 * moved, but r13 points at the return address.
 */
static inline walk_result java_leaf_saving(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t r13 = java_register(java, DUET_FRAME_SENDER(java->layout)), to;

	if (!WALK_X86 || r13 - cursor->sp > JAVA_ADAPTER_SAVED || walk_read_word(java, &to, r13))
		return DUET_WALK_LEAF;
	if (!java_keeps_fp(java, to) && !WALK_JAVA_SENDER(java, to, r13 + WALK_WORD) &&
	    (to != java->regs[DUET_FRAME_RETURN] || !java_is_return(java, to)))
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, r13 + WALK_WORD, cursor->fp);
}

/*
 * Interrupted in an adapter between compiled code and the interpreter. On the way to the interpreter it pops the return
 * address into rax, keeps sp in r13, moves sp, and pushes the address again. On the way back it aligns sp and pushes
 * the address from rax. The caller's frame shows how far the adapter has come.
 */
static inline walk_result java_leaf_adapter(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t rax = java->regs[DUET_FRAME_RETURN], r13 = java_register(java, DUET_FRAME_SENDER(java->layout));
	uint64_t moved = r13 - cursor->sp, to;
	int is_moved = moved < JAVA_MAX_FRAME_WORDS * WALK_WORD;

	if (walk_read_word(java, &to, cursor->sp))
		return DUET_WALK_UNREADABLE;
	/*
	 * Before the adapter keeps sp in r13, r13 may have the sp of an earlier caller with a frame of the same size.
	 */
	if (is_moved && WALK_JAVA_SENDER(java, to, r13) &&
	    (to == rax || !WALK_JAVA_SENDER(java, to, cursor->sp + WALK_WORD)))
		return walk_to_caller(cursor, to, r13, cursor->fp);
	/* the address is not pushed yet: on top of the stack may be that of an earlier call */
	if (is_moved && WALK_JAVA_SENDER(java, rax, r13))
		return walk_to_caller(cursor, rax, r13, cursor->fp);
	if (java_keeps_fp(java, to) || WALK_JAVA_SENDER(java, to, cursor->sp + WALK_WORD))
		return WALK_JAVA_RETURN(cursor, 0, 1);
	if (java_keeps_fp(java, rax) || WALK_JAVA_SENDER(java, rax, cursor->sp))
		return walk_to_caller(cursor, rax, cursor->sp, cursor->fp);
	/* The adapter has saved its registers and called the JVM, or is saving or restoring them. */
	if (java_step_adapter(java, cursor) == DUET_WALK_NONE || java_leaf_saving(java, cursor) == DUET_WALK_NONE)
		return DUET_WALK_NONE;
	/* If the caller's own caller is deoptimized, no return address is found at the end of the caller's frame. */
	return !is_moved && java_is_called(java, to) ? WALK_JAVA_RETURN(cursor, 0, 1) : DUET_WALK_LEAF;
}

/*
 * A step by a stub's own frame pointer. It must lead to the return address of a call of a stub in this blob, which may
 * have jumped to this one. Otherwise returns `none`. The barrier at a method's entry pushes -1 before it pushes fp (JDK
 * 14+, StubGenerator::generate_method_entry_barrier()).
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
	if (java_call_target(java, words[1]) - java->blob >= java_field(java, java->layout.blob_bytes, 4) &&
	    (WALK_X86 || (!java_keeps_fp(java, words[1]) && !WALK_JAVA_SENDER(java, words[1], above))))
		return none;
	return walk_to_caller(cursor, words[1], above, words[0]);
}

/*
 * Interrupted in a stub without a frame size: at its first instruction, after its first push, with a frame of its own,
 * or with none. Whatever else is on the stack, the right return address follows a call of this stub.
 */
static inline walk_result java_leaf_stub(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t pc = cursor->pc, words[2];

	java->is_below_stub = 1;
	if (walk_read(java, words, sizeof(words), cursor->sp))
		return DUET_WALK_UNREADABLE;
	if (java_called_here(java, words[0], pc))
		return WALK_JAVA_RETURN(cursor, 0, 1);
	if (java_called_here(java, words[1], pc - 1))
		return WALK_JAVA_RETURN(cursor, WALK_WORD, !java_callee_saves_fp(java, words[1]));
	if (java_step_stub_frame(java, cursor, DUET_WALK_LEAF) == DUET_WALK_NONE)
		return DUET_WALK_NONE;
	return java_leaf_pushed(java, cursor);
}

/* arm64: has the stub called since it was entered? If so, lr only leads back into the stub itself. */
static inline int java_has_called(const struct walk_java *java, const struct unwind_cursor *cursor)
{
	return walk_strip(cursor->lr) - java->blob < java_field(java, java->layout.blob_bytes, 4);
}

/*
 * arm64: interrupted in a stub that has made a frame pointer of its own: stp x29, x30, [sp, #-16]!; mov x29, sp. The
 * frame record must have the same return address as lr. When the stub has called since, the return address must fit a
 * caller's frame instead.
 */
static inline walk_result java_leaf_record(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t fp = cursor->fp, record[2];

	if (fp < cursor->sp || fp % WALK_WORD || walk_read(java, record, sizeof(record), fp))
		return DUET_WALK_LEAF;
	record[1] = walk_strip(record[1]);
	if (java_has_called(java, cursor) ? !WALK_JAVA_SENDER(java, record[1], fp + sizeof(record))
					  : record[1] != walk_strip(cursor->lr))
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, record[1], fp + sizeof(record), record[0]);
}

/*
 * arm64: returns how many bytes a stub without a frame has on the stack at pc, or -1 when that is not known. The
 * instructions from pc to the stub's end show what the stub has yet to free. If they do not, and the stub's first
 * instructions push nothing, the number is 0. `entry` is where the stub was called, or 0.
 */
static inline int32_t java_stub_bytes(struct walk_java *java, uint64_t pc, uint64_t entry)
{
	int32_t bytes;

	if (walk_read(java, java->head, JAVA_STUB_BYTES, pc))
		return -1;
	bytes = duet_frame_stub_bytes(java->head, JAVA_STUB_BYTES);
	if (bytes >= 0 || !entry || entry > pc || walk_read(java, java->code, DUET_FRAME_CODE_BYTES, entry))
		return bytes;
	return duet_frame_pushes(java->code) ? -1 : 0;
}

/*
 * arm64: interrupted in a stub without a frame size or a frame pointer. The return address is in lr, unless the stub
 * has called since. It may be in native code, which calls the stubs of atomic operations.
 */
static inline walk_result java_leaf_linked(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t to = walk_strip(cursor->lr), entry;
	int has_called = java_has_called(java, cursor);
	int32_t bytes;

	java->is_below_stub = 1;
	if (java_leaf_record(java, cursor) == DUET_WALK_NONE)
		return DUET_WALK_NONE;
	if (has_called)
		return DUET_WALK_LEAF;
	if (java_keeps_fp(java, to))
		return walk_to_caller(cursor, to, cursor->sp, cursor->fp);
	entry = java_call_target(java, to);
	if (entry - java->blob >= java_field(java, java->layout.blob_bytes, 4))
		entry = 0;
	java->blob = 0; /* head holds code from here on */
	bytes = java_stub_bytes(java, cursor->pc, entry);
	if (bytes < 0 ||
	    (java_heap(&java->layout, to) >= 0 && !WALK_JAVA_SENDER(java, to, cursor->sp + (uint32_t)bytes)))
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, cursor->sp + (uint32_t)bytes, cursor->fp);
}

/* arm64: interrupted in an adapter between compiled code and the interpreter, which moves sp and keeps lr. */
static inline walk_result java_adapter_linked(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t to = walk_strip(cursor->lr), sender = java_register(java, DUET_FRAME_SENDER(java->layout));

	if (java_keeps_fp(java, to) || WALK_JAVA_SENDER(java, to, cursor->sp))
		return walk_to_caller(cursor, to, cursor->sp, cursor->fp);
	if (sender - cursor->sp < JAVA_MAX_FRAME_WORDS * WALK_WORD && WALK_JAVA_SENDER(java, to, sender))
		return walk_to_caller(cursor, to, sender, cursor->fp);
	return DUET_WALK_LEAF;
}

/*
 * Interrupted in a stub that makes a frame. The frame is whole, unless the first or last instructions show otherwise.
 */
static inline walk_result java_leaf_framed(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t begin = java_code_begin(java), done = cursor->pc - begin;
	int is_complete = cursor->pc >= java_frame_complete(java), enters, forwards;
	int64_t slot = 0;

	if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, begin))
		return DUET_WALK_LEAF;
	enters = java_code_enters(java);
	if (java_is_catcher(java))
		return java_leaf_catcher(java, cursor, done);
	if (duet_frame_keeps_fp(java->code) && !java_has_called(java, cursor) &&
	    java_leaf_record(java, cursor) == DUET_WALK_NONE)
		return DUET_WALK_NONE;
	/* C2's stubs begin like its methods, and do not say where their prologue ends. */
	java->prologue_bytes = 0;
	if (done)
		slot = WALK_JAVA_PROLOGUE(java, done);
	if (slot == DUET_FRAME_BUILT) {
		if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
			return DUET_WALK_LEAF;
		if (java_leaf_thrown(java, cursor) == DUET_WALK_NONE)
			return DUET_WALK_NONE;
		forwards = java_forwards(java);
		frame_bytes += duet_frame_moved_bytes(java->code);
		slot = WALK_JAVA_EPILOGUE(java, cursor->pc);
		if (slot < 0 && forwards && java_has_none(java, cursor))
			return WALK_JAVA_RETURN(cursor, 0, 1);
		if (slot < 0 && !java->prologue_bytes && !is_complete)
			return DUET_WALK_LEAF;
	}
	if (slot != DUET_FRAME_BUILT)
		return java_return_partly(cursor, slot, frame_bytes);
	/* After push %rbp; mov %rsp, %rbp, C1's stubs push registers, and pop them some instructions later. */
	if (enters && cursor->fp - cursor->sp <= frame_bytes - 2 * WALK_WORD)
		return java_step_entered(java, cursor);
	return WALK_JAVA_RETURN(cursor, frame_bytes - WALK_WORD, 0);
}

/*
 * Interrupted in the compiled wrapper of a native method. The wrapper keeps a frame pointer from its first
 * instructions, push %rbp; mov %rsp, %rbp, to its leave. The code after the leave is recognised by its instructions.
 * Before the wrapper has pushed fp, fp is a caller's, and cannot have the value that it would have in this frame.
 */
static inline walk_result java_leaf_wrapper(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t above = cursor->fp - cursor->sp;
	int64_t slot;

	if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
		return DUET_WALK_LEAF;
	slot = duet_frame_is_pushed(java->code) ? WALK_WORD : WALK_JAVA_EPILOGUE(java, cursor->pc);
	if (slot < 0 && cursor->pc < java_frame_complete(java) && above && above != frame_bytes - 2 * WALK_WORD)
		slot = 0;
	return slot >= 0 ? java_return_partly(cursor, slot, frame_bytes) : WALK_JAVA_BY_FP(cursor);
}

/* Interrupted in a stub after a compiled method's own code. Each kind has its own number of words on the stack. */
static inline walk_result java_leaf_behind(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	enum duet_frame_stub has;

	if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc - DUET_FRAME_STUB_BEFORE))
		return DUET_WALK_LEAF;
	has = duet_frame_stub(java->code);
	if (has == DUET_STUB_CALLED)
		return java_return_called(cursor);
	if (has == DUET_STUB_OTHER || !frame_bytes)
		return DUET_WALK_LEAF;
	return WALK_JAVA_RETURN(cursor, frame_bytes - (has == DUET_STUB_PUSHED ? 0 : WALK_WORD), 0);
}

/* Interrupted in a compiled method. The instructions show how far its frame is built. */
static inline walk_result java_leaf_compiled(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t entry = java_entry(java), done = cursor->pc - entry;
	int64_t slot = DUET_FRAME_BUILT;

	if (cursor->pc >= java->blob + java_field(java, java->layout.nmethod_stubs, 4))
		return java_leaf_behind(java, cursor, frame_bytes);
	if (cursor->pc < entry || !frame_bytes) /* inline cache check; method handle intrinsics have no frame */
		return java_return_called(cursor);
	if (done < DUET_FRAME_PROLOGUE_BYTES) {
		if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, entry))
			return DUET_WALK_LEAF;
		slot = WALK_JAVA_PROLOGUE(java, done);
	}
	if (slot == DUET_FRAME_BUILT) {
		if (walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
			return DUET_WALK_LEAF;
		frame_bytes += duet_frame_moved_bytes(java->code);
		slot = WALK_JAVA_EPILOGUE(java, cursor->pc);
	}
	return slot == DUET_FRAME_BUILT ? java_return_pushed(java, cursor, frame_bytes)
					: java_return_partly(cursor, slot, frame_bytes);
}

/*
 * Sets java->pc for a method that is deoptimized. Its callee returns to a stub of the method. The frame holds the pc at
 * which the method would have continued, and that pc identifies the methods that are inlined there.
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

/* Interrupted in a stub. Tries first that Java called the stub, which is the usual way, and then the other ways. */
static inline walk_result java_leaf_of_stub(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t pc = cursor->pc, sp = cursor->sp, fp = cursor->fp;
	walk_result end = frame_bytes ? java_leaf_framed(java, cursor, frame_bytes) : java_leaf_stub(java, cursor);

	if (end == DUET_WALK_NONE && java_heap(&java->layout, cursor->pc) >= 0)
		return end;
	cursor->pc = pc;
	cursor->sp = sp;
	cursor->fp = fp;
	return WALK_JAVA_ODD(java, cursor, frame_bytes);
}

/* Interrupted in a blob. A method's caller is in a code heap too: native code calls Java by the call stub or alike. */
static inline walk_result java_step_leaf(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	walk_result end;

	if (java_is_adapter(java))
		return WALK_X86 ? java_leaf_adapter(java, cursor) : java_adapter_linked(java, cursor);
	if (java_is_frameless(java))
		return java_return_called(cursor);
	if (!java_is_compiled(java))
		return frame_bytes || WALK_X86 ? java_leaf_of_stub(java, cursor, frame_bytes)
					       : java_leaf_linked(java, cursor);
	if (java_is_native(java))
		end = java_leaf_wrapper(java, cursor, frame_bytes);
	else
		end = java_leaf_compiled(java, cursor, frame_bytes);
	return end == DUET_WALK_NONE && java_heap(&java->layout, cursor->pc) < 0 ? DUET_WALK_LEAF : end;
}

#define JAVA_ENTRY_STEPS 8 /* steps of 16 bytes: the search passes arguments on the stack */

#define JAVA_ENTRY_WORDS 64 /* words of the frame of enterSpecial, at most; JDK 21 and 25: 10 */

/*
 * A step from the last frame that a mounted virtual thread has on the stack; its other frames are on the heap. The last
 * frame's return address leads to a stub that brings the next frames from there. Right above that frame, after its
 * arguments, is the frame of Continuation.enterSpecial on the carrier's stack. It has a ContinuationEntry, in which no
 * word is an address of code, so the first such word is its return address. This does not hold while those stubs
 * themselves have called and make room for frames.
 */
static inline walk_result java_step_continuation(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t entry = (cursor->sp + 15) & ~15ull, to, pc, words;

	if (WALK_JAVA_CALLED(java, cursor->pc) || walk_read_word(java, &pc, java->layout.enter_special) ||
	    WALK_JAVA_BLOB(java, pc))
		return DUET_WALK_NO_FRAME;
	words = java_field(java, java->layout.blob_frame_words, 4);
	if (!java_is_native(java) || words < 2 || words > JAVA_ENTRY_WORDS)
		return DUET_WALK_NO_FRAME;
	for (int i = 0; i < JAVA_ENTRY_STEPS; i++, entry += 16) {
		if (walk_read_word(java, &to, entry + (words - 1) * WALK_WORD))
			return DUET_WALK_UNREADABLE;
		if (java_heap(&java->layout, to) >= 0 &&
		    (java_is_interpreter(java, to) || WALK_JAVA_CALLED(java, to))) {
			java->code_id = DUET_ID_ON_HEAP;
			cursor->pc = pc;
			cursor->sp = entry;
			return DUET_WALK_NONE;
		}
	}
	return DUET_WALK_NO_FRAME;
}

/* Returned to in a stub or an adapter without a frame size. */
static inline walk_result java_step_stub(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t name = java_field(java, java->layout.blob_name, 8);

	if (name && name == java->layout.continuation_name)
		return WALK_JAVA_CONTINUATION(java, cursor);
	if (java_is_adapter(java))
		return java_step_adapter(java, cursor);
	if (java_step_stub_frame(java, cursor, DUET_WALK_NO_FRAME) == DUET_WALK_NONE)
		return DUET_WALK_NONE;
	return WALK_JAVA_FORWARDER(java, cursor);
}

/* Returns how many bytes are freed by an instruction that begins in the eight bytes from `at` on in head, or 0. */
static inline uint32_t java_freed_part(const struct walk_java *java, uint64_t at)
{
	return duet_frame_freed_bytes(java->head + (at & JAVA_BLOB_MASK), WALK_WORD);
}

/* Returns how many bytes the code in head frees before it jumps. */
static inline uint32_t java_freed_bytes(struct walk_java *java)
{
	uint32_t freed = 0;

	if (!WALK_X86)
		return duet_frame_freed_bytes(java->head, JAVA_BARRIER_BYTES);
	for (uint32_t at = 0; !freed && at < JAVA_BARRIER_BYTES; at += WALK_WORD)
		freed = WALK_JAVA_FREED(java, at);
	return freed;
}

/*
 * A step from a method that has called the collector for a load or store (ZGC; C2's barriers since JDK 14). The method
 * has saved registers below its frame, and frees that room before it jumps back.
 */
static inline walk_result java_step_barrier(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t slot = frame_bytes - WALK_WORD, freed, word;

	java->blob = 0; /* head holds code from here on */
	if (walk_read(java, java->head, JAVA_BARRIER_BYTES + 8, cursor->pc))
		return DUET_WALK_NO_FRAME;
	freed = java_freed_bytes(java);
	slot += freed;
	if (!freed || freed > JAVA_BARRIER_SAVED || walk_read_word(java, &word, cursor->sp + slot) ||
	    !java_is_return(java, word))
		return DUET_WALK_NO_FRAME;
	return WALK_JAVA_RETURN(cursor, slot, 0);
}

/* A step from a compiled method that has called. Its caller is Java code as well. */
static inline walk_result java_step_compiled(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t pc = cursor->pc, sp = cursor->sp, fp = cursor->fp;
	walk_result end = WALK_JAVA_RETURN(cursor, frame_bytes - WALK_WORD, 0);

	if (end != DUET_WALK_NONE)
		return end;
	if (java_heap(&java->layout, cursor->pc) >= 0) {
		walk_know_frame(java, pc, frame_bytes);
		return DUET_WALK_NONE;
	}
	cursor->pc = pc;
	cursor->sp = sp;
	cursor->fp = fp;
	return WALK_JAVA_BARRIER(java, cursor, frame_bytes);
}

static inline walk_result java_step_code(struct walk_java *java, struct unwind_cursor *cursor)
{
	int is_below_stub = java->is_below_stub;
	uint64_t words, frame_bytes;
	walk_result end = WALK_JAVA_BLOB(java, cursor->pc);

	if (end)
		return end;
	words = java_field(java, java->layout.blob_frame_words, 4);
	if (words == UINT32_MAX || words == 1) /* Runtime1::no_frame_size; 1: a stub with only the return address */
		words = 0;
	if (words >= JAVA_MAX_FRAME_WORDS)
		return DUET_WALK_NO_BLOB;
	frame_bytes = words * WALK_WORD;
	java->is_below_stub = 0;
	java->may_be_empty = words && !java_is_compiled(java);
	if (java_is_compiled(java))
		java->code_id = (uint32_t)java_field(java, java->layout.nmethod_id, 4);
	if (!cursor->is_return)
		return WALK_JAVA_LEAF(java, cursor, frame_bytes);
	/*
	 * The callee's frame was found by frame pointer only. The wrapper of a native method keeps a frame pointer too.
	 */
	if (!WALK_X86 && cursor->no_sp && java_is_native(java))
		return WALK_JAVA_BY_FP(cursor);
	if (!words)
		return java_step_stub(java, cursor);
	/* On arm64 C2's code also pushes two words when it calls the JVM. */
	if (!WALK_X86 || (is_below_stub && java_is_compiled(java)))
		frame_bytes += java_operand_bytes(java, cursor->pc);
	if (!java_is_compiled(java) && java_is_realigned(java, cursor, frame_bytes))
		return WALK_JAVA_BY_FP(cursor);
	if (!java_is_compiled(java))
		return WALK_JAVA_RETURN(cursor, frame_bytes - WALK_WORD, 0);
	java_original_pc(java, cursor);
	if (is_below_stub)
		return java_return_pushed(java, cursor, frame_bytes);
	return java_step_compiled(java, cursor, frame_bytes);
}

/* ---- the step ---- */

/* Is pc in a code heap of the JVM, so that walk_java_step() applies? */
static inline int walk_java_owns(const struct walk_java *java, uint64_t pc)
{
	return java_heap(&java->layout, pc) >= 0;
}

static inline void java_begin_step(struct walk_java *java, const struct unwind_cursor *cursor)
{
	java->has_found = 0;
	java->code_id = 0;
	java->pc = cursor->pc;
	if (!cursor->is_return && cursor->signal_frame)
		java_signal_regs(java, cursor);
}

/* One step from the cursor's frame to its caller, for a pc in the interpreter. */
static inline walk_result walk_interpreter_step(struct walk_java *java, struct unwind_cursor *cursor)
{
	java_begin_step(java, cursor);
	return java_step_interpreter(java, cursor);
}

/* Likewise, for a pc in a code heap and not in the interpreter. */
static inline walk_result walk_code_step(struct walk_java *java, struct unwind_cursor *cursor)
{
	walk_result end;

	java_begin_step(java, cursor);
	if (cursor->is_return && cursor->pc == java->layout.call_stub_return) { /* entered from native code */
		java->thread_at = cursor->fp + (uint64_t)(int64_t)DUET_FRAME_STUB_THREAD;
		return WALK_JAVA_BY_FP(cursor);
	}
	end = java_step_code(java, cursor);
	java->may_be_empty &= java_is_interpreter(java, cursor->pc);
	return end;
}

/* Calls one of the two functions above, for a pc that walk_java_owns(). */
static inline walk_result walk_java_step(struct walk_java *java, struct unwind_cursor *cursor)
{
	return java_is_interpreter(java, cursor->pc) ? walk_interpreter_step(java, cursor)
						     : walk_code_step(java, cursor);
}

/*
 * Call after a step through an interpreter frame. Sets pc to the method, which the record has in place of the frame's
 * address, and code_id to the frame's id.
 */
static inline void walk_java_note(struct walk_java *java)
{
	java->pc = java->found_method;
	java->code_id = DUET_ID_INTERPRETED | java->found_check << DUET_ID_CHECK_SHIFT |
			(java->found_bci == DUET_BCI_NATIVE ? DUET_ID_BCI : (uint32_t)java->found_bci);
}
