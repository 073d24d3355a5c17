/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "hotspot/jvmstructs.h"
#include "sample/java_walk.h"
#include "sigsafe.h"
#include "walk/frame.h"

#define WORD sizeof(uintptr_t)
#define MAX_NATIVE_LEAVES 32
#define SCAN_WORDS 32
#define MAX_STUB_BYTES 16384
#define CALL_BYTES 16 /* enough for the longest call sequence in front of a return address */

/* Copies the code at pc. Returns false when it extends past the heap's committed end, where nothing can be read. */
static bool copy_code(unsigned char *code, uintptr_t pc)
{
	if (!jvmstructs_is_readable_code(pc + DUET_FRAME_CODE_BYTES - 1, 0))
		return false;
	memcpy(code, (const void *)pc, DUET_FRAME_CODE_BYTES);
	return true;
}

/*
 * return_slot_in_prologue() and return_slot_in_epilogue() find how much of a method's frame is built, from the machine
 * code around pc as C1 and C2 write it. They return the address of the return address: on x86-64 the slot that holds
 * it, on aarch64 the slot where the prologue puts it. They return 0 when pc is in the body.
 */
#if defined(__x86_64__)
static bool has_bytes(uintptr_t pc, const char *bytes, size_t count)
{
	return !memcmp((const void *)pc, bytes, count);
}

static uintptr_t return_slot_in_prologue(const struct code_blob *blob, const struct regs *now)
{
	uintptr_t done = now->pc - blob->entry;
	unsigned char code[DUET_FRAME_CODE_BYTES];
	uint32_t end;
	int64_t slot;

	if (now->pc < blob->entry) /* inline cache check */
		return now->sp;
	if (done >= DUET_FRAME_PROLOGUE_BYTES || !copy_code(code, blob->entry))
		return 0;
	slot = duet_frame_prologue(code, (uint32_t)done, &end);
	if (slot >= 0)
		return now->sp + (uintptr_t)slot;
	/* The frame is built, but AsyncGetCallTrace does not take it as built yet. */
	return done < end + 5 || now->pc < blob->frame_complete ? now->sp + blob->frame_bytes - WORD : 0;
}

static uintptr_t return_slot_in_epilogue(const struct regs *now)
{
	unsigned char code[DUET_FRAME_CODE_BYTES];
	int64_t slot;

	slot = copy_code(code, now->pc) ? duet_frame_epilogue(code) : DUET_FRAME_BUILT;
	return slot >= 0 ? now->sp + (uintptr_t)slot : 0;
}

/*
 * Writes the caller's frame pointer to where the prologue puts it, one word below the return address. Before the push
 * that word is dead and about to get this very value; after the pop it still has it. The signal frame does not cover
 * it, because the kernel leaves a red zone of 128 bytes.
 */
static void save_frame_pointer(uintptr_t return_slot, const struct regs *now)
{
	if (return_slot == now->sp)
		*(uintptr_t *)(return_slot - WORD) = now->fp;
}

static bool return_address(const struct regs *now, const struct stack_copy *stack, struct regs *ret_caller)
{
	*ret_caller = (struct regs){.sp = now->sp + WORD, .fp = now->fp};
	return stack_word(stack, now->sp, &ret_caller->pc);
}

/* The target of the call before this return address, or 0: call rel32; or mov $target, %r10; call *%r10 (C2). */
static uintptr_t call_target(uintptr_t pc)
{
	uintptr_t target;
	int32_t distance;

	memcpy(&distance, (const void *)(pc - sizeof(distance)), sizeof(distance));
	if (has_bytes(pc - 5, "\xe8", 1))
		return pc + (uintptr_t)(intptr_t)distance;
	memcpy(&target, (const void *)(pc - 11), sizeof(target));
	return has_bytes(pc - 13, "\x49\xba", 2) && has_bytes(pc - 3, "\x41\xff\xd2", 3) ? target : 0;
}

/* Returns true if call rel32, or a call through a register or memory, ends at pc. */
static bool follows_call(uintptr_t pc)
{
	const unsigned char *end = (const unsigned char *)pc;

	return end[-5] == 0xe8 || (end[-2] == 0xff && (end[-1] & 0x38) == 0x10) ||
	       (end[-3] == 0xff && (end[-2] & 0x38) == 0x10) || (end[-6] == 0xff && (end[-5] & 0x38) == 0x10);
}

bool repair_walk_would_fault(const struct regs *now)
{
	return false;
}

static uintptr_t strip(uintptr_t address)
{
	return address;
}
#elif defined(__aarch64__)
#define ADDRESS_BITS 48

/* Removes the signature of a return address that a C function, or a JVM with UseBranchProtection, has signed. */
static uintptr_t strip(uintptr_t address)
{
	return address & ((1ull << ADDRESS_BITS) - 1);
}

static uintptr_t return_slot_in_prologue(const struct code_blob *blob, const struct regs *now)
{
	uintptr_t done = now->pc - blob->entry;
	unsigned char code[DUET_FRAME_CODE_BYTES];
	uint32_t end;
	int64_t slot;

	if (now->pc < blob->entry) /* inline cache check */
		return now->sp - WORD;
	if (done >= DUET_FRAME_PROLOGUE_BYTES || now->pc >= blob->frame_complete || !copy_code(code, blob->entry))
		return 0;
	slot = duet_frame_prologue(code, (uint32_t)done, &end);
	if (slot < 0)
		return now->sp + blob->frame_bytes - WORD;
	return now->sp + (uintptr_t)slot - (slot ? 0 : WORD);
}

static uintptr_t return_slot_in_epilogue(const struct regs *now)
{
	unsigned char code[DUET_FRAME_CODE_BYTES];
	int64_t slot;

	slot = copy_code(code, now->pc) ? duet_frame_epilogue(code) : DUET_FRAME_BUILT;
	if (slot < 0)
		return 0;
	return now->sp + (uintptr_t)slot - (slot ? 0 : WORD);
}

/*
 * Writes x29 and x30 to where the prologue puts them, unless it has stored them already. After that x29 may be the
 * method's own (PreserveFramePointer), x30 may be the return address of its entry barrier's call, and the thread will
 * return by what the slots hold. In an empty frame, the top of the signal frame has the same frame record there.
 */
static void save_frame_pointer(uintptr_t return_slot, const struct regs *now)
{
	uint32_t insn;

	memcpy(&insn, (const void *)now->pc, sizeof(insn));
	if (return_slot >= now->sp && !duet_frame_stores(insn))
		return;
	*(uintptr_t *)return_slot = now->lr;
	*(uintptr_t *)(return_slot - WORD) = now->fp;
}

/* The return address is in lr. If a stub's frame record has it too, the caller's sp and fp come from there. */
static bool return_address(const struct regs *now, const struct stack_copy *stack, struct regs *ret_caller)
{
	uintptr_t fp = now->fp, caller_fp, lr;

	*ret_caller = (struct regs){.pc = strip(now->lr), .sp = now->sp, .fp = fp};
	if (fp >= now->sp && fp % WORD == 0 && stack_word(stack, fp, &caller_fp) && stack_word(stack, fp + WORD, &lr) &&
	    strip(lr) == strip(now->lr)) {
		ret_caller->sp = fp + 2 * WORD;
		ret_caller->fp = caller_fp;
	}
	return true;
}

/* Returns the target of the direct call (bl) before this return address, or 0. */
static uintptr_t call_target(uintptr_t pc)
{
	uint32_t insn = *(const uint32_t *)(pc - 4);
	intptr_t distance = (intptr_t)((int32_t)(insn << 6) >> 6) * 4;

	return (insn & 0xfc000000u) == 0x94000000u ? pc - 4 + (uintptr_t)distance : 0;
}

/* Returns true if bl or blr ends at pc. */
static bool follows_call(uintptr_t pc)
{
	uint32_t insn = *(const uint32_t *)(pc - 4);

	return (insn & 0xfc000000u) == 0x94000000u || (insn & 0xfffffc1fu) == 0xd63f0000u;
}

/* True for the methods of a JVM with UseBranchProtection (JDK 20+): they sign before they make their frame. */
static bool method_signs(const struct code_blob *blob)
{
	unsigned char code[DUET_FRAME_CODE_BYTES];

	if (!blob->entry || !copy_code(code, blob->entry))
		return false;
	for (uint32_t at = 0; at < DUET_FRAME_PROLOGUE_BYTES; at += 4) {
		uint32_t insn = duet_insn(code, at);

		if (duet_insn_signs(insn))
			return true;
		if (duet_insn_lowers_sp(insn) || insn == DUET_ARM64_PUSH_FRAME)
			return false;
	}
	return false;
}

/*
 * While a frame is not built yet, or has been removed, its slot for the return address may hold an address that a C
 * function has signed (pointer authentication). HotSpot removes the signature to check the address, but then JDK 20+
 * reads the instruction at the signed address (NativePostCallNop), unless it signs itself and removes all signatures.
 */
bool repair_walk_would_fault(const struct regs *now)
{
	struct code_blob blob;
	uintptr_t caller;

	if (!jvmstructs_find_blob(now->pc, &blob) || !blob.frame_bytes)
		return false;
	return safe_copy(&caller, now->sp + blob.frame_bytes - WORD, WORD) != WORD ||
	       (caller >> ADDRESS_BITS && !method_signs(&blob));
}
#endif

/* For a compiled method: pretends that its frame is built, so that the method itself stays on the stack. */
static bool finish_frame(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed)
{
	struct code_blob blob;
	uintptr_t slot;

	if (!jvmstructs_find_blob(now->pc, &blob) || !blob.entry || !blob.frame_bytes)
		return false;
	slot = return_slot_in_prologue(&blob, now);
	if (!slot)
		slot = return_slot_in_epilogue(now);
	if (!slot)
		return false;
	save_frame_pointer(slot, now);
	*ret_fixed = *now;
	ret_fixed->sp = slot + WORD - blob.frame_bytes;
	if (ret_fixed->pc < blob.frame_complete)
		ret_fixed->pc = blob.frame_complete;
	return true;
}

/* Returns true in a compiled method: in its body only its own frame could show where the return address is. */
static bool is_method_body(uintptr_t pc)
{
	struct code_blob blob;

	return jvmstructs_find_blob(pc, &blob) && blob.entry;
}

/* Returns how far the thread is into the stub called from `caller`; MAX_STUB_BYTES: that cannot be the stub. */
static uintptr_t distance_from_call(const struct regs *now, const struct regs *caller)
{
	uintptr_t target = jvmstructs_is_readable_code(caller->pc, CALL_BYTES) ? call_target(caller->pc) : 0;

	return target && target <= now->pc ? now->pc - target : MAX_STUB_BYTES;
}

/*
 * For a stub, whatever it has pushed. Its locals may hold old return addresses. The right one follows a call of the
 * stub that pc is in. So, of the calls whose target is not above pc, this takes the one with the nearest target.
 */
static bool find_stub_call(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed)
{
	uintptr_t nearest = MAX_STUB_BYTES;
	struct regs caller;

	if (!jvmstructs_is_code(now->pc) || is_method_body(now->pc))
		return false;
	if (return_address(now, stack, &caller) && distance_from_call(now, &caller) < nearest) {
		nearest = distance_from_call(now, &caller);
		*ret_fixed = caller;
	}
	for (uintptr_t at = now->sp; at < now->sp + SCAN_WORDS * WORD; at += WORD) {
		caller = (struct regs){.sp = at + WORD, .fp = now->fp};
		if (!stack_word(stack, at, &caller.pc))
			continue;
		caller.pc = strip(caller.pc);
		if (distance_from_call(now, &caller) >= nearest)
			continue;
		if (now->fp == at - WORD) /* the stub's own frame pointer: the caller's was pushed there */
			stack_word(stack, now->fp, &caller.fp);
		nearest = distance_from_call(now, &caller);
		*ret_fixed = caller;
	}
	if (nearest == MAX_STUB_BYTES)
		return false;
	ret_fixed->pc--;
	return true;
}

/* For a stub or a native leaf that has pushed nothing yet. */
static bool pop_return_address(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed)
{
	if (is_method_body(now->pc) || !return_address(now, stack, ret_fixed) ||
	    !jvmstructs_is_readable_code(ret_fixed->pc, CALL_BYTES) || !follows_call(ret_fixed->pc))
		return false;
	ret_fixed->pc--;
	return true;
}

/* For a stub or native leaves that keep a frame pointer. */
static bool pop_frames(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed)
{
	struct regs regs = *now;

	if (is_method_body(now->pc))
		return false;
	for (int i = 0; i < MAX_NATIVE_LEAVES; i++) {
		uintptr_t fp = regs.fp;

		if (fp < regs.sp || fp % WORD || !stack_word(stack, fp, &regs.fp) ||
		    !stack_word(stack, fp + WORD, &regs.pc))
			return false;
		regs.pc = strip(regs.pc);
		regs.sp = fp + 2 * WORD;
		if (jvmstructs_is_code(regs.pc)) {
			*ret_fixed = regs;
			ret_fixed->pc--;
			return true;
		}
	}
	return false;
}

/* For a stub or native leaf without a frame pointer: takes the nearest word that looks like a return into Java. */
static bool scan_stack(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed)
{
	uintptr_t word;

	if (is_method_body(now->pc))
		return false;
	for (uintptr_t at = now->sp; at < now->sp + SCAN_WORDS * WORD && stack_word(stack, at, &word); at += WORD) {
		word = strip(word);
		if (jvmstructs_is_readable_code(word, CALL_BYTES) && follows_call(word)) {
			*ret_fixed = (struct regs){.pc = word - 1, .sp = at + WORD, .fp = now->fp};
			return true;
		}
	}
	return false;
}

const repair_function repairs[] = {finish_frame, find_stub_call, pop_return_address, pop_frames, scan_stack, NULL};
