/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Recognises in the machine code that HotSpot generates for x86-64 how far a frame is built. The agent has that code in
 * its own memory; BPF reads copies. walk/frame_arm64.h has the same for arm64; walk/frame.h chooses.
 */
#pragma once

#include "duet_jvm.h"
#include "walk/frame.h"

/*
 * Returns a byte of the code. The mask shows the verifier the bound of an `at` that is not constant. The asm hides such
 * an `at`: else the compiler finds the mask superfluous.
 */
static inline uint8_t duet_code_at(const uint8_t *code, uint32_t at)
{
	if (!__builtin_constant_p(at)) {
		__asm__("" : "+r"(at));
		at &= DUET_FRAME_CODE_BYTES - 1;
	}
	return code[at];
}

/* Are the three bytes at `at` these? */
static inline int duet_code_is(const uint8_t *code, uint32_t at, uint32_t bytes)
{
	return ((uint32_t)duet_code_at(code, at) << 16 | (uint32_t)duet_code_at(code, at + 1) << 8 |
		duet_code_at(code, at + 2)) == bytes;
}

/*
 * Recognises how much of a method's prologue has run:
 *
 *	[mov %eax, -bang(%rsp)] push %rbp; [mov %rsp, %rbp] sub $n, %rsp
 *	[bang] sub $n, %rsp; mov %rbp, n-8(%rsp)
 *
 * `code` begins at the method's entry; `done` bytes of it have run. Sets *ret_end to where the prologue ends.
 */
static inline int64_t duet_frame_prologue(const uint8_t *code, uint32_t done, uint32_t *ret_end)
{
	uint32_t at = duet_code_is(code, 0, 0x898424) ? 7 : 0;
	int pushed = duet_code_at(code, at) == 0x55;

	*ret_end = at;
	if (pushed) {
		if (done <= at)
			return 0;
		at++;
	}
	if (duet_code_is(code, at, 0x488bec) || duet_code_is(code, at, 0x4889e5)) {
		if (pushed && done <= at)
			return 8;
		at += 3;
	}
	if (duet_code_is(code, at, 0x4883ec) || duet_code_is(code, at, 0x4881ec)) {
		if (done <= at)
			return pushed ? 8 : 0;
		at += duet_code_is(code, at, 0x4883ec) ? 4 : 7;
	}
	*ret_end = at;
	if (!pushed && done == at && (duet_code_is(code, at, 0x48896c) || duet_code_is(code, at, 0x4889ac)))
		return DUET_FRAME_FP_UNSAVED;
	return DUET_FRAME_BUILT;
}

/*
 * Returns how many bytes of a safepoint poll are at pc, after the frame's end: cmp poll(%r15), %rsp; ja (JDK 16+), or
 * mov poll(%r15), %r10; test %eax, (%r10).
 */
static inline uint32_t duet_frame_poll_bytes(const uint8_t *code)
{
	uint32_t at = 0;

	if (duet_code_is(code, 0, 0x493b67) || duet_code_is(code, 0, 0x4d8b57))
		at = 4;
	else if (duet_code_is(code, 0, 0x493ba7) || duet_code_is(code, 0, 0x4d8b97))
		at = 7;
	else if (code[0] == 0x85 && code[1] == 0x05) /* test %eax, poll(%rip): JDK 8 */
		at = 6;
	if (duet_code_is(code, at, 0x418502))
		at += 3;
	if (duet_code_at(code, at) == 0x0f && duet_code_at(code, at + 1) == 0x87)
		at += 6;
	return at;
}

/*
 * After its frame's end, the wrapper of a native method checks for an exception: cmpq $0, pending(%r15); jne 1f; ret.
 * Returns how many bytes of that, before the ret, are still to run. Before it, JDK 25 checks for a poll, which
 * duet_frame_polls_at_end() recognises: testb $1, poll(%r15); je; mov $here, %r10.
 */
static inline uint32_t duet_frame_pending_bytes(const uint8_t *code)
{
	uint32_t compare = duet_code_is(code, 0, 0x49837f)   ? 5
			   : duet_code_is(code, 0, 0x4983bf) ? 8
			   : duet_code_is(code, 0, 0x49817f) ? 8
			   : duet_code_is(code, 0, 0x4981bf) ? 11
							     : 0;

	return compare || duet_code_is(code, 0, 0x0f8501) ? compare + 6 : 0;
}

static inline int duet_frame_polls_at_end(const uint8_t *code)
{
	uint32_t at = duet_code_is(code, 0, 0x41f647) ? 5 : 0;

	return duet_code_is(code, at, 0x741649) && duet_code_at(code, at + 3) == 0xba;
}

/* Is this jmp, or jmp *%r10, as in C2's stubs? */
static inline int duet_frame_jumps_on(const uint8_t *code)
{
	return code[0] == 0xe9 || duet_code_is(code, 0, 0x41ffe2);
}

#define DUET_FRAME_LEFT_BYTES 8 /* bytes of code before a jump */

/*
 * Has the code before this jump to another stub left its frame? There are two cases. C2's or C1's code forwards an
 * exception: pop %rbp, not pop %r13, comes before the jump. The wrapper of a native method does: jne 1f; ret comes
 * before it.
 */
static inline int duet_frame_has_left(const uint8_t *code)
{
	return (code[7] == 0x5d && code[6] != 0x41) || (code[7] == 0xc3 && duet_code_is(code, 1, 0x0f8501));
}

/*
 * Returns by how many bytes the frame is larger at an instruction with which C2 moves a word within the frame: the code
 * has pushed the word, and pops it to its place here.
 */
static inline uint32_t duet_frame_moved_bytes(const uint8_t *code)
{
	uint32_t bytes = (uint32_t)walk_operand(code, 4);

	if (code[0] == 0x48)
		bytes >>= 8;
	return (bytes & 0xff3fff) == 0x24048f ? 8 : 0;
}

/*
 * Recognises how much of a frame is left in a method's epilogue: add $n, %rsp; pop %rbp; poll; ret. When the poll is
 * taken, the method's stub stores the poll's address and jumps: lea poll(%rip), %r10; mov %r10, saved(%r15); jmp.
 * `code` begins at pc.
 */
static inline int64_t duet_frame_epilogue(const uint8_t *code)
{
	if (code[0] == 0x5d)
		return 8;
	if (duet_code_at(code, duet_frame_poll_bytes(code)) == 0xc3 ||
	    duet_code_at(code, duet_frame_pending_bytes(code)) == 0xc3 || duet_frame_polls_at_end(code))
		return 0;
	if (duet_code_is(code, 0, 0x4c8d15) && duet_code_is(code, 7, 0x4d8997))
		return 0;
	if (duet_code_is(code, 0, 0x4d8997) && code[7] == 0xe9)
		return 0;
	return DUET_FRAME_BUILT;
}

/* Does a call precede this return address: direct, by register, by memory? `code` ends there, after `end` bytes. */
static inline int duet_code_calls(const uint8_t *code, uint32_t end)
{
	return code[end - 5] == 0xe8 || (code[end - 2] == 0xff && (code[end - 1] & 0xf8) == 0xd0) ||
	       (code[end - 3] == 0xff && (code[end - 2] & 0xf8) == 0x50) ||
	       (code[end - 6] == 0xff && ((code[end - 5] & 0xf8) == 0x90 || code[end - 5] == 0x15));
}

#define DUET_FRAME_CALL_BYTES 13 /* of the longest call sequence that contains its target */
#define DUET_FRAME_INDIRECT_BYTES 6 /* of the longest call through memory */

/* Returns the target of the call before pc, or 0: call rel32; or mov $target, %r10; call *%r10. `code` ends at pc. */
static inline uint64_t duet_frame_call_target(const uint8_t *code, uint64_t pc)
{
	if (code[DUET_FRAME_CALL_BYTES - 5] == 0xe8)
		return pc + walk_operand(code + DUET_FRAME_CALL_BYTES - 4, 4);
	if (code[0] == 0x49 && code[1] == 0xba && code[10] == 0x41 && code[11] == 0xff && code[12] == 0xd2)
		return walk_operand(code + 2, 8);
	return 0;
}

#define DUET_FRAME_STUB_BEFORE 10 /* bytes before pc of a method's stub that the function is given */

/*
 * Returns what is on the stack in a method's stub. A call of a method that is not compiled goes through a stub: mov
 * $method, %rbx; jmp. The exception handler is entered by a jump when the method has its frame; it only jumps, or calls
 * (C1). The deoptimization handler first pushes its address: call 1f; 1: sub $5, (%rsp); jmp; or lea here, %r10; push
 * %r10; jmp.
 */
static inline enum duet_frame_stub duet_frame_stub(const uint8_t *code)
{
	const uint8_t *at = code + DUET_FRAME_STUB_BEFORE;

	if (at[0] == 0x48 && at[1] == 0xbb && at[10] == 0xe9)
		return DUET_STUB_CALLED;
	if (at[0] == 0xe9 && code[0] == 0x48 && code[1] == 0xbb)
		return DUET_STUB_CALLED;
	if (duet_code_is(at, 0, 0x48832c) ||
	    (at[0] == 0xe9 && (duet_code_is(code, 5, 0x48832c) || (code[8] == 0x41 && code[9] == 0x52))))
		return DUET_STUB_PUSHED;
	if (at[0] == 0xe8 || at[0] == 0xe9 || (at[0] == 0x41 && at[1] == 0x52) || duet_code_is(at, 0, 0x4c8d15))
		return DUET_STUB_FRAMED;
	return DUET_STUB_OTHER;
}

/*
 * Has the wrapper of a native method pushed its caller's frame pointer, and does it set its own next: mov %rsp, %rbp?
 */
static inline int duet_frame_is_pushed(const uint8_t *code)
{
	return duet_code_is(code, 0, 0x488bec);
}

/* Returns the length of the pop instruction here, or 0 when this is none. */
static inline uint32_t duet_frame_pop_bytes(const uint8_t *code)
{
	uint32_t prefix = code[0] == 0x41;

	return (code[prefix] & 0xf8) == 0x58 ? prefix + 1 : 0;
}

/* Does a stub that begins so have a frame pointer by which its frame is found, also while it is made? */
static inline int duet_frame_keeps_fp(const uint8_t *code)
{
	return 0; /* such stubs have frames whose sizes are known */
}

#define DUET_FRAME_POPS_BYTES 4 /* bytes of the two instructions that pop operands, at most */

/*
 * Returns how many bytes of operands are popped here, after the call that they were pushed for. C1 pushes two words for
 * a subtype check. d2l_fixup() and similar stubs have one word: the number to convert, which the result replaces before
 * it is popped.
 */
static inline uint32_t duet_frame_operand_bytes(const uint8_t *code)
{
	uint32_t first = duet_frame_pop_bytes(code);

	if (!first)
		return 0;
	return duet_frame_pop_bytes(code + first) ? 16 : 8;
}

/*
 * Returns how many bytes these instructions free, if they add to rsp and jump, or 0. They come after a barrier's call,
 * and free what it has saved.
 */
static inline uint32_t duet_frame_freed_here(const uint8_t *code)
{
	uint32_t operation = (uint32_t)walk_operand(code, 4) & 0xffffff;

	if (operation == 0xc48348)
		return (code[4] & 0xfd) == 0xe9 && code[3] < 0x80 ? code[3] : 0;
	return operation == 0xc48148 && (code[7] & 0xfd) == 0xe9 ? (uint32_t)walk_operand(code + 3, 4) : 0;
}

/* Returns how many bytes are freed before the next jump, or 0. `code` has 8 bytes more than `bytes`. */
static inline uint32_t duet_frame_freed_bytes(const uint8_t *code, uint32_t bytes)
{
	uint32_t freed = 0;

	for (uint32_t i = 0; i < bytes && !freed; i++)
		freed = duet_frame_freed_here(code + i);
	return freed;
}

/* Only arm64 needs these: linkage tables of x86-64 have rows, and its stack shows where the return address is. */
static inline int32_t duet_frame_stub_bytes(const uint8_t *code, uint32_t bytes)
{
	return -1;
}

static inline int duet_frame_pushes(const uint8_t *code)
{
	return 1;
}

static inline int duet_frame_is_linkage(const uint8_t *code)
{
	return 0;
}

/*
 * Do these eight bytes begin with mov %eax, %edi; mov %rax, %rdi; movslq %eax, %rdi; as glibc's _start with hlt; or as
 * that of its dynamic linker with mov %rax, %r12?
 */
static inline int duet_frame_passes_result(uint64_t code)
{
	uint64_t three = code & 0xffffff;

	return (code & 0xffff) == 0xc789 || three == 0xc78948 || three == 0xf86348 || (code & 0xff) == 0xf4 ||
	       three == 0xc48949;
}

/* Do they begin with a push or with sub $n, %rsp, after endbr64? */
static inline int duet_frame_begins(uint64_t code)
{
	if ((code & 0xffffffff) == 0xfa1e0ff3)
		code >>= 32;
	if ((code & 0xfffdff) == 0xec8148)
		return 1;
	return ((code & 0xfe) == 0x40 ? code >> 8 & 0xf8 : code & 0xf8) == 0x50;
}

/* Registers by their number in machine code, and what the interpreter keeps in them. */
#define DUET_X86_REGISTERS 16
#define DUET_X86_RAX 0
#define DUET_X86_RCX 1
#define DUET_X86_RDX 2
#define DUET_X86_RBX 3
#define DUET_X86_RSI 6
#define DUET_X86_RDI 7
#define DUET_X86_R13 13
#define DUET_X86_R15 15
#define DUET_FRAME_REGISTERS DUET_X86_REGISTERS
#define DUET_FRAME_LINK DUET_X86_RDI /* see DUET_ROW_RA_SAVED */
#define DUET_FRAME_RETURN DUET_X86_RAX /* the return address, while it is not on the stack */
#define DUET_FRAME_METHOD DUET_X86_RBX
#define DUET_FRAME_BCP DUET_X86_R13 /* in a method's own code, the pointer to its byte code */
#define DUET_FRAME_THREAD DUET_X86_R15
#define DUET_FRAME_RECEIVER DUET_X86_RSI /* of a virtual call: j_rarg0 */
#define DUET_FRAME_SENDER(layout) DUET_X86_R13 /* on the way into a method, its caller's sp */

#define DUET_FRAME_FIXED_BYTES 64 /* of an interpreter frame, below its frame pointer */
#define DUET_FRAME_BCP_WORD (-8) /* where it saves the pointer to the byte code (JDK 9+), in words */
#define DUET_FRAME_STUB_THREAD 24 /* bytes from its frame pointer to where the call stub keeps its JavaThread */
#define DUET_FRAME_STUB_WRAPPER (-48) /* and its JavaCallWrapper */

/*
 * Finds where a method's entry pops the return address, pop %rax; lea n(%rsp, %rcx, 8), %r14, and where it pushes it
 * again, push %rax; push %rbp; mov %rsp, %rbp. The results are offsets from the start of the code. Returns the register
 * that has the caller's sp there, or 0 when the entry makes no such frame.
 */
static inline int duet_frame_find_entry(const uint8_t *code, uint32_t bytes, uint32_t *ret_pop, uint32_t *ret_push)
{
	int has_popped = 0;

	for (uint32_t at = 0; at + 5 <= bytes; at++) {
		if (code[at] == 0x58 && code[at + 1] == 0x4c && code[at + 2] == 0x8d && code[at + 3] == 0x74) {
			*ret_pop = at;
			has_popped = 1;
		}
		if (code[at] == 0x50 && code[at + 1] == 0x55 && code[at + 2] == 0x48 && code[at + 3] == 0x8b &&
		    code[at + 4] == 0xec) {
			*ret_push = at;
			return has_popped ? DUET_X86_R13 : 0;
		}
	}
	return 0;
}

/* Returns the offset of push %rax; push %rdx between pop %rdx; mov %rbx, %rsp and the end of this code, or 0. */
static inline uint32_t duet_frame_find_pushes(const uint8_t *code, uint32_t from, uint32_t end)
{
	for (uint32_t at = from; at + 1 < end; at++)
		if (code[at] == 0x50 && code[at + 1] == 0x52)
			return at;
	return 0;
}

#define DUET_FRAME_THROWN_BYTES 128 /* bytes of the code that the next function finds, at most; JDK 25 has 98 */

/*
 * Finds where the interpreter has left a frame that an exception passes: leave; [mov $0, flag(%r15);] pop %rdx; mov
 * %rbx, %rsp ... push %rax; push %rdx; call ... mov %rax, %rbx; pop %rdx; pop %rax; jmp *%rbx. The range begins after
 * leave. Returns nonzero when found.
 */
static inline int duet_frame_find_thrown(const uint8_t *code, uint32_t bytes, struct duet_method_entry *ret)
{
	uint32_t end = 7, at;

	while (end <= bytes && __builtin_memcmp(code + end - 7, "\x48\x8b\xd8\x5a\x58\xff\xe3", 7))
		end++;
	if (end > bytes)
		return 0;
	for (at = end; at && end - at < DUET_FRAME_THROWN_BYTES; at--) {
		if (__builtin_memcmp(code + at, "\x5a\x48\x8b\xe3", 4))
			continue;
		*ret = (struct duet_method_entry){.end = end, .pop = at, .push = duet_frame_find_pushes(code, at, end)};
		ret->begin = code[at - 1] == 0xc9 ? at : at > 8 && code[at - 9] == 0xc9 ? at - 8 : 0;
		return ret->begin && ret->push;
	}
	return 0;
}

/* The return address is on top of the stack until it is popped, in rax while locals are pushed, then pushed again. */
static inline enum duet_frame_made duet_frame_made(uint32_t pop, uint32_t push, uint64_t at)
{
	if (at <= pop || at == push + 1ull)
		return DUET_FRAME_MADE_NOTHING;
	if (at <= push)
		return DUET_FRAME_MADE_POPPED;
	return at == push + 2ull ? DUET_FRAME_MADE_FP_PUSHED : DUET_FRAME_MADE;
}

#define DUET_FRAME_BYTES_BEFORE 3 /* bytes before pc in the code that duet_frame_exit() is given */

/*
 * Returns the register of an instruction at `at`, or -1 when the instruction is another. The instruction may begin with
 * REX.B. Then it has `prefix`, unless that is 0, and its last byte is base + register.
 */
static inline int duet_code_register(const uint8_t *code, uint32_t at, uint8_t prefix, uint8_t base)
{
	int high = duet_code_at(code, at) == 0x41 ? 8 : 0;

	at += high != 0;
	if (prefix) {
		if (duet_code_at(code, at) != prefix)
			return -1;
		at++;
	}
	return (duet_code_at(code, at) & 0xf8) == base ? high + (duet_code_at(code, at) & 7) : -1;
}

/* Returns the register of mov %reg, %rsp, in either encoding, or -1. */
static inline int duet_code_sets_sp(const uint8_t *code, uint32_t at)
{
	uint8_t rex = duet_code_at(code, at), opcode = duet_code_at(code, at + 1),
		operands = duet_code_at(code, at + 2);

	if ((rex == 0x48 || rex == 0x49) && opcode == 0x8b && (operands & 0xf8) == 0xe0)
		return (operands & 7) + (rex == 0x49 ? 8 : 0);
	if ((rex == 0x48 || rex == 0x4c) && opcode == 0x89 && (operands & 0xc7) == 0xc4)
		return (operands >> 3 & 7) + (rex == 0x4c ? 8 : 0);
	return -1;
}

/*
 * Is pc at one of the instructions that leave a method: pop %to; mov %sp, %rsp; jmp *%to? `code` begins
 * DUET_FRAME_BYTES_BEFORE before pc.
 */
static inline int duet_frame_exit(const uint8_t *code, struct duet_frame_exit *ret_exit)
{
	uint32_t at = DUET_FRAME_BYTES_BEFORE;
	int popped = duet_code_register(code, at, 0, 0x58), sp, to;

	if (popped >= 0)
		at += popped < 8 ? 1 : 2;
	sp = duet_code_sets_sp(code, at);
	if (sp >= 0)
		at += 3;
	else if (popped >= 0 || duet_code_sets_sp(code, at - 3) < 0)
		return 0;
	to = duet_code_register(code, at, 0xff, 0xe0);
	if (to < 0 || (popped >= 0 && popped != to))
		return 0;
	ret_exit->to = (uint8_t)to;
	ret_exit->is_on_stack = popped >= 0;
	ret_exit->sp = (uint8_t)(sp & (DUET_X86_REGISTERS - 1));
	ret_exit->has_sp = sp < 0;
	return 1;
}
