/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * One step through a frame of HotSpot's template interpreter on x86-64: whole frames by their frame pointer, and those
 * that are being made or left by where exactly the interpreter is and what it has in registers there.
 */
#ifndef DUET_WALK_INTERPRETER_H
#define DUET_WALK_INTERPRETER_H

#include "duet_walk_blobs.h"

/* As InstanceKlass::jmethod_id_or_null(); 0 when the method has none. */
static inline uint64_t java_method_id(const struct walk_java *java)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t pool = java_const_field(java, layout->const_pool, 8);
	uint64_t number = java_const_field(java, layout->const_id, 2);
	uint64_t holder, ids, count, id;

	if (walk_read_word(java, &holder, pool + layout->pool_holder) ||
	    walk_read_word(java, &ids, holder + layout->holder_ids) || !ids ||
	    walk_read_word(java, &count, ids) || number >= count ||
	    walk_read_word(java, &id, ids + (number + 1) * WALK_WORD))
		return 0;
	return id;
}

#define JAVA_FRAME_WORD(java, offset) ((java)->frame[JAVA_FIXED_BYTES / WALK_WORD + (offset)])

/* Nonzero when it cannot be read. Where a method calls itself, it is there already. */
static inline int java_find_method(struct walk_java *java, uint64_t method)
{
	uint32_t size = java->layout.const_bytes;

	if (method && method == java->method_at)
		return 0;
	java->method_at = 0;
	/* No more than there is: the next page may never have been touched. */
	if (size > DUET_CONST_METHOD_BYTES ||
	    walk_read_word(java, &java->const_at, method + java->layout.method_const) ||
	    walk_read(java, java->method, size, java->const_at))
		return -1;
	java->found_method = java_method_id(java);
	java->method_at = method;
	return 0;
}

/*
 * Reads the method and what it does. `bytecode` is the pointer that its frame has saved, 0 before the method's first
 * byte code. Nonzero when that makes no sense.
 */
static inline int java_read_method(struct walk_java *java, uint64_t method, uint64_t bytecode, int is_leaf)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t base, bytes, live = java->regs[DUET_X86_R13];

	if (java_find_method(java, method))
		return -1;
	base = java->const_at + layout->const_bytes;
	bytes = java_const_field(java, layout->const_code_bytes, 2);
	/* The interpreter saves it where it calls something; at its own instructions the register has it. */
	if (is_leaf && live - base < bytes)
		bytecode = live;
	else if (!bytecode)
		bytecode = base;
	/* A native method has no byte code, and anything in the place of the pointer. */
	java->found_bci = bytes ? (int32_t)(bytecode - base) : DUET_BCI_NATIVE;
	java->has_found = !bytes || bytecode - base < bytes;
	return java->has_found ? 0 : -1;
}

/* ---- a frame that is made ---- */

enum java_made {
	JAVA_MADE, /* by fp; what is not pushed yet lies below sp */
	JAVA_MADE_NOTHING, /* the return address is on top of the stack */
	JAVA_MADE_POPPED, /* it is in rax, while the locals are pushed */
	JAVA_MADE_FP_PUSHED, /* on top of it, the caller's fp */
	JAVA_MADE_NEVER, /* an entry that does its work without a frame: mathematics, method handles */
};

/* How much of its frame the method has, here. */
static inline enum java_made java_made(const struct walk_java *java, uint64_t pc)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t at = pc - layout->interpreter_low;

	if (pc < layout->entries_low || pc >= layout->entries_high)
		return JAVA_MADE;
	for (int i = 0; i < DUET_JVM_ENTRIES; i++) {
		const struct duet_method_entry *entry = &layout->entries[i];

		if (at < entry->begin || at >= entry->end)
			continue;
		if (at <= entry->pop || at == entry->push + 1ull)
			return JAVA_MADE_NOTHING;
		if (at <= entry->push)
			return JAVA_MADE_POPPED;
		return at == entry->push + 2ull ? JAVA_MADE_FP_PUSHED : JAVA_MADE;
	}
	return JAVA_MADE_NEVER;
}

/* Before there is a frame: rbx has the method, r13 the sp that its caller had. */
static inline walk_result java_step_entering(struct walk_java *java, struct unwind_cursor *cursor, enum java_made made)
{
	uint64_t to = java->regs[DUET_X86_RAX], sender = java->regs[DUET_X86_R13];
	uint64_t slot = cursor->sp + (made == JAVA_MADE_FP_PUSHED ? WALK_WORD : 0);

	if (made != JAVA_MADE_POPPED && walk_read_word(java, &to, slot))
		return DUET_WALK_UNREADABLE;
	if (java_heap(&java->layout, to) < 0 || sender - cursor->sp > JAVA_MAX_FRAME_WORDS * WALK_WORD)
		return DUET_WALK_LEAF;
	if (made != JAVA_MADE_NEVER && java_read_method(java, java->regs[DUET_X86_RBX], 0, 0))
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, sender, cursor->fp);
}

/* Back in an entry that has no frame. Where its caller's ends, only an interpreted one tells. */
static inline walk_result java_step_frameless(struct walk_java *java, struct unwind_cursor *cursor)
{
	walk_result end = java_return(cursor, 0, 1);

	return end == DUET_WALK_NONE && !java_is_interpreter(java, cursor->pc) ? DUET_WALK_NO_FRAME : end;
}

/* ---- a frame that is there, or gone ---- */

/* What a method's entry has not pushed yet. */
static inline void java_finish_frame(struct walk_java *java, uint64_t pushed_bytes)
{
	if (pushed_bytes < 1 * WALK_WORD)
		JAVA_FRAME_WORD(java, -1) = java->regs[DUET_X86_R13];
	if (pushed_bytes < 3 * WALK_WORD)
		JAVA_FRAME_WORD(java, -3) = java->regs[DUET_X86_RBX];
	if (pushed_bytes < JAVA_FIXED_BYTES)
		JAVA_FRAME_WORD(java, -7) = JAVA_FRAME_WORD(java, -8) = 0;
}

static inline walk_result java_step_framed(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t fp = cursor->fp, pushed = fp - cursor->sp;
	int is_entering =
		!cursor->is_return && cursor->pc >= java->layout.entries_low && cursor->pc < java->layout.entries_high;

	if (fp % WALK_WORD || fp < JAVA_FIXED_BYTES || fp < cursor->sp || (!is_entering && pushed < JAVA_FIXED_BYTES))
		return cursor->is_return ? DUET_WALK_BAD_FP : DUET_WALK_LEAF;
	if (walk_read(java, java->frame, sizeof(java->frame), fp - JAVA_FIXED_BYTES))
		return DUET_WALK_UNREADABLE;
	if (is_entering)
		java_finish_frame(java, pushed);
	if (java_read_method(java, JAVA_FRAME_WORD(java, -3),
			     java->layout.frame_bcp == -7 ? JAVA_FRAME_WORD(java, -7) : JAVA_FRAME_WORD(java, -8),
			     !cursor->is_return))
		return DUET_WALK_BAD_INTERPRETED;
	return walk_to_caller(cursor, JAVA_FRAME_WORD(java, 1), JAVA_FRAME_WORD(java, -1), JAVA_FRAME_WORD(java, 0));
}

/* Nonzero when the interrupted instruction is one of those that leave a method. */
static inline int java_is_leaving(struct walk_java *java, const struct unwind_cursor *cursor,
				  struct duet_frame_exit *ret_exit)
{
	return !cursor->is_return &&
	       !walk_read(java, java->code, DUET_FRAME_CODE_BYTES, cursor->pc - DUET_FRAME_BYTES_BEFORE) &&
	       duet_frame_exit(java->code, ret_exit);
}

/* The mask is for the verifier; what is opaque, the compiler cannot find superfluous. */
static inline uint64_t java_register(const struct walk_java *java, uint32_t number)
{
	__asm__("" : "+r"(number));
	return java->regs[number & (DUET_X86_REGISTERS - 1)];
}

/* fp is the caller's already. */
static inline walk_result java_step_leaving(struct walk_java *java, struct unwind_cursor *cursor,
					    const struct duet_frame_exit *exit)
{
	uint64_t to = java_register(java, exit->to);
	uint64_t sp = exit->has_sp ? cursor->sp : java_register(java, exit->sp);

	if (exit->is_on_stack && walk_read_word(java, &to, cursor->sp))
		return DUET_WALK_UNREADABLE;
	if (java_heap(&java->layout, to) < 0)
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, to, sp, cursor->fp);
}

static inline walk_result java_step_interpreter(struct walk_java *java, struct unwind_cursor *cursor)
{
	enum java_made made = java_made(java, cursor->pc);
	struct duet_frame_exit exit;

	if (java_is_leaving(java, cursor, &exit))
		return java_step_leaving(java, cursor, &exit);
	if (made != JAVA_MADE && !cursor->is_return)
		return java_step_entering(java, cursor, made);
	if (made == JAVA_MADE_NEVER)
		return java_step_frameless(java, cursor);
	return java_step_framed(java, cursor);
}

#endif
