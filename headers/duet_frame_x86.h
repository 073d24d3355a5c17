/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * How far a frame of x86-64 code that HotSpot generated is built, told by the machine code. For the agent, which has
 * that code in its own memory, and for BPF, which reads copies.
 */
#ifndef DUET_FRAME_X86_H
#define DUET_FRAME_X86_H

#include "duet_types.h"

#define DUET_FRAME_CODE_BYTES 32 /* of machine code that these functions are given */
#define DUET_FRAME_PROLOGUE_BYTES 64 /* this far behind its entry a method may still be in its prologue */

/* Else the functions return how many bytes above sp the return address lies. */
#define DUET_FRAME_BUILT (-1)
#define DUET_FRAME_FP_UNSAVED (-2) /* built, but the caller's frame pointer is still in rbp only */

/* Three bytes of the code; the mask shows the verifier their bound. */
static inline int duet_code_is(const uint8_t *code, uint32_t at, uint32_t bytes)
{
	return code[at & (DUET_FRAME_CODE_BYTES - 1)] == bytes >> 16 &&
	       code[(at + 1) & (DUET_FRAME_CODE_BYTES - 1)] == (bytes >> 8 & 0xff) &&
	       code[(at + 2) & (DUET_FRAME_CODE_BYTES - 1)] == (bytes & 0xff);
}

/*
 * [mov %eax, -bang(%rsp)] push %rbp; [mov %rsp, %rbp] sub $n, %rsp | [bang] sub $n, %rsp; mov %rbp, n-8(%rsp)
 *
 * `code` begins at the method's entry, `done` bytes of it have run. *ret_end: where the prologue ends.
 */
static inline int64_t duet_frame_prologue(const uint8_t *code, uint32_t done, uint32_t *ret_end)
{
	uint32_t at = duet_code_is(code, 0, 0x898424) ? 7 : 0;
	int pushed = code[at] == 0x55;

	*ret_end = at;
	if (pushed) {
		if (done <= at)
			return 0;
		at++;
	}
	if (duet_code_is(code, at, 0x488bec) || duet_code_is(code, at, 0x4889e5))
		at += 3;
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

/* The poll behind the frame's end: cmp poll(%r15), %rsp; ja (JDK 16+), or mov poll(%r15), %r10; test %eax, (%r10) */
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
	if (code[at] == 0x0f && code[at + 1] == 0x87)
		at += 6;
	return at;
}

/*
 * add $n, %rsp; pop %rbp; poll; ret. When the poll is taken, the method's stub notes where and jumps on:
 * lea poll(%rip), %r10; mov %r10, saved(%r15); jmp. `code` begins at pc.
 */
static inline int64_t duet_frame_epilogue(const uint8_t *code)
{
	if (code[0] == 0x5d)
		return 8;
	if (code[duet_frame_poll_bytes(code)] == 0xc3)
		return 0;
	if (duet_code_is(code, 0, 0x4c8d15) && duet_code_is(code, 7, 0x4d8997))
		return 0;
	if (duet_code_is(code, 0, 0x4d8997) && code[7] == 0xe9)
		return 0;
	return DUET_FRAME_BUILT;
}

/* mov %reg, %rsp, either encoding */
static inline int duet_code_sets_sp(const uint8_t *code, uint32_t at)
{
	return code[at] == 0x48 && ((code[at + 1] == 0x8b && (code[at + 2] & 0xf8) == 0xe0) ||
				    (code[at + 1] == 0x89 && (code[at + 2] & 0xc7) == 0xc4));
}

/*
 * The interpreter leaves a method: leave; pop %return; mov %sender, %rsp; jmp *%return. True behind the first of them,
 * where rbp is the caller's already.
 */
static inline int duet_frame_is_left(const uint8_t *code)
{
	if (code[0] == 0xff && (code[1] & 0xf8) == 0xe0)
		return 1;
	return duet_code_sets_sp(code, 0) || ((code[0] & 0xf8) == 0x58 && duet_code_sets_sp(code, 1));
}

#endif
