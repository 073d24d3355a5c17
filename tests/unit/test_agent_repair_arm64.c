/* SPDX-License-Identifier: MIT */
/*
 * Repairs of a top frame of arm64, on any machine: at each instruction of a prologue and epilogue the repaired
 * registers lead to the same caller. Nothing is written except what the thread itself is about to write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Replaces regs.h, whose mcontext_t is that of the build machine. */
#define SAMPLE_REGS_H
struct regs {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
	uintptr_t lr;
};

#include "safe_copy.c"

#undef __x86_64__
#ifndef __aarch64__
#define __aarch64__ 1
#endif
#define WALK_X86 0
#include "sample/repair.c"

#define CALLER ((uintptr_t)code + 2048)
#define CALLER_FP ((uintptr_t)0x7777)
#define OTHER 0x5555u
#define COMPLETE 6 /* instructions: a method's entry barrier comes after its frame is made */
#define PUSH 0xa9bf7bfdu /* stp x29, x30, [sp, #-16]! */
#define NOP 0xd503201fu

static uint32_t code[1024];
static struct code_blob method;

#include "fixtures/one_method.h"

static void use_method(const uint32_t *insns, size_t count, size_t frame_bytes)
{
	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		code[i] = i >= 16 && i < 16 + count ? insns[i - 16] : NOP;
	method = (struct code_blob){
		.start = (uintptr_t)code,
		.bytes = 1024,
		.code_begin = (uintptr_t)code,
		.entry = (uintptr_t)(code + 16),
		.frame_complete = (uintptr_t)(code + 16 + COMPLETE),
		.frame_bytes = frame_bytes,
	};
}

/*
 * Before an instruction: how far sp is below the caller's, whether x29 and x30 are stored, and whether they have other
 * values.
 */
struct step {
	uint32_t insn;
	size_t below;
	bool is_stored;
	bool is_other;
};

static void check_step(const struct step *step, size_t frame_bytes)
{
	uintptr_t words[1024], *caller_sp = &words[512];
	struct regs fixed, now = {
		.pc = method.entry + 4 * step->insn,
		.sp = (uintptr_t)caller_sp - step->below,
		.fp = step->is_other ? OTHER : CALLER_FP,
		.lr = step->is_other ? method.entry + 8 : CALLER,
	};

	for (size_t i = 0; i < 1024; i++)
		words[i] = i;
	if (step->is_stored) {
		caller_sp[-1] = CALLER;
		caller_sp[-2] = CALLER_FP;
	}
	assert_true(finish_frame(&now, NULL, &fixed));
	assert_int_equal(fixed.sp, (uintptr_t)caller_sp - frame_bytes);
	assert_true(fixed.pc >= method.frame_complete);
	assert_int_equal(caller_sp[-1], CALLER);
	assert_int_equal(caller_sp[-2], CALLER_FP);
	for (size_t i = 0; i < 1024; i++)
		assert_true(words[i] == i || i == 510 || i == 511);
}

static void check_steps(const struct step *steps, size_t count, size_t frame_bytes)
{
	for (size_t i = 0; i < count; i++)
		check_step(&steps[i], frame_bytes);
}

#define CHECK_STEPS(frame_bytes, ...)                                                                     \
	check_steps((const struct step[]){__VA_ARGS__},                                                   \
		    sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step), frame_bytes)

/* sub sp, sp, #48; stp x29, x30, [sp, #32]; add x29, sp, #32; a barrier that has called */
static void test_small_frame(void **state)
{
	use_method((const uint32_t[]){NOP, 0xd100c3ff, 0xa9027bfd, 0x910083fd}, 4, 48);
	CHECK_STEPS(48, {0, 0, false, false}, {1, 0, false, false}, {2, 48, false, false}, {3, 48, true, false},
		    {4, 48, true, true}, {5, 48, true, true});
}

/* stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, sp, #1024 */
static void test_large_frame(void **state)
{
	use_method((const uint32_t[]){NOP, PUSH, 0x910003fd, 0xd11003ff}, 4, 1040);
	CHECK_STEPS(1040, {1, 0, false, false}, {2, 16, true, false}, {3, 16, true, true}, {4, 1040, true, true},
		    {5, 1040, true, true});
}

/* After the body: ldp x29, x30, [sp, #32]; add sp, sp, #48; ret. Or ldp x29, x30, [sp], #16; ret. */
static void test_left_frame(void **state)
{
	use_method((const uint32_t[]){[40] = 0xa9427bfd, 0x9100c3ff, 0xd65f03c0}, 43, 48);
	CHECK_STEPS(48, {42, 0, true, false});
	use_method((const uint32_t[]){[40] = 0xa8c17bfd, 0xd65f03c0}, 42, 1040);
	CHECK_STEPS(1040, {40, 16, true, true}, {41, 0, true, false});
}

#define SIGNATURE ((uintptr_t)0x2b << 48)
#define SIGN 0xd503231fu /* paciaz */
#define CALL 0x94000000u /* bl, to itself */

/*
 * A leaf that Java has called, and whose callers have signed: found by lr, by its frame record, or by a word of the
 * stack.
 */
static void test_signed_callers(void **state)
{
	uintptr_t words[SCAN_WORDS] = {0};
	struct regs fixed, now = {
		.pc = CALLER + 64, .sp = (uintptr_t)words, .fp = (uintptr_t)&words[8], .lr = CALLER | SIGNATURE};
	static struct stack_copy stack;

	use_method((const uint32_t[]){NOP}, 1, 48);
	code[(2048 - 4) / 4] = CALL;
	words[9] = CALLER | SIGNATURE;
	assert_true(stack_copy(&stack, (uintptr_t)words, sizeof(words)));
	for (size_t i = 1; repairs[i]; i++) {
		fixed = (struct regs){0};
		assert_true(repairs[i](&now, &stack, &fixed));
		assert_int_equal(fixed.pc, CALLER - 1);
		assert_int_equal(fixed.sp, (uintptr_t)&words[10]);
	}
}

/* HotSpot does not expect signed return addresses and reads them as they are, except in a method that signs. */
static void test_signed_return_addresses_in_hotspot(void **state)
{
	uintptr_t words[16] = {0};
	struct regs now = {.pc = (uintptr_t)(code + 16), .sp = (uintptr_t)words};

	use_method((const uint32_t[]){NOP, 0xd100c3ff, 0xa9027bfd, 0x910083fd}, 4, 48);
	words[5] = CALLER;
	assert_false(repair_walk_would_fault(&now));
	words[5] |= SIGNATURE;
	assert_true(repair_walk_would_fault(&now));
	use_method((const uint32_t[]){NOP, SIGN, 0xd100c3ff, 0xa9027bfd, 0x910083fd}, 5, 48);
	assert_false(repair_walk_would_fault(&now));
	use_method((const uint32_t[]){NOP, 0xd100c3ff, 0xa9027bfd, 0x910083fd, SIGN}, 5, 48);
	assert_true(repair_walk_would_fault(&now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_frame),
		cmocka_unit_test(test_large_frame),
		cmocka_unit_test(test_left_frame),
		cmocka_unit_test(test_signed_callers),
		cmocka_unit_test(test_signed_return_addresses_in_hotspot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
