/* SPDX-License-Identifier: MIT */
/*
 * Repairs of the top frame, on a made-up code heap and stack:
 * at each instruction of a prologue and epilogue as HotSpot's compilers write
 * them, the repaired registers must lead to the same caller.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample/repair.c"
#include "safe_copy.c"

static unsigned char code[4096];
static struct code_blob method;

#include "fixtures/one_method.h"

#define CALLER ((uintptr_t)code + 2048)
#define CALLER_FP ((uintptr_t)0x7777)
#define FRAME_BYTES 48

static void use_method(const void *bytes, size_t size, size_t complete)
{
	memset(code, 0x90, sizeof(code));
	memcpy(code + 64, bytes, size);
	memcpy(code + 2048 - 5, "\xe8", 1);
	method = (struct code_blob){
		.start = (uintptr_t)code,
		.bytes = 1024,
		.code_begin = (uintptr_t)code + 32,
		.entry = (uintptr_t)code + 64,
		.frame_complete = (uintptr_t)code + 64 + complete,
		.frame_bytes = FRAME_BYTES,
	};
}

static bool repair_all(const struct regs *now, struct regs *ret_fixed)
{
	static struct stack_copy stack;

	assert_true(stack_copy(&stack, now->sp, 4096));
	for (int i = 0; repairs[i]; i++)
		if (repairs[i](now, &stack, ret_fixed))
			return true;
	return false;
}

#if defined(__x86_64__)
/* Where sp is at each instruction, in words above the return address (0) or below it. */
struct step {
	size_t offset;
	int words;
};

static void check_steps(const struct step *steps, size_t count)
{
	uintptr_t words[1024] = {0};
	uintptr_t *slot = &words[128];

	for (size_t i = 0; i < count; i++) {
		struct regs now = {
			.pc = method.entry + steps[i].offset,
			.sp = (uintptr_t)(slot + steps[i].words),
			.fp = CALLER_FP,
		};
		struct regs fixed;

		slot[0] = CALLER;
		slot[-1] = steps[i].words < 0 ? CALLER_FP : 0;
		assert_true(repair_all(&now, &fixed));
		/* A built frame: the return address at its end, the caller's fp below. */
		assert_int_equal(*(uintptr_t *)(fixed.sp + FRAME_BYTES - 8), CALLER);
		assert_int_equal(*(uintptr_t *)(fixed.sp + FRAME_BYTES - 16), CALLER_FP);
		assert_true(fixed.pc >= method.frame_complete);
	}
}

static void test_prologue_with_bang(void **state)
{
	/* mov %eax,-0x14000(%rsp); push %rbp; sub $0x20,%rsp; barrier: cmpl $1,0x20(%r15) */
	static const char bytes[] = "\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x83\xec\x20\x41\x81\x7f\x20\x01\x00\x00\x00";
	static const struct step steps[] = {{0, 0}, {7, 0}, {8, -1}, {12, -5}};

	use_method(bytes, sizeof(bytes), 20);
	check_steps(steps, 4);
}

static void test_prologue_without_bang(void **state)
{
	/* sub $0x28,%rsp; mov %rbp,0x20(%rsp): at the mov the slot is not written yet, so only the first step here */
	static const char bytes[] = "\x48\x81\xec\x28\x00\x00\x00\x48\x89\x6c\x24\x20";
	static const struct step steps[] = {{0, 0}};

	use_method(bytes, sizeof(bytes), 12);
	check_steps(steps, 1);
}

static void test_epilogue(void **state)
{
	/* 100 bytes of body; add $0x20,%rsp; pop %rbp; cmp 0x388(%r15),%rsp; ja; ret */
	static const char tail[] = "\x48\x83\xc4\x20\x5d\x49\x3b\xa7\x88\x03\x00\x00\x0f\x87\x00\x00\x00\x00\xc3";
	static const struct step steps[] = {{104, -1}, {105, 0}, {112, 0}, {118, 0}};
	unsigned char bytes[100 + sizeof(tail)];

	memset(bytes, 0x90, sizeof(bytes));
	memcpy(bytes + 100, tail, sizeof(tail));
	use_method(bytes, sizeof(bytes), 12);
	check_steps(steps, 4);
}

static void test_body_is_left_alone(void **state)
{
	uintptr_t words[1024] = {CALLER, CALLER};
	struct regs now = {.pc = (uintptr_t)code + 300, .sp = (uintptr_t)words, .fp = (uintptr_t)words};
	struct regs fixed;

	use_method("", 0, 12);
	assert_false(repair_all(&now, &fixed));
}
#endif

/* Outside of methods: in a stub that has pushed nothing, that keeps a frame pointer, or neither. */
static void test_stub(void **state)
{
	uintptr_t words[1024] = {0};
	struct regs now = {.pc = (uintptr_t)code + 1500, .sp = (uintptr_t)words, .fp = (uintptr_t)&words[4], .lr = 0};
	struct regs fixed;

	use_method("", 0, 0);
	words[4] = CALLER_FP;
	words[5] = CALLER;
	assert_true(repair_all(&now, &fixed));
	assert_int_equal(fixed.pc, CALLER - 1);
	assert_int_equal(fixed.sp, &words[6]);
	assert_int_equal(fixed.fp, CALLER_FP);
#if defined(__x86_64__)
	now.fp = 3; /* no valid fp: found by searching for a return address */
	assert_true(repair_all(&now, &fixed));
	assert_int_equal(fixed.sp, &words[6]);
	words[0] = CALLER;
	assert_true(repair_all(&now, &fixed));
	assert_int_equal(fixed.sp, &words[1]);
#endif
}

static void test_unmapped_stack(void **state)
{
	static struct stack_copy stack;
	uintptr_t word;

	assert_false(stack_copy(&stack, 4096, 4096));
	assert_false(stack_word(&stack, 4096, &word));
	assert_false(stack_copy(&stack, UINTPTR_MAX - 8, 4096));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(test_prologue_with_bang),
		cmocka_unit_test(test_prologue_without_bang),
		cmocka_unit_test(test_epilogue),
		cmocka_unit_test(test_body_is_left_alone),
#endif
		cmocka_unit_test(test_stub),
		cmocka_unit_test(test_unmapped_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
