/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * One step through a frame of HotSpot's template interpreter. A whole frame is found by its frame pointer. A frame that
 * is being made or left is found by where in the interpreter pc is, and by the registers there.
 */
#pragma once

#include "walk/entered.h"

/* Like InstanceKlass::jmethod_id_or_null(); also 0 when the layout's owner has no use for ids. */
static inline uint64_t java_method_id(const struct walk_java *java)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t pool = java_const_field(java, layout->const_pool, 8);
	uint64_t number = java_const_field(java, layout->const_id, 2);
	uint64_t holder, ids, count, id;

	if (layout->holder_ids == DUET_JVM_NO_FIELD || walk_read_word(java, &holder, pool + layout->pool_holder) ||
	    walk_read_word(java, &ids, holder + layout->holder_ids) || !ids ||
	    walk_read_word(java, &count, ids) || number >= count ||
	    walk_read_word(java, &id, ids + (number + 1) * WALK_WORD))
		return 0;
	return id;
}

/*
 * See duet_method_tag(). When a class is redefined, the new version of a method may lie where an older one was, with
 * its constants too, but the version of the pool is another one.
 */
static inline uint64_t java_method_tag(const struct walk_java *java)
{
	uint32_t at = java->layout.const_code_bytes, version = 0;
	uint64_t pool = java_const_field(java, java->layout.const_pool, 8);
	uint64_t name = java_const_field(java, at + 2, 2), signature = java_const_field(java, at + 4, 2);

	if (java->layout.pool_version && walk_read(java, &version, sizeof(version), pool + java->layout.pool_version))
		version = 0;
	return duet_method_tag(java->const_at, pool,
			       java->code_bytes | name << 16 | signature << 32 | (uint64_t)version << 48);
}

#define JAVA_FRAME_WORD(java, offset) ((java)->frame[DUET_FRAME_FIXED_BYTES / WALK_WORD + (offset)])

/* Reads the ConstMethod of a Method. Returns nonzero when it cannot be read. */
static inline int java_read_const(struct walk_java *java, uint64_t method)
{
	uint32_t size = java->layout.const_bytes;
	uint64_t tag;

	/* Read no more than the structure has: the next page may never have been touched. */
	if (size > DUET_CONST_METHOD_BYTES ||
	    walk_read_word(java, &java->const_at, method + java->layout.method_const) ||
	    walk_read(java, java->method, size, java->const_at))
		return -1;
	java->code_bytes = (uint32_t)java_const_field(java, java->layout.const_code_bytes, 2);
	java->found_method = java_method_id(java);
	java->found_check = 0;
	if (java->found_method)
		return 0;
	tag = java_method_tag(java);
	java->found_method = duet_method_key(method, tag);
	java->found_check = duet_method_check(tag);
	return 0;
}

/* Like java_read_const(), unless the method is known from the last frame (recursion), or from an earlier walk. */
static inline int java_find_method(struct walk_java *java, uint64_t method)
{
	if (method && method == java->method_at)
		return 0;
	java->method_at = 0;
	if (!walk_known_method(java, method)) {
		if (java_read_const(java, method))
			return -1;
		walk_know_method(java, method);
	}
	java->method_at = method;
	return 0;
}

/*
 * Reads the method and its byte code index. `bytecode` is the pointer that the frame has saved, 0 before the method's
 * first byte code. Returns nonzero when the two do not fit together.
 */
static inline int java_read_method(struct walk_java *java, uint64_t method, uint64_t bytecode, int is_leaf)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t base, bytes, live = java->regs[DUET_FRAME_BCP];

	if (java_find_method(java, method))
		return -1;
	base = java->const_at + layout->const_bytes;
	bytes = java->code_bytes;
	/* The interpreter saves the pointer when it calls. While it runs its own instructions, a register has it. */
	if (is_leaf && live - base < bytes)
		bytecode = live;
	else if (!bytecode)
		bytecode = base;
	/* A native method has no byte code, and its frame may have any value in the pointer's slot. */
	java->found_bci = bytes ? (int32_t)(bytecode - base) : DUET_BCI_NATIVE;
	java->has_found = !bytes || bytecode - base < bytes;
	return java->has_found ? 0 : -1;
}

/* ---- a frame that is being made ---- */

/* Returns how much of its frame the method has at pc. */
static inline enum duet_frame_made java_made(const struct walk_java *java, uint64_t pc)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t at = pc - layout->interpreter_low;

	if (pc < layout->entries_low || pc >= layout->entries_high)
		return DUET_FRAME_MADE;
	for (int i = 0; i < DUET_JVM_ENTRIES; i++) {
		const struct duet_method_entry *entry = &layout->entries[i];

		if (at < entry->begin || at >= entry->end)
			continue;
		return duet_frame_made(entry->pop, entry->push, at);
	}
	return DUET_FRAME_MADE_NEVER;
}

/* The mask shows the verifier the bound. The asm hides `number`: else the compiler finds the mask superfluous. */
static inline uint64_t java_register(const struct walk_java *java, uint32_t number)
{
	__asm__("" : "+r"(number));
	return java->regs[number & (DUET_FRAME_REGISTERS - 1)];
}

/*
 * Returns the stack pointer of the caller, which `to` is in. The callee has it as `sender`. It cannot be below `least`,
 * the end of the callee's frame. For an interpreted caller `sender` may be too low. Then this returns `least`, and the
 * caller's frame is found by fp anyway. On arm64 such a caller calls with sp far down, where all of its stack would
 * end, and its callee may move sp up again. On x86-64 a method handle's linker has popped its last argument before.
 */
static inline uint64_t java_sender_sp(const struct walk_java *java, uint64_t to, uint64_t sender, uint64_t least)
{
	if (sender < least && (!WALK_X86 || least - sender == WALK_WORD) && java_keeps_fp(java, to))
		return least;
	return WALK_X86 ? sender : sender & ~15ull;
}

/* Finds the return address before there is a frame. Returns nonzero when it cannot be read. */
static inline int java_entering_from(struct walk_java *java, const struct unwind_cursor *cursor,
				     enum duet_frame_made made, uint64_t *ret_to)
{
	uint64_t slot = cursor->sp + (made == DUET_FRAME_MADE_FP_PUSHED ? WALK_WORD : 0);

	*ret_to = java->regs[DUET_FRAME_RETURN];
	if (WALK_X86)
		return made != DUET_FRAME_MADE_POPPED && walk_read_word(java, ret_to, slot);
	*ret_to = walk_strip(*ret_to);
	return 0;
}

/* A step before there is a frame: registers have the method, and the stack pointer that its caller had. */
static inline walk_result java_step_entering(struct walk_java *java, struct unwind_cursor *cursor,
					     enum duet_frame_made made)
{
	uint64_t to, sender;

	if (java_entering_from(java, cursor, made, &to))
		return DUET_WALK_UNREADABLE;
	sender = java_sender_sp(java, to, java_register(java, DUET_FRAME_SENDER(java->layout)), cursor->sp);
	if (java_heap(&java->layout, to) < 0 || sender - cursor->sp > JAVA_MAX_FRAME_WORDS * WALK_WORD)
		return DUET_WALK_LEAF;
	/* The entry has called a mathematical function, so lr is not the caller's. */
	if (!WALK_X86 && to >= java->layout.entries_low && to < java->layout.entries_high)
		return DUET_WALK_LEAF;
	if (made != DUET_FRAME_MADE_NEVER && WALK_JAVA_METHOD(java, java->regs[DUET_FRAME_METHOD], 0, 0))
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, sender, cursor->fp);
}

/* Returned to in an entry without a frame. How far its caller's frame reaches is known only of interpreted ones. */
static inline walk_result java_step_frameless(struct walk_java *java, struct unwind_cursor *cursor)
{
	walk_result end = WALK_X86 ? WALK_JAVA_RETURN(cursor, 0, 1) : DUET_WALK_NO_FRAME;

	return end == DUET_WALK_NONE && !java_is_interpreter(java, cursor->pc) ? DUET_WALK_NO_FRAME : end;
}

/* ---- a frame that is whole, or left ---- */

/*
 * Fills in the words that a method's entry has not pushed yet. On arm64 the entry makes room for all words at once, and
 * stores the caller's sp last.
 */
static inline void java_finish_frame(struct walk_java *java, uint64_t pushed_bytes, enum duet_frame_made made)
{
	if (pushed_bytes < 1 * WALK_WORD || made == DUET_FRAME_MADE_UNSENT)
		JAVA_FRAME_WORD(java, -1) = java_register(java, DUET_FRAME_SENDER(java->layout));
	if (pushed_bytes < 3 * WALK_WORD)
		JAVA_FRAME_WORD(java, -3) = java->regs[DUET_FRAME_METHOD];
	if (pushed_bytes < DUET_FRAME_FIXED_BYTES)
		JAVA_FRAME_WORD(java, -7) = JAVA_FRAME_WORD(java, -8) = 0;
}

/* Reads the method of the frame in java->frame. Returns nonzero when the frame holds none. */
static inline int java_name_framed(struct walk_java *java, const struct unwind_cursor *cursor)
{
	return WALK_JAVA_METHOD(java, JAVA_FRAME_WORD(java, -3),
				java->layout.frame_bcp == -7 ? JAVA_FRAME_WORD(java, -7)
							     : JAVA_FRAME_WORD(java, DUET_FRAME_BCP_WORD),
				!cursor->is_return);
}

/*
 * Like java_name_framed(), for a frame that may not be filled yet. When a method is deoptimized, a stub lays out the
 * interpreter frames that replace the method's own frame. In each of them the stub clears the slot for the sp that the
 * interpreter keeps while it calls. Then the JVM fills the frames, the outermost first, with the method, that sp, and
 * the byte code (vframeArrayElement::unpack_on_stack()). Before that, an earlier call may have left any method in the
 * frame. Returns nonzero when this is not such a frame either.
 */
static inline int java_name_laid_out(struct walk_java *java, const struct unwind_cursor *cursor)
{
	uint64_t to = walk_strip(JAVA_FRAME_WORD(java, 1));

	java->may_be_empty = 0;
	if (JAVA_FRAME_WORD(java, -2) && !java_name_framed(java, cursor))
		return 0;
	if (java_heap(&java->layout, to) < 0)
		return -1;
	java->may_be_empty = (uint8_t)java_is_interpreter(java, to);
	java->code_id = DUET_ID_NOT_FILLED;
	return 0;
}

static inline walk_result java_step_framed(struct walk_java *java, struct unwind_cursor *cursor,
					   enum duet_frame_made made)
{
	uint64_t fp = cursor->fp, pushed = fp - cursor->sp, to;
	int is_entering =
		!cursor->is_return && cursor->pc >= java->layout.entries_low && cursor->pc < java->layout.entries_high;

	if (fp % WALK_WORD || fp < DUET_FRAME_FIXED_BYTES || fp < cursor->sp ||
	    (!is_entering && pushed < DUET_FRAME_FIXED_BYTES))
		return cursor->is_return ? DUET_WALK_BAD_FP : DUET_WALK_LEAF;
	if (walk_read_stack(cursor, java->frame, sizeof(java->frame) / WALK_WORD, fp - DUET_FRAME_FIXED_BYTES))
		return DUET_WALK_UNREADABLE;
	if (is_entering)
		java_finish_frame(java, pushed, made);
	if (WALK_X86 && java->may_be_empty ? java_name_laid_out(java, cursor) : java_name_framed(java, cursor))
		return DUET_WALK_BAD_INTERPRETED;
	to = walk_strip(JAVA_FRAME_WORD(java, 1));
	return walk_to_caller(cursor, to, java_sender_sp(java, to, JAVA_FRAME_WORD(java, -1), fp + 2 * WALK_WORD),
			      JAVA_FRAME_WORD(java, 0));
}

/* Nonzero when the interrupted instruction is one of those that leave a method. */
static inline int java_is_leaving(struct walk_java *java, const struct unwind_cursor *cursor)
{
	return !walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc - DUET_FRAME_BYTES_BEFORE) &&
	       duet_frame_exit(java->code, &java->exit);
}

/* A step from an instruction that leaves a method. fp is the caller's, except on arm64 before the ldp that loads it. */
static inline walk_result java_step_leaving(struct walk_java *java, struct unwind_cursor *cursor)
{
	const struct duet_frame_exit *exit = &java->exit;
	uint64_t to = java_register(java, exit->to), record[2] = {cursor->fp, 0};
	uint64_t sp = exit->has_sp ? cursor->sp : java_register(java, exit->sp);

	if (!WALK_X86 && exit->is_on_stack) {
		if (walk_read(java, record, sizeof(record), cursor->sp))
			return DUET_WALK_UNREADABLE;
		to = record[1];
	} else if (exit->is_on_stack && walk_read_word(java, &to, cursor->sp)) {
		return DUET_WALK_UNREADABLE;
	}
	to = walk_strip(to);
	if (java_heap(&java->layout, to) < 0)
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, java_sender_sp(java, to, sp, cursor->sp), record[0]);
}

#if WALK_X86
/*
 * A step from where the interpreter has left a frame that an exception passes through, and asks which handler catches
 * it. The code pops the return address to rdx, and sets sp to the caller's, which is in rbx. Then it pushes the
 * exception and that address, and may align rsp for a call. After the call it pops both, and jumps to the handler.
 */
static inline walk_result java_step_thrown(struct walk_java *java, struct unwind_cursor *cursor, uint64_t at)
{
	const struct duet_method_entry *thrown = &java->layout.thrown;
	uint64_t to = java->regs[DUET_X86_RDX], sp = cursor->sp, slot = 0;

	if (at <= thrown->pop + 1ull) {
		if (at <= thrown->pop && walk_read_word(java, &to, sp))
			return DUET_WALK_UNREADABLE;
		sp = java->regs[DUET_X86_RBX];
	} else if (at == thrown->push + 1ull || at == thrown->end - 3ull) {
		sp += WALK_WORD;
	} else if (at > thrown->push && at < thrown->end - 3ull) {
		slot = java_aligned_bytes(java, cursor->pc);
		if (walk_read_word(java, &to, sp + slot))
			return DUET_WALK_UNREADABLE;
		sp += slot + 2 * WALK_WORD;
	}
	if (java_heap(&java->layout, to) < 0)
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, java_sender_sp(java, to, sp, cursor->sp), cursor->fp);
}
#else
#define java_step_thrown(java, cursor, at) DUET_WALK_LEAF
#endif

static inline walk_result java_step_interpreter(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t at = cursor->pc - java->layout.interpreter_low;
	enum duet_frame_made made;

	/* BPF's verifier does not know what memory holds: so it does not follow each value to the end of the step. */
	java->made = (uint8_t)java_made(java, cursor->pc);
	__asm__ volatile("" ::: "memory");
	made = (enum duet_frame_made)java->made;
	if (at >= java->layout.thrown.begin && at < java->layout.thrown.end)
		return java_step_thrown(java, cursor, at);
	if (!cursor->is_return && WALK_JAVA_LEAVING(java, cursor))
		return java_step_leaving(java, cursor);
	if (made != DUET_FRAME_MADE && made != DUET_FRAME_MADE_UNSENT && !cursor->is_return)
		return java_step_entering(java, cursor, made);
	if (made == DUET_FRAME_MADE_NEVER)
		return java_step_frameless(java, cursor);
	return java_step_framed(java, cursor, made);
}
