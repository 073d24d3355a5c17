/* SPDX-License-Identifier: MIT */
/*
 * Each function stores its place, and goes on to one piece of code that is the same for all. Without a probe, this
 * jumps to the method's own function. Else it keeps the registers that may hold arguments, asks natives_called() for
 * the method's own function, and jumps there: the stack and all arguments are then as the JVM left them. Their code is
 * in the library, so no memory has to be made executable.
 */
#include "method/natives.h"
#include "method/rewrite.h"

#define BYTES 16 /* of each function */

struct native_call native_calls[NATIVE_CALLS];

_Static_assert(sizeof(struct native_call) == 16 && offsetof(struct native_call, function) == 0 &&
		       offsetof(struct native_call, id) == 8 && PROBE_NONE == -1,
	       "the code below reads it");

extern const char native_calls_first[] __attribute__((visibility("hidden")));

uintptr_t native_calls_at(uint32_t place)
{
	return (uintptr_t)native_calls_first + (uintptr_t)place * BYTES;
}

#define TEXT(value) TEXT_OF(value)
#define TEXT_OF(value) #value

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".balign 16\n"
	".hidden native_calls_first\n"
	".globl native_calls_first\n"
	".type native_calls_first, @function\n"
	"native_calls_first:\n"
	".set native_place, 0\n"
	".rept " TEXT(NATIVE_CALLS) "\n"
	"	.balign 16\n"
	"	endbr64\n"
	"	movl $native_place, %eax\n" /* holds no argument: a native method has no variable arguments */
	"	jmp native_calls_common\n"
	"	.set native_place, native_place + 1\n"
	".endr\n"
	"native_calls_common:\n"
	"	.cfi_startproc\n"
	"	movl %eax, %r11d\n"
	"	shll $4, %r11d\n"
	"	leaq native_calls(%rip), %r10\n"
	"	addq %r10, %r11\n"
	"	cmpl $-1, 8(%r11)\n"
	"	jne 1f\n"
	"	jmp *(%r11)\n"
	"1:	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	subq $176, %rsp\n"
	"	movq %rdi, (%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	movq %rdx, 16(%rsp)\n"
	"	movq %rcx, 24(%rsp)\n"
	"	movq %r8, 32(%rsp)\n"
	"	movq %r9, 40(%rsp)\n"
	"	movups %xmm0, 48(%rsp)\n"
	"	movups %xmm1, 64(%rsp)\n"
	"	movups %xmm2, 80(%rsp)\n"
	"	movups %xmm3, 96(%rsp)\n"
	"	movups %xmm4, 112(%rsp)\n"
	"	movups %xmm5, 128(%rsp)\n"
	"	movups %xmm6, 144(%rsp)\n"
	"	movups %xmm7, 160(%rsp)\n"
	"	movl %eax, %edi\n"
	"	call natives_called\n"
	"	movq %rax, %r11\n"
	"	movq (%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	movq 16(%rsp), %rdx\n"
	"	movq 24(%rsp), %rcx\n"
	"	movq 32(%rsp), %r8\n"
	"	movq 40(%rsp), %r9\n"
	"	movups 48(%rsp), %xmm0\n"
	"	movups 64(%rsp), %xmm1\n"
	"	movups 80(%rsp), %xmm2\n"
	"	movups 96(%rsp), %xmm3\n"
	"	movups 112(%rsp), %xmm4\n"
	"	movups 128(%rsp), %xmm5\n"
	"	movups 144(%rsp), %xmm6\n"
	"	movups 160(%rsp), %xmm7\n"
	"	leave\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	jmp *%r11\n"
	"	.cfi_endproc\n"
	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".balign 16\n"
	".hidden native_calls_first\n"
	".globl native_calls_first\n"
	".type native_calls_first, %function\n"
	"native_calls_first:\n"
	".set native_place, 0\n"
	".rept " TEXT(NATIVE_CALLS) "\n"
	"	.balign 16\n"
	"	hint #34\n" /* bti c */
	"	mov x17, #native_place\n"
	"	b native_calls_common\n"
	"	.set native_place, native_place + 1\n"
	".endr\n"
	"native_calls_common:\n"
	"	.cfi_startproc\n"
	"	adrp x16, native_calls\n"
	"	add x16, x16, :lo12:native_calls\n"
	"	add x16, x16, x17, lsl #4\n"
	"	ldr w15, [x16, #8]\n"
	"	cmn w15, #1\n"
	"	b.ne 1f\n"
	"	ldr x16, [x16]\n"
	"	br x16\n"
	"1:	stp x29, x30, [sp, #-224]!\n"
	"	.cfi_def_cfa_offset 224\n"
	"	.cfi_offset x29, -224\n"
	"	.cfi_offset x30, -216\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	stp x2, x3, [sp, #32]\n"
	"	stp x4, x5, [sp, #48]\n"
	"	stp x6, x7, [sp, #64]\n"
	"	stp q0, q1, [sp, #80]\n"
	"	stp q2, q3, [sp, #112]\n"
	"	stp q4, q5, [sp, #144]\n"
	"	stp q6, q7, [sp, #176]\n"
	"	mov w0, w17\n"
	"	bl natives_called\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x2, x3, [sp, #32]\n"
	"	ldp x4, x5, [sp, #48]\n"
	"	ldp x6, x7, [sp, #64]\n"
	"	ldp q0, q1, [sp, #80]\n"
	"	ldp q2, q3, [sp, #112]\n"
	"	ldp q4, q5, [sp, #144]\n"
	"	ldp q6, q7, [sp, #176]\n"
	"	ldp x29, x30, [sp], #224\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".popsection\n");
#else
#error "not ported"
#endif
