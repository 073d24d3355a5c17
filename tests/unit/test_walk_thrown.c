/* SPDX-License-Identifier: MIT */
/* The walk while an exception passes from frame to frame, x86-64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixtures/walk_vm.h"

#define ADAPTER_NAME 0x3000ull

/* Where compiled code with a frame of four words has called, and was called. */
static uint64_t make_thrower(void)
{
	uint64_t code = make_blob(8192, METHOD_NAME, 4, "", 0);

	memcpy((void *)(uintptr_t)(code + 100), "\xe8\x00\x00\x00\x00", 5);
	return code + 105;
}

static void test_exception_blob(void **state)
{
	static const uint8_t code[] = {0x52, 0x48, 0x83, 0xec, 8, 0x48, 0x89, 0x2c, 0x24};
	uint64_t stub = make_blob(2048, OTHER_NAME, 2, "", 0), to = make_thrower();

	memcpy((void *)(uintptr_t)stub, code, sizeof(code));
	memcpy((void *)(uintptr_t)(stub + 90), "\x48\x83\xc4\x08\x5a\x41\xff\xe0", 8);
	memset(java.regs, 0, sizeof(java.regs));
	SP[2] = to; /* of an earlier call */
	SP[-1] = to;
	SP[-2] = CALLER_FP;
	expect_caller(cursor_at(stub + 50, SP - 2, 0, 0), to, SP, CALLER_FP);
	expect_caller(cursor_at(stub + 90, SP - 2, CALLER_FP, 0), to, SP, CALLER_FP);
	expect_caller(cursor_at(stub + 94, SP - 1, CALLER_FP, 0), to, SP, CALLER_FP);
	java.regs[DUET_X86_RDX] = to;
	expect_caller(cursor_at(stub, SP, CALLER_FP, 0), to, SP, CALLER_FP);
	expect_caller(cursor_at(stub + 1, SP - 1, CALLER_FP, 0), to, SP, CALLER_FP);
	expect_caller(cursor_at(stub + 5, SP - 2, CALLER_FP, 0), to, SP, CALLER_FP);
	expect_caller(cursor_at(stub + 95, SP, CALLER_FP, 0), to, SP, CALLER_FP);
}

/* pop %rdx; jmp *%r10, C2's; pop %rcx; jmp *%rcx, C1's; pop %rbp; jmp *%r10. */
static void test_stub_that_jumps_on(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 4, "", 0), to = make_thrower();

	memcpy((void *)(uintptr_t)stub, "\x55\x48\x8b\xec", 4);
	memcpy((void *)(uintptr_t)(stub + 60), "\x5a\x41\xff\xe2\x59\xff\xe1\x5d\x41\xff\xe2", 11);
	memset(java.regs, 0, sizeof(java.regs));
	SP[0] = to;
	expect_caller(cursor_at(stub + 60, SP, CALLER_FP, 0), to, SP + 1, CALLER_FP);
	expect_caller(cursor_at(stub + 64, SP, CALLER_FP, 0), to, SP + 1, CALLER_FP);
	expect_caller(cursor_at(stub + 68, SP, CALLER_FP, 0), to, SP + 1, CALLER_FP);
	java.regs[DUET_X86_RDX] = to;
	expect_caller(cursor_at(stub + 61, SP + 1, CALLER_FP, 0), to, SP + 1, CALLER_FP);
	java.regs[DUET_X86_RCX] = to + 2;
	expect_caller(cursor_at(stub + 65, SP + 1, CALLER_FP, 0), to + 2, SP + 1, CALLER_FP);
}

/*
 * A stub with its whole frame that jumps. On top of the stack is the address of a method that is not its caller. To
 * find that out, the method's code and blob are looked up; these must not be used as the stub's.
 */
static void test_stub_that_jumps_with_its_frame(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 6, "", 0), to = make_thrower();

	memset(java.regs, 0, sizeof(java.regs));
	SP[0] = SP[1] = to;
	SP[4] = CALLER_FP;
	SP[5] = to + 40;
	*(uint8_t *)(uintptr_t)(stub + 60) = 0xe9;
	expect_caller(cursor_at(stub + 60, SP, 0, 0), to + 40, SP + 6, CALLER_FP);
	memcpy((void *)(uintptr_t)stub, "\x55\x48\x8b\xec", 4);
	*(uint8_t *)(uintptr_t)to = 0x5d; /* pop %rbp */
	expect_caller(cursor_at(stub + 60, SP, 0, 0), to + 40, SP + 6, CALLER_FP);
	SP[5] = to; /* but now it is */
	expect_caller(cursor_at(stub + 60, SP, CALLER_FP, 0), to, SP + 1, CALLER_FP);
}

/* The method has left its frame: pop %rbp; jmp. Or a word is being moved within its frame: pop (%rsp). */
static void test_method_that_throws(void **state)
{
	uint64_t method = make_blob(2048, METHOD_NAME, 4, "", 0), to = make_thrower();

	memcpy((void *)(uintptr_t)(method + 200), "\x48\x83\xc4\x10\x5d\xe9", 6);
	memcpy((void *)(uintptr_t)(method + 240), "\x48\x8f\x04\x24", 4);
	SP[0] = SP[4] = to;
	expect_caller(cursor_at(method + 205, SP, CALLER_FP, 0), to, SP + 1, CALLER_FP);
	SP[-1] = CALLER_FP;
	expect_caller(cursor_at(method + 240, SP - 4, 0, 0), to, SP + 1, CALLER_FP);
}

#define THROWN 512 /* from the interpreter's start */

/* leave; pop %rdx; mov %rbx, %rsp; push %rax; push %rdx; call; mov %rax, %rbx; pop %rdx; pop %rax; jmp *%rbx */
static void test_interpreter_is_left_by_an_exception(void **state)
{
	static const uint8_t code[] = {0xc9, 0x5a, 0x48, 0x8b, 0xe3, 0x90, 0x50, 0x52, 0xe8, 0,    0,
				       0,    0,	   0x48, 0x8b, 0xd8, 0x5a, 0x58, 0xff, 0xe3};
	uint64_t low = java.layout.interpreter_low + THROWN, to = make_thrower(), *sender = SP + 10;
	struct duet_method_entry found;

	assert_true(duet_frame_find_thrown(code, sizeof(code), &found));
	assert_int_equal(found.begin, 1);
	assert_int_equal(found.pop, 1);
	assert_int_equal(found.push, 6);
	assert_int_equal(found.end, sizeof(code));
	assert_false(duet_frame_find_thrown(code, sizeof(code) - 1, &found));
	java.layout.thrown = (struct duet_method_entry){
		.begin = THROWN + 1, .pop = THROWN + 1, .push = THROWN + 6, .end = THROWN + sizeof(code)};
	java.regs[DUET_X86_RBX] = address_of(sender);
	SP[0] = to;
	expect_caller(cursor_at(low + 1, SP, CALLER_FP, 0), to, sender, CALLER_FP);
	java.regs[DUET_X86_RDX] = to;
	expect_caller(cursor_at(low + 2, SP + 1, CALLER_FP, 0), to, sender, CALLER_FP);
	expect_caller(cursor_at(low + 5, sender, CALLER_FP, 0), to, sender, CALLER_FP);
	expect_caller(cursor_at(low + 6, sender, CALLER_FP, 0), to, sender, CALLER_FP);
	expect_caller(cursor_at(low + 7, sender - 1, CALLER_FP, 0), to, sender, CALLER_FP);
	expect_caller(cursor_at(low + sizeof(code) - 3, sender - 1, CALLER_FP, 0), to, sender, CALLER_FP);
	expect_caller(cursor_at(low + sizeof(code) - 2, sender, CALLER_FP, 0), to, sender, CALLER_FP);
	java.regs[DUET_X86_RDX] = 0;
	sender[-2] = to;
	expect_caller(cursor_at(low + 8, sender - 2, CALLER_FP, 0), to, sender, CALLER_FP);
	expect_caller(cursor_at(low + 13, sender - 2, CALLER_FP, 1), to, sender, CALLER_FP);
	sender[-2] = NATIVE_PC;
	expect_end(cursor_at(low + 13, sender - 2, CALLER_FP, 1), DUET_WALK_LEAF);
}

/* An adapter that is saving registers: r13 leads to the return address. Or a word of an earlier call is on top. */
static void test_adapter_that_saves(void **state)
{
	uint64_t adapter = make_blob(16384, ADAPTER_NAME, 0, "", 0) + 32, to = make_thrower();

	java.layout.adapter_name = ADAPTER_NAME;
	memset(java.regs, 0, sizeof(java.regs));
	SP[0] = SP[4] = to;
	java.regs[DUET_X86_R13] = address_of(SP);
	expect_caller(cursor_at(adapter, SP - 20, CALLER_FP, 0), to, SP + 1, CALLER_FP);
	java.regs[DUET_X86_R13] = address_of(SP + 1);
	java.regs[DUET_X86_RAX] = to;
	SP[-6] = java.layout.call_stub_return;
	expect_caller(cursor_at(adapter, SP - 6, CALLER_FP, 0), to, SP + 1, CALLER_FP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_exception_blob),
		CASE(test_stub_that_jumps_on),
		CASE(test_stub_that_jumps_with_its_frame),
		CASE(test_method_that_throws),
		CASE(test_interpreter_is_left_by_an_exception),
		CASE(test_adapter_that_saves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
