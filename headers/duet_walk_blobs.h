/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What a walk through HotSpot's frames works on, and the code blobs that it looks its way up in. All that is read
 * belongs to the process: nothing leads out of bounds, and what does not fit together ends the walk.
 */
#ifndef DUET_WALK_BLOBS_H
#define DUET_WALK_BLOBS_H

#include "duet_frame.h"
#include "duet_jvm.h"
#include "duet_walk.h"

#define JAVA_SEGMENT_HOPS 16 /* each leads back by 254 segments at most; JDK 17's largest blob needs 7 */
#define JAVA_SEGMENT_FREE 0xff
#define JAVA_BLOB_MASK 511 /* of offsets into a blob's head: lets the verifier see their bound */
#define JAVA_BLOB_SMALL 128 /* CodeBlob's own fields: JDK 17 has 120 */
#define JAVA_MAX_FRAME_WORDS 65536

/*
 * What earlier walks have found out, where that saves reads (BPF): see unwind_known.bpf.h. walk_known_method() fills in
 * what method_at tells of, when it is known and still so. The others remember what has been found.
 */
#ifndef walk_know_frame
#define walk_know_frame(java, pc, frame_bytes) (void)0
#define walk_known_method(java, method) 0
#define walk_know_method(java, method) (void)0
#endif

/* BPF runs these apart, so that the verifier follows each of them once and not for every way that leads there. */
#ifndef WALK_JAVA_LEAF
#define WALK_JAVA_RETURN java_return
#define WALK_JAVA_BY_FP java_step_by_fp
#define WALK_JAVA_LEAF java_step_leaf
#define WALK_JAVA_PUSHED java_pushed_bytes
#define WALK_JAVA_KEPT java_kept_bytes
#define WALK_JAVA_KEPT_SP java_kept_sp
#define WALK_JAVA_STUB_RETURN java_is_stub_return
#define WALK_JAVA_PROLOGUE java_prologue
#define WALK_JAVA_EPILOGUE java_epilogue
#define WALK_JAVA_FREED java_freed_part
#define WALK_JAVA_LEAVING java_is_leaving
#define WALK_JAVA_SENDER java_is_sender
#define WALK_JAVA_THROWER java_is_thrower
#define WALK_JAVA_ODD java_leaf_odd
#define WALK_JAVA_FORWARDER java_step_forwarder
#define WALK_JAVA_BARRIER java_step_barrier
#define WALK_JAVA_INTERPRETER java_step_interpreter
#define WALK_JAVA_CONTINUATION java_step_continuation
#endif

/* What a step works on. Too large for the BPF stack. */
struct walk_java {
	struct duet_jvm_layout layout; /* without heaps: no JVM, or one whose layout is not known */
	uint64_t regs[DUET_FRAME_REGISTERS]; /* of the interrupted thread, by their number in machine code */
	uint64_t thread; /* the JavaThread, where Java code was interrupted: it keeps it in a register */
	uint64_t thread_at; /* or where on the stack the last call stub that was passed has it */
	uint64_t pc; /* of the frame that the last step left; not the cursor's then when it was deoptimized */
	uint64_t blob; /* start of the blob at hand, its CodeBlob; 0: `head` is of none */
	uint64_t stub; /* likewise, while a caller of that blob is looked for */
	uint64_t stub_bytes;
	uint64_t method_at; /* the Method that the next two and found_method are of, or 0 */
	uint64_t const_at; /* its ConstMethod */
	uint32_t code_bytes; /* its byte code */
	struct duet_frame_exit exit; /* of the interpreter, where it is leaving a method */
	uint64_t frame[DUET_FRAME_FIXED_BYTES / 8 + 2]; /* of the interpreter: from below fp to the return address */
	_Alignas(8) uint8_t head[JAVA_BLOB_MASK + 1 + 8]; /* of the block that the blob is in */
	uint8_t method[DUET_CONST_METHOD_BYTES]; /* head of ConstMethod */
	uint8_t code[DUET_FRAME_CODE_BYTES]; /* machine code */
	uint64_t found_method; /* by the last step, when it was through an interpreter frame: jmethodID, or 0 */
	int32_t found_bci; /* and DUET_BCI_NATIVE for a native method */
	uint8_t has_found;
	uint8_t is_below_stub; /* the last step led from a stub without a frame size to its caller */
	uint8_t may_be_empty; /* it led to an interpreter frame that deoptimization may not have filled yet */
	uint8_t reserved;
	uint32_t code_id; /* by the last step, when it was through compiled code: HotSpot's compile id */
	uint32_t prologue_bytes; /* of the code at hand: where it ends */
#ifndef __bpf__
	void *memory; /* as the cursor's */
#endif
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
		if (pc - layout->heaps[i].low < layout->heaps[i].high - layout->heaps[i].low)
			return i;
	return -1;
}

static inline int java_is_interpreter(const struct walk_java *java, uint64_t pc)
{
	return pc >= java->layout.interpreter_low && pc < java->layout.interpreter_high;
}

/* Java's callers that keep a frame pointer. */
static inline int java_keeps_fp(const struct walk_java *java, uint64_t to)
{
	return java_is_interpreter(java, to) || to == java->layout.call_stub_return;
}

/* ---- code blobs ---- */

/* The start of the block that holds pc, or 0. Every step stays in the heap's map. */
static inline uint64_t java_block(const struct walk_java *java, const struct duet_jvm_heap *heap, uint64_t pc)
{
	uint32_t shift = heap->segment_shift & 31;
	uint64_t segment = (pc - heap->low) >> shift;
	uint8_t back;

	for (int i = 0; i < JAVA_SEGMENT_HOPS; i++) {
		if (walk_read(java, &back, sizeof(back), heap->segmap + segment) || back == JAVA_SEGMENT_FREE ||
		    back > segment)
			return 0;
		if (!back)
			return heap->low + (segment << shift);
		segment -= back;
	}
	return 0;
}

/* Makes java->blob and java->head those of the blob in this block, when that is in use and holds pc. */
static inline walk_result java_take_block(struct walk_java *java, uint64_t block, uint64_t pc)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t blob = block + layout->block_header_bytes;

	java->blob = 0;
	/* Behind a small one, the last of its heap so far, the next page may never have been touched. */
	if (!block || (walk_read(java, java->head, DUET_BLOB_BYTES, block) &&
		       walk_read(java, java->head, JAVA_BLOB_SMALL, block)))
		return DUET_WALK_NO_BLOB;
	if (!java->head[layout->block_used & JAVA_BLOB_MASK] || pc < blob ||
	    pc - blob >= java_field(java, layout->blob_bytes, 4))
		return DUET_WALK_NO_BLOB;
	java->blob = blob;
	return DUET_WALK_NONE;
}

/* Makes java->blob and java->head those of the blob that holds pc. */
static inline walk_result java_find_blob(struct walk_java *java, uint64_t pc)
{
	const struct duet_jvm_layout *layout = &java->layout;
	int heap;

	/* The last one's caller is its like where a method calls itself. */
	if (java->blob && pc - java->blob < java_field(java, layout->blob_bytes, 4))
		return DUET_WALK_NONE;
	java->blob = 0;
	heap = java_heap(layout, pc);
	if (heap < 0)
		return DUET_WALK_NO_BLOB;
	return java_take_block(java, java_block(java, &layout->heaps[heap & (DUET_JVM_HEAPS - 1)], pc), pc);
}

static inline int java_is_compiled(const struct walk_java *java)
{
	uint64_t name = java_field(java, java->layout.blob_name, 8);

	return name && (name == java->layout.compiled_name || name == java->layout.native_name);
}

/* The wrapper of a native method. */
static inline int java_is_native(const struct walk_java *java)
{
	return java->layout.native_name && java_field(java, java->layout.blob_name, 8) == java->layout.native_name;
}

/* Between compiled code and the interpreter. */
static inline int java_is_adapter(const struct walk_java *java)
{
	return java->layout.adapter_name && java_field(java, java->layout.blob_name, 8) == java->layout.adapter_name;
}

/* Vtable stubs and the like: what has called them is on top of the stack. */
static inline int java_is_frameless(const struct walk_java *java)
{
	uint64_t name = java_field(java, java->layout.blob_name, 8);

	for (int i = 0; name && i < DUET_JVM_FRAMELESS; i++) {
		if (java->layout.frameless_names[i] == name)
			return 1;
		__asm__ volatile("" ::: "memory"); /* compared all at once they are 2^16 paths for the verifier */
	}
	return 0;
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
	uint64_t offset =
		java_field(java, java->layout.blob_frame_complete, java->layout.blob_frame_complete_width == 2 ? 2 : 4);

	/* CodeOffsets::frame_never_safe is -1, in either width. */
	return offset < java_field(java, java->layout.blob_bytes, 4) ? java_code_begin(java) + offset : ~0ull;
}

/* ---- from a frame to its caller ---- */

/* The return address lies `slot` bytes above sp, and the caller's fp below it, unless fp still holds that. */
static inline walk_result java_return(struct unwind_cursor *cursor, uint64_t slot, int fp_is_live)
{
	uint64_t saved[2];

	if (fp_is_live) {
		if (walk_read_stack(cursor, &saved[1], 1, cursor->sp + slot))
			return DUET_WALK_UNREADABLE;
		saved[0] = cursor->fp;
	} else if (walk_read_stack(cursor, saved, 2, cursor->sp + slot - WALK_WORD)) {
		return DUET_WALK_UNREADABLE;
	}
	return walk_to_caller(cursor, saved[1], cursor->sp + slot + WALK_WORD, saved[0]);
}

/* How far the frame is built that the code at hand makes, when so many bytes of it have run. */
static inline int java_prologue(struct walk_java *java, uint64_t done)
{
	return (int)duet_frame_prologue(java->code, (uint32_t)done, &java->prologue_bytes);
}

/*
 * Where the return address is while a frame is left, as duet_frame_epilogue(), by the instructions at pc, which
 * java->code has, and before. After that it has what is before, perhaps.
 */
static inline int java_epilogue(struct walk_java *java, uint64_t pc)
{
	int slot = (int)duet_frame_epilogue(java->code);

	if (slot != DUET_FRAME_BUILT || !duet_frame_jumps_on(java->code) ||
	    walk_read(java, java->code, DUET_FRAME_LEFT_BYTES, pc - DUET_FRAME_LEFT_BYTES) ||
	    !duet_frame_has_left(java->code))
		return slot;
	return 0;
}

/* A frame of which nothing is made, or left: it is as the call has put it. */
static inline walk_result java_return_called(struct unwind_cursor *cursor)
{
	return WALK_X86 ? WALK_JAVA_RETURN(cursor, 0, 1) : walk_to_caller(cursor, cursor->lr, cursor->sp, cursor->fp);
}

/* Slot as java_prologue() and java_epilogue() tell it of a frame that is not whole. */
static inline walk_result java_return_partly(struct unwind_cursor *cursor, int64_t slot, uint64_t frame_bytes)
{
	if (!slot)
		return java_return_called(cursor);
	if (slot > 0)
		return WALK_JAVA_RETURN(cursor, (uint64_t)slot, 0);
	return WALK_X86 ? WALK_JAVA_RETURN(cursor, frame_bytes - WALK_WORD, 1)
			: walk_to_caller(cursor, cursor->lr, cursor->sp + frame_bytes, cursor->fp);
}

/* Code that keeps a frame pointer: the call stub, wrappers of native methods. */
static inline walk_result java_step_by_fp(struct unwind_cursor *cursor)
{
	uint64_t words[2];

	if (cursor->fp < cursor->sp || cursor->fp % WALK_WORD)
		return DUET_WALK_BAD_FP;
	if (walk_read_stack(cursor, words, 2, cursor->fp))
		return DUET_WALK_UNREADABLE;
	return walk_to_caller(cursor, words[1], cursor->fp + sizeof(words), words[0]);
}

/* Where struct sigcontext has a register, from WALK_SIGNAL_REGS on. */
static inline uint32_t java_signal_place(uint32_t number)
{
	/* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp; on arm64 they stand in their order */
	static const uint8_t places[16] = {13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7};

	return WALK_X86 ? places[number & 15] : number;
}

/* A signal handler's frame: there the kernel has put what the interrupted code had in registers. */
static inline void java_signal_regs(struct walk_java *java, const struct unwind_cursor *cursor)
{
	const uint64_t *words = (const uint64_t *)java->head; /* the BPF stack is too small */

	java->blob = 0;
	if (walk_read(java, java->head, sizeof(java->regs), cursor->signal_frame + WALK_SIGNAL_REGS))
		__builtin_memset(java->head, 0, sizeof(java->regs));
	for (uint32_t i = 0; i < DUET_FRAME_REGISTERS; i++)
		java->regs[i] = words[java_signal_place(i)];
}

#endif
