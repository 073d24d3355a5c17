/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * One step of a walk through HotSpot's frames on x86-64: compiled code by its frame size, the interpreter by its frame
 * pointer, the call stub back to native code. As duet_walk.h, the same code runs in BPF and in tests.
 *
 * All that is read belongs to the process: nothing leads out of bounds, and what does not fit together ends the walk.
 */
#ifndef DUET_WALK_JAVA_H
#define DUET_WALK_JAVA_H

#include "duet_frame_x86.h"
#include "duet_jvm.h"
#include "duet_walk.h"

#define JAVA_SEGMENT_HOPS 16 /* each leads back by 254 segments at most; JDK 17's largest blob needs 7 */
#define JAVA_SEGMENT_FREE 0xff
#define JAVA_BLOB_MASK 511 /* of offsets into a blob's head: lets the verifier see their bound */
#define JAVA_BLOB_SMALL 128 /* CodeBlob's own fields: JDK 17 has 120 */
#define JAVA_FIXED_BYTES 64 /* of an interpreter frame, below its frame pointer */
#define JAVA_MAX_FRAME_WORDS 65536
#define JAVA_MAX_STUB_BYTES 16384
#define JAVA_CALL_BYTES 13 /* of the longest call sequence that tells its target */

/* What a step works on. Too large for the BPF stack. */
struct walk_java {
	struct duet_jvm_layout layout; /* without heaps: no JVM, or one whose layout is not known */
	uint64_t bytecode; /* r13 of the interrupted thread: there the interpreter keeps its byte code pointer */
	uint64_t entered; /* rbx: there, the method that is being entered */
	uint64_t pc; /* of the frame that the last step left; not the cursor's then when it was deoptimized */
	uint64_t blob; /* start of the blob at hand, its CodeBlob */
	uint64_t frame[JAVA_FIXED_BYTES / 8 + 2]; /* of the interpreter: fp - JAVA_FIXED_BYTES to the return address */
	uint8_t head[JAVA_BLOB_MASK + 1 + 8]; /* of the block that the blob is in */
	uint8_t method[DUET_CONST_METHOD_BYTES]; /* head of ConstMethod */
	uint8_t code[DUET_FRAME_CODE_BYTES]; /* machine code */
	struct duet_interpreted found; /* by the last step, when it was through an interpreter frame */
	uint8_t has_found;
	uint8_t reserved[3];
	uint32_t code_id; /* by the last step, when it was through compiled code: HotSpot's compile id */
};

static inline uint64_t java_field(const struct walk_java *java, uint32_t offset, uint32_t width)
{
	const uint8_t *at = java->head + (offset & JAVA_BLOB_MASK);

	return width == 2 ? *(const uint16_t *)at : width == 4 ? *(const uint32_t *)at : *(const uint64_t *)at;
}

static inline uint64_t java_const_field(const struct walk_java *java, uint32_t offset, uint32_t width)
{
	const uint8_t *at = java->method + (offset & (DUET_CONST_METHOD_BYTES - 8));

	at += offset & 6;
	return width == 2 ? *(const uint16_t *)at : *(const uint64_t *)at;
}

/* Index of the heap that holds pc, or -1. */
static inline int java_heap(const struct duet_jvm_layout *layout, uint64_t pc)
{
	for (int i = 0; i < DUET_JVM_HEAPS; i++)
		if (pc >= layout->heaps[i].low && pc < layout->heaps[i].high)
			return i;
	return -1;
}

/* ---- code blobs ---- */

/* The start of the block that holds pc, or 0. Every step stays in the heap's map. */
static inline uint64_t java_block(const struct duet_jvm_heap *heap, uint64_t pc)
{
	uint32_t shift = heap->segment_shift & 31;
	uint64_t segment = (pc - heap->low) >> shift;
	uint8_t back;

	for (int i = 0; i < JAVA_SEGMENT_HOPS; i++) {
		if (walk_read(&back, sizeof(back), heap->segmap + segment) || back == JAVA_SEGMENT_FREE ||
		    back > segment)
			return 0;
		if (!back)
			return heap->low + (segment << shift);
		segment -= back;
	}
	return 0;
}

/* Makes java->blob and java->head those of the blob that holds pc. */
static inline walk_result java_find_blob(struct walk_java *java, uint64_t pc)
{
	const struct duet_jvm_layout *layout = &java->layout;
	int heap = java_heap(layout, pc);
	uint64_t block = heap < 0 ? 0 : java_block(&layout->heaps[heap & (DUET_JVM_HEAPS - 1)], pc);

	/* Behind a small one, the last of its heap so far, the next page may never have been touched. */
	if (!block || (walk_read(java->head, DUET_BLOB_BYTES, block) && walk_read(java->head, JAVA_BLOB_SMALL, block)))
		return DUET_WALK_NO_BLOB;
	java->blob = block + layout->block_header_bytes;
	if (!java->head[layout->block_used & JAVA_BLOB_MASK] || pc < java->blob ||
	    pc - java->blob >= java_field(java, layout->blob_bytes, 4))
		return DUET_WALK_NO_BLOB;
	return DUET_WALK_NONE;
}

static inline int java_is_compiled(const struct walk_java *java)
{
	uint64_t name = java_field(java, java->layout.blob_name, 8);

	return name && (name == java->layout.compiled_name || name == java->layout.native_name);
}

static inline uint64_t java_code_begin(const struct walk_java *java)
{
	if (java->layout.blob_code_begin != DUET_JVM_NO_FIELD)
		return java_field(java, java->layout.blob_code_begin, 8);
	return java->blob + java_field(java, java->layout.blob_code_offset, 4);
}

/* Behind the inline cache check. */
static inline uint64_t java_entry(const struct walk_java *java)
{
	if (java->layout.nmethod_entry != DUET_JVM_NO_FIELD)
		return java_field(java, java->layout.nmethod_entry, 8);
	return java_code_begin(java) + java_field(java, java->layout.nmethod_entry_offset, 2);
}

/* From this pc on the blob's frame is built; UINT64_MAX when it does not say. */
static inline uint64_t java_frame_complete(const struct walk_java *java)
{
	uint64_t offset = java_field(java, java->layout.blob_frame_complete,
				     java->layout.blob_frame_complete_width == 2 ? 2 : 4);

	/* CodeOffsets::frame_never_safe is -1, in either width. */
	return offset < java_field(java, java->layout.blob_bytes, 4) ? java_code_begin(java) + offset : ~0ull;
}

/* ---- from a frame to its caller ---- */

/* The return address lies `slot` bytes above sp, and the caller's fp below it, unless fp still holds that. */
static inline walk_result java_return(struct unwind_cursor *cursor, uint64_t slot, int fp_is_live)
{
	uint64_t saved[2];

	if (fp_is_live) {
		if (walk_read_word(&saved[1], cursor->sp + slot))
			return DUET_WALK_UNREADABLE;
		saved[0] = cursor->fp;
	} else if (walk_read(saved, sizeof(saved), cursor->sp + slot - WALK_WORD)) {
		return DUET_WALK_UNREADABLE;
	}
	return walk_to_caller(cursor, saved[1], cursor->sp + slot + WALK_WORD, saved[0]);
}

/* The operand of an instruction, which nothing aligns. */
static inline uint64_t java_operand(const uint8_t *at, uint32_t width)
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

/* Where the call before this return address went, or 0: call rel32; or mov $target, %r10; call *%r10. */
static inline uint64_t java_call_target(struct walk_java *java, uint64_t pc)
{
	const uint8_t *code = java->code;

	if (java_heap(&java->layout, pc) < 0 || walk_read(java->code, JAVA_CALL_BYTES, pc - JAVA_CALL_BYTES))
		return 0;
	if (code[JAVA_CALL_BYTES - 5] == 0xe8)
		return pc + java_operand(code + JAVA_CALL_BYTES - 4, 4);
	if (code[0] == 0x49 && code[1] == 0xba && code[10] == 0x41 && code[11] == 0xff && code[12] == 0xd2)
		return java_operand(code + 2, 8);
	return 0;
}

/* Does this return address belong to a call of the stub that pc is in? */
static inline int java_called_here(struct walk_java *java, uint64_t return_address, uint64_t pc)
{
	uint64_t target = java_call_target(java, return_address);

	return target && target <= pc && pc - target < JAVA_MAX_STUB_BYTES;
}

/*
 * Interrupted in a stub that tells no frame size: at its first instruction, behind its push of fp, or with a frame of
 * its own. Whatever else lies around on the stack, the right return address follows a call to this stub.
 */
static inline walk_result java_leaf_stub(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t pc = cursor->pc, words[2];

	if (walk_read(words, sizeof(words), cursor->sp))
		return DUET_WALK_UNREADABLE;
	if (java_called_here(java, words[0], pc))
		return java_return(cursor, 0, 1);
	if (java_called_here(java, words[1], pc - 1))
		return java_return(cursor, WALK_WORD, 0);
	if (cursor->fp < cursor->sp || cursor->fp % WALK_WORD || walk_read(words, sizeof(words), cursor->fp))
		return DUET_WALK_LEAF;
	if (!java_called_here(java, words[1], pc - 1))
		return DUET_WALK_LEAF;
	return walk_to_caller(cursor, words[1], cursor->fp + sizeof(words), words[0]);
}

/* Interrupted in a stub with a frame: it has it, or its first or last instructions show that it has not. */
static inline walk_result java_leaf_framed(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	int64_t slot = 0;

	if (cursor->pc != java_code_begin(java)) {
		if (walk_read(java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
			return DUET_WALK_LEAF;
		slot = duet_frame_epilogue(java->code);
	}
	if (slot >= 0)
		return java_return(cursor, (uint64_t)slot, slot == 0);
	if (cursor->pc < java_frame_complete(java))
		return DUET_WALK_LEAF;
	return java_return(cursor, frame_bytes - WALK_WORD, 0);
}

/* Interrupted in a compiled method: how far its frame is built, the instructions tell. */
static inline walk_result java_leaf_compiled(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	uint64_t entry = java_entry(java), done = cursor->pc - entry;
	int64_t slot = DUET_FRAME_BUILT;
	uint32_t end;

	if (cursor->pc >= java->blob + java_field(java, java->layout.nmethod_stubs, 4))
		return DUET_WALK_LEAF;
	if (cursor->pc < entry || !frame_bytes) /* inline cache check; method handle intrinsics have no frame */
		return java_return(cursor, 0, 1);
	if (done < DUET_FRAME_PROLOGUE_BYTES) {
		if (walk_read(java->code, DUET_FRAME_CODE_BYTES, entry))
			return DUET_WALK_LEAF;
		slot = duet_frame_prologue(java->code, (uint32_t)done, &end);
	}
	if (slot == DUET_FRAME_BUILT) {
		if (walk_read(java->code, DUET_FRAME_CODE_BYTES, cursor->pc))
			return DUET_WALK_LEAF;
		slot = duet_frame_epilogue(java->code);
	}
	if (slot >= 0)
		return java_return(cursor, (uint64_t)slot, slot == 0);
	return java_return(cursor, frame_bytes - WALK_WORD, slot == DUET_FRAME_FP_UNSAVED);
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

	if (cursor->pc < stubs || walk_read_word(&pc, cursor->sp + offset))
		return;
	if (pc >= java_code_begin(java) && pc < stubs)
		java->pc = pc;
}

/* Whoever calls code in a code heap is in one as well: native code gets there by the call stub. */
static inline walk_result java_step_leaf(struct walk_java *java, struct unwind_cursor *cursor, uint64_t frame_bytes)
{
	walk_result end;

	if (java_is_compiled(java))
		end = java_leaf_compiled(java, cursor, frame_bytes);
	else if (frame_bytes < 2 * WALK_WORD)
		end = java_leaf_stub(java, cursor);
	else
		end = java_leaf_framed(java, cursor, frame_bytes);
	if (end == DUET_WALK_NONE && java_heap(&java->layout, cursor->pc) < 0)
		end = DUET_WALK_LEAF;
	return end;
}

static inline walk_result java_step_code(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t words, frame_bytes;
	walk_result end = java_find_blob(java, cursor->pc);

	if (end)
		return end;
	words = java_field(java, java->layout.blob_frame_words, 4);
	if (words >= JAVA_MAX_FRAME_WORDS)
		return DUET_WALK_NO_BLOB;
	frame_bytes = words * WALK_WORD;
	if (java_is_compiled(java))
		java->code_id = (uint32_t)java_field(java, java->layout.nmethod_id, 4);
	if (!cursor->is_return)
		return java_step_leaf(java, cursor, frame_bytes);
	if (words < 2)
		return DUET_WALK_NO_FRAME;
	if (java_is_compiled(java))
		java_original_pc(java, cursor);
	return java_return(cursor, frame_bytes - WALK_WORD, 0);
}

/* ---- the interpreter ---- */

/* As InstanceKlass::jmethod_id_or_null(); 0 when the method has none. */
static inline uint64_t java_method_id(const struct walk_java *java)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t pool = java_const_field(java, layout->const_pool, 8);
	uint64_t number = java_const_field(java, layout->const_id, 2);
	uint64_t holder, ids, count, id;

	if (walk_read_word(&holder, pool + layout->pool_holder) || walk_read_word(&ids, holder + layout->holder_ids) ||
	    !ids || walk_read_word(&count, ids) || number >= count ||
	    walk_read_word(&id, ids + (number + 1) * WALK_WORD))
		return 0;
	return id;
}

#define JAVA_FRAME_WORD(java, offset) ((java)->frame[JAVA_FIXED_BYTES / WALK_WORD + (offset)])

/* Reads the frame's method into java->found. Nonzero when it makes no sense. */
static inline int java_read_method(struct walk_java *java, const struct unwind_cursor *cursor)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t bytecode = layout->frame_bcp == -7 ? JAVA_FRAME_WORD(java, -7) : JAVA_FRAME_WORD(java, -8);
	uint64_t method = JAVA_FRAME_WORD(java, -3), constant, base, bytes;
	uint32_t size = layout->const_bytes;

	/* No more than there is: the next page may never have been touched. */
	if (size > DUET_CONST_METHOD_BYTES || walk_read_word(&constant, method + layout->method_const) ||
	    walk_read(java->method, size, constant))
		return -1;
	base = constant + layout->const_bytes;
	bytes = java_const_field(java, layout->const_code_bytes, 2);
	/* The interpreter saves it where it calls something; at its own instructions the register has it. */
	if (!cursor->is_return && java->bytecode - base < bytes)
		bytecode = java->bytecode;
	/* A native method has no byte code, and anything in the place of the pointer. */
	java->found.bci = bytes ? (int32_t)(bytecode - base) : DUET_BCI_NATIVE;
	java->found.method = java_method_id(java);
	return bytes && bytecode - base >= bytes;
}

/*
 * In a method's entry, fp may still be the caller's. It is not any more when it leads to a frame of the method that is
 * entered and nothing has been pushed behind that.
 */
static inline int java_is_entering(const struct walk_java *java, const struct unwind_cursor *cursor)
{
	if (cursor->is_return || cursor->pc < java->layout.entries_low || cursor->pc >= java->layout.entries_high)
		return 0;
	return JAVA_FRAME_WORD(java, -3) != java->entered ||
	       cursor->sp != cursor->fp - (uint64_t)(1 - java->layout.frame_bcp) * WALK_WORD;
}

static inline walk_result java_step_interpreter(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t fp = cursor->fp;

	if (!cursor->is_return && (walk_read(java->code, DUET_FRAME_CODE_BYTES, cursor->pc) ||
				   duet_frame_is_left(java->code)))
		return DUET_WALK_LEAF;
	if (fp % WALK_WORD || fp < JAVA_FIXED_BYTES || fp - JAVA_FIXED_BYTES < cursor->sp)
		return cursor->is_return ? DUET_WALK_BAD_FP : DUET_WALK_LEAF;
	if (walk_read(java->frame, sizeof(java->frame), fp - JAVA_FIXED_BYTES))
		return DUET_WALK_UNREADABLE;
	if (java_is_entering(java, cursor))
		return DUET_WALK_LEAF;
	if (java_read_method(java, cursor))
		return DUET_WALK_BAD_INTERPRETED;
	java->has_found = 1;
	return walk_to_caller(cursor, JAVA_FRAME_WORD(java, 1), JAVA_FRAME_WORD(java, -1), JAVA_FRAME_WORD(java, 0));
}

/* ---- the step ---- */

/* The call stub keeps a frame pointer and is entered from native code. */
static inline walk_result java_step_call_stub(struct walk_java *java, struct unwind_cursor *cursor)
{
	uint64_t words[2];

	(void)java;
	if (cursor->fp < cursor->sp || cursor->fp % WALK_WORD)
		return DUET_WALK_BAD_FP;
	if (walk_read(words, sizeof(words), cursor->fp))
		return DUET_WALK_UNREADABLE;
	return walk_to_caller(cursor, words[1], cursor->fp + sizeof(words), words[0]);
}

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
	if (cursor->is_return && cursor->pc == java->layout.call_stub_return)
		return java_step_call_stub(java, cursor);
	if (cursor->pc >= java->layout.interpreter_low && cursor->pc < java->layout.interpreter_high)
		return java_step_interpreter(java, cursor);
	return java_step_code(java, cursor);
}

#endif
