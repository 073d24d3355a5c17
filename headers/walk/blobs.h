/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The state of a walk through HotSpot's frames, and how it finds code blobs. All memory that is read belongs to the
 * process and is not trusted: no value can lead out of bounds, and values that do not fit together end the walk.
 */
#pragma once

#include "duet_jvm.h"
#include "walk/frame.h"
#include "walk/native.h"

#define JAVA_SEGMENT_HOPS 16 /* a hop leads back by at most 254 segments; JDK 17's largest blob needs 7 hops */
#define JAVA_SEGMENT_FREE 0xff
#define JAVA_BLOB_MASK 511 /* for offsets into a blob's head: shows the verifier their bound */
#define JAVA_BLOB_SMALL 128 /* bytes of CodeBlob's own fields: JDK 17 has 120 */
#define JAVA_MAX_FRAME_WORDS 65536

/*
 * Facts that earlier walks have found, where keeping them saves reads (BPF): see unwind_known.bpf.h.
 * walk_known_method() fills in the fields that go with method_at, if the method is known and the fact still holds.
 * walk_known_step() steps from a compiled method to its caller, if the frame is known and the caller is Java code. The
 * other two remember a fact.
 */
#ifndef walk_know_frame
#define walk_known_step(java, cursor) 0
#define walk_know_frame(java, pc, frame_bytes) (void)0
#define walk_known_method(java, method) 0
#define walk_know_method(java, method) (void)0
#endif

/* BPF defines these as functions, so that the verifier checks each once, and not for every path that leads there. */
#ifndef WALK_JAVA_LEAF
#define WALK_JAVA_BLOB java_find_blob
#define WALK_JAVA_CALLED java_is_called
#define WALK_JAVA_METHOD java_read_method
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
#define WALK_JAVA_CONTINUATION java_step_continuation
#endif

/* State of a walk through Java frames. Too large for the BPF stack. */
struct walk_java {
	struct duet_jvm_layout layout; /* no heaps: not a JVM, or one whose layout is not known */
	uint64_t regs[DUET_FRAME_REGISTERS]; /* of the interrupted thread, by their number in machine code */
	uint64_t thread; /* the JavaThread, which Java code keeps in a register; set where Java code was interrupted */
	uint64_t thread_at; /* and, after the call stub that the walk passed last, where that keeps it on the stack */
	uint64_t pc; /* pc of the frame that the last step left; differs from the cursor's if it was deoptimized */
	uint64_t blob; /* start of the current blob, its CodeBlob; 0: `head` is no blob's */
	uint64_t stub; /* start of the stub for which the walk looks for the caller */
	uint64_t stub_bytes;
	uint64_t method_at; /* the Method that the next two fields, found_method and found_check belong to, or 0 */
	uint64_t const_at; /* its ConstMethod */
	uint32_t code_bytes; /* bytes of its byte code */
	struct duet_frame_exit exit; /* how the interpreter leaves a method, when interrupted there */
	uint64_t frame[DUET_FRAME_FIXED_BYTES / 8 + 2]; /* interpreter frame, from below fp to the return address */
	/* head of the block with the blob; or other code, and then blob is 0 */
	_Alignas(8) uint8_t head[JAVA_BLOB_MASK + 1 + 8];
	uint8_t method[DUET_CONST_METHOD_BYTES]; /* head of ConstMethod */
	uint8_t code[DUET_FRAME_CODE_BYTES]; /* machine code that was read last */
	uint64_t found_method; /* of an interpreter frame that was left: jmethodID or duet_method_key() */
	uint32_t found_check; /* duet_method_check() of that method; 0 with a jmethodID */
	int32_t found_bci; /* its byte code index; DUET_BCI_NATIVE for a native method */
	uint8_t has_found;
	uint8_t is_below_stub; /* the last step led from a stub without a frame size to its caller */
	uint8_t may_be_empty; /* it led to an interpreter frame that deoptimization may not have filled yet */
	uint8_t made; /* enum duet_frame_made: how much of its frame the interpreted method has at the last pc */
	uint32_t code_id; /* if the last step left compiled code: HotSpot's compile id; else 0 or a DUET_ID_* */
	uint32_t prologue_bytes; /* where the prologue of the current code ends */
#ifndef __bpf__
	void *memory; /* like the cursor's */
#endif
};

/* Call before the first step. `layout`, `regs` and `thread` are set by the caller. */
static inline void walk_java_begin(struct walk_java *java)
{
	java->thread_at = 0;
	java->is_below_stub = 0;
	java->may_be_empty = 0;
	java->blob = 0;
	java->method_at = 0;
}

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

/*
 * Returns 1 if low <= pc < high, else 0. Needs no branch: BPF's verifier follows both sides of each one. Both
 * differences are below 2^63 only if pc is within, because their sum is high - 1 - low.
 */
static inline uint32_t java_holds(uint64_t low, uint64_t high, uint64_t pc)
{
	return (uint32_t)(~((pc - low) | (high - 1 - pc)) >> 63);
}

/* Index of the heap that holds pc, or -1. */
static inline int java_heap(const struct duet_jvm_layout *layout, uint64_t pc)
{
	uint32_t is_found = 0, index = 0;

	for (uint32_t i = 0; i < DUET_JVM_HEAPS; i++) {
		uint32_t holds = java_holds(layout->heaps[i].low, layout->heaps[i].high, pc);

		is_found |= holds;
		index |= i * holds;
	}
	return is_found ? (int)index : -1;
}

static inline int java_is_interpreter(const struct walk_java *java, uint64_t pc)
{
	return pc >= java->layout.interpreter_low && pc < java->layout.interpreter_high;
}

/* Is `to` in code that can call Java and keeps a frame pointer: the interpreter, or the call stub? */
static inline int java_keeps_fp(const struct walk_java *java, uint64_t to)
{
	return java_is_interpreter(java, to) || to == java->layout.call_stub_return;
}

/* Returns the start of the block that holds pc, or 0. Every hop stays in the heap's map. */
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

/* Sets java->blob and java->head to the blob in this block, if the block is in use and the blob holds pc. */
static inline walk_result java_take_block(struct walk_java *java, uint64_t block, uint64_t pc)
{
	const struct duet_jvm_layout *layout = &java->layout;
	uint64_t blob = block + layout->block_header_bytes;

	java->blob = 0;
	/* If a small blob is the last of its heap so far, the page after it may never have been touched. */
	if (!block || (walk_read(java, java->head, DUET_BLOB_BYTES, block) &&
		       walk_read(java, java->head, JAVA_BLOB_SMALL, block)))
		return DUET_WALK_NO_BLOB;
	if (!java->head[layout->block_used & JAVA_BLOB_MASK] || pc < blob ||
	    pc - blob >= java_field(java, layout->blob_bytes, 4))
		return DUET_WALK_NO_BLOB;
	java->blob = blob;
	return DUET_WALK_NONE;
}

/* Sets java->blob and java->head to the blob that holds pc. */
static inline walk_result java_find_blob(struct walk_java *java, uint64_t pc)
{
	const struct duet_jvm_layout *layout = &java->layout;
	int heap;

	/* Where a method calls itself, the caller is in the same blob. */
	if (java->blob && pc - java->blob < java_field(java, layout->blob_bytes, 4))
		return DUET_WALK_NONE;
	java->blob = 0;
	heap = java_heap(layout, pc);
	if (heap < 0)
		return DUET_WALK_NO_BLOB;
	/*
	 * The mask is for the verifier: that of Linux 5.10 knows no bounds of the | of two variables. The asm hides the
	 * value, else the compiler would remove the mask as superfluous.
	 */
	__asm__("" : "+r"(heap));
	return java_take_block(java, java_block(java, &layout->heaps[heap & (DUET_JVM_HEAPS - 1)], pc), pc);
}

static inline int java_is_compiled(const struct walk_java *java)
{
	uint64_t name = java_field(java, java->layout.blob_name, 8);

	return name && (name == java->layout.compiled_name || name == java->layout.native_name);
}

/* Is the current blob the compiled wrapper of a native method? */
static inline int java_is_native(const struct walk_java *java)
{
	return java->layout.native_name && java_field(java, java->layout.blob_name, 8) == java->layout.native_name;
}

/* Is it an adapter between compiled code and the interpreter? */
static inline int java_is_adapter(const struct walk_java *java)
{
	return java->layout.adapter_name && java_field(java, java->layout.blob_name, 8) == java->layout.adapter_name;
}

/* Is it code without a frame, such as a vtable stub? The return address is then where the call has put it. */
static inline int java_is_frameless(const struct walk_java *java)
{
	uint64_t name = java_field(java, java->layout.blob_name, 8);

	for (int i = 0; name && i < DUET_JVM_FRAMELESS; i++) {
		if (java->layout.frameless_names[i] == name)
			return 1;
		/* otherwise the verifier follows 2^16 paths through the comparisons */
		__asm__ volatile("" ::: "memory");
	}
	return 0;
}

static inline uint64_t java_code_begin(const struct walk_java *java)
{
	if (java->layout.blob_code_begin != DUET_JVM_NO_FIELD)
		return java_field(java, java->layout.blob_code_begin, 8);
	return java->blob + java_field(java, java->layout.blob_code_offset, 4);
}

/* Where the method's own code begins: after the inline cache check. */
static inline uint64_t java_entry(const struct walk_java *java)
{
	if (java->layout.nmethod_entry != DUET_JVM_NO_FIELD)
		return java_field(java, java->layout.nmethod_entry, 8);
	return java_code_begin(java) + java_field(java, java->layout.nmethod_entry_offset, 2);
}

/* Returns the pc from which on the blob's frame is built, or UINT64_MAX when the blob does not say. */
static inline uint64_t java_frame_complete(const struct walk_java *java)
{
	uint64_t offset =
		java_field(java, java->layout.blob_frame_complete, java->layout.blob_frame_complete_width == 2 ? 2 : 4);

	/* CodeOffsets::frame_never_safe is -1, in either width. */
	return offset < java_field(java, java->layout.blob_bytes, 4) ? java_code_begin(java) + offset : ~0ull;
}

/* ---- from a frame to its caller ---- */

/*
 * A step: the return address lies `slot` bytes above sp. The caller's fp is in the word before it, or still in fp if
 * fp_is_live.
 */
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

/* Like duet_frame_prologue() for java->code, of which `done` bytes have run. Sets java->prologue_bytes. */
static inline int java_prologue(struct walk_java *java, uint64_t done)
{
	return (int)duet_frame_prologue(java->code, (uint32_t)done, &java->prologue_bytes);
}

/*
 * Like duet_frame_epilogue() for the instructions at pc, which java->code holds. If they are a jump, this reads the
 * code before pc into java->code, to see whether that has left the frame.
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

/* A step from code whose frame is not begun, or is left: the return address is where the call has put it. */
static inline walk_result java_return_called(struct unwind_cursor *cursor)
{
	return WALK_X86 ? WALK_JAVA_RETURN(cursor, 0, 1) : walk_to_caller(cursor, cursor->lr, cursor->sp, cursor->fp);
}

/* A step from a frame that is not complete. `slot` is what java_prologue() or java_epilogue() returned. */
static inline walk_result java_return_partly(struct unwind_cursor *cursor, int64_t slot, uint64_t frame_bytes)
{
	if (!slot)
		return java_return_called(cursor);
	if (slot > 0)
		return WALK_JAVA_RETURN(cursor, (uint64_t)slot, 0);
	return WALK_X86 ? WALK_JAVA_RETURN(cursor, frame_bytes - WALK_WORD, 1)
			: walk_to_caller(cursor, cursor->lr, cursor->sp + frame_bytes, cursor->fp);
}

/* A step from code that keeps a frame pointer: the call stub, wrappers of native methods. */
static inline walk_result java_step_by_fp(struct unwind_cursor *cursor)
{
	uint64_t words[2];

	if (cursor->fp < cursor->sp || cursor->fp % WALK_WORD)
		return DUET_WALK_BAD_FP;
	if (walk_read_stack(cursor, words, 2, cursor->fp))
		return DUET_WALK_UNREADABLE;
	return walk_to_caller(cursor, words[1], cursor->fp + sizeof(words), words[0]);
}

/* Index of a register in struct sigcontext, in words from WALK_SIGNAL_REGS on. */
static inline uint32_t java_signal_place(uint32_t number)
{
	/*
	 * r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp; on arm64 the registers are in the order of their numbers
	 */
	static const uint8_t places[16] = {13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7};

	return WALK_X86 ? places[number & 15] : number;
}

/* Reads the registers that the kernel saved in a signal handler's frame for the interrupted code; 0 if not readable. */
static inline void java_signal_regs(struct walk_java *java, const struct unwind_cursor *cursor)
{
	const uint64_t *words = (const uint64_t *)java->head; /* the BPF stack is too small */

	java->blob = 0;
	if (walk_read(java, java->head, sizeof(java->regs), cursor->signal_frame + WALK_SIGNAL_REGS))
		__builtin_memset(java->head, 0, sizeof(java->regs));
	for (uint32_t i = 0; i < DUET_FRAME_REGISTERS; i++)
		java->regs[i] = words[java_signal_place(i)];
}
