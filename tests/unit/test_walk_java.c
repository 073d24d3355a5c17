/* SPDX-License-Identifier: MIT */
/* Compiled code, stubs and the call stub. */
#include "fixtures/walk_vm.h"

/* ---- compiled code ---- */

/* mov %eax,-0x14000(%rsp); push %rbp; sub $0x20,%rsp; then at 40: add $0x20,%rsp; pop %rbp; cmp poll; ja; ret */
static const char method_code[] = "\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x83\xec\x20\x90\x90\x90\x90\x90\x90\x90\x90"
				  "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
				  "\x48\x83\xc4\x20\x5d\x49\x3b\xa7\x50\x03\x00\x00\x0f\x87\x01\x00\x00\x00\xc3";
#define FRAME_WORDS_OF_METHOD 6

static void test_compiled_caller(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	uint64_t caller = make_blob(8192, METHOD_NAME, 4, method_code, sizeof(method_code)) + 100;

	SP[4] = CALLER_FP;
	SP[5] = caller;
	expect_caller(cursor_at(code + 100, SP, 7, 1), caller, SP + 6, CALLER_FP);
	assert_false(java.has_found);
}

/* Where a method calls itself, its blob is looked up once; that of the next caller again. */
static void test_compiled_recursion(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code)) + 100;
	uint64_t caller = make_blob(8192, METHOD_NAME, 4, method_code, sizeof(method_code)) + 100;
	struct unwind_cursor cursor = cursor_at(code, SP, 7, 1);

	SP[5] = code;
	SP[11] = caller;
	SP[15] = code;
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_NONE);
	memset(vm.segmap + (2048 >> SEGMENT_SHIFT), JAVA_SEGMENT_FREE, BLOB_ROOM >> SEGMENT_SHIFT);
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_NONE);
	assert_int_equal(cursor.pc, caller);
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_NONE);
	assert_int_equal(cursor.pc, code);
	assert_int_equal(cursor.sp, address_of(SP + 16));
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_NO_BLOB);
}

/* At every instruction, the same caller. sp is given in words below the slot of the return address. */
static void test_compiled_leaf(void **state)
{
	static const struct {
		uint32_t offset;
		int words;
	} steps[] = {{0, 0}, {7, 0}, {8, 1}, {12, 5}, {20, 5}, {40, 5}, {44, 1}, {45, 0}, {52, 0}, {58, 0}};
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	uint64_t caller = make_blob(8192, METHOD_NAME, 4, method_code, sizeof(method_code)) + 100;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const uint64_t *sp = SP - steps[i].words;

		memset(vm.stack, 0, sizeof(vm.stack));
		SP[0] = caller;
		SP[-1] = steps[i].words ? CALLER_FP : 0;
		expect_caller(cursor_at(code + 16 + steps[i].offset, sp, steps[i].words ? 7 : CALLER_FP, 0), caller,
			      SP + 1, CALLER_FP);
	}
	SP[0] = caller;
	expect_caller(cursor_at(code + 4, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP); /* inline cache check */
	SP[0] = NATIVE_PC; /* native code does not call compiled code */
	expect_end(cursor_at(code + 4, SP, CALLER_FP, 0), DUET_WALK_LEAF);
}

/* C2 without a stack bang: sub $0x28,%rsp; mov %rbp,0x20(%rsp) */
static void test_leaf_whose_fp_is_not_saved_yet(void **state)
{
	static const char bytes[] = "\x48\x81\xec\x28\x00\x00\x00\x48\x89\x6c\x24\x20";
	uint64_t code = make_blob(2048, METHOD_NAME, 6, bytes, sizeof(bytes));
	uint64_t caller = make_blob(8192, METHOD_NAME, 4, bytes, sizeof(bytes)) + 100;

	SP[0] = caller;
	SP[-1] = 0xdead;
	expect_caller(cursor_at(code + 16, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(code + 23, SP - 5, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	SP[-1] = CALLER_FP;
	expect_caller(cursor_at(code + 28, SP - 5, 7, 0), caller, SP + 1, CALLER_FP);
}

static void test_deoptimized(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	uint64_t handler = address_of(heap_at(2048)) + 1536 + 4;

	SP[1] = code + 100; /* as ORIGINAL_PC says */
	SP[4] = CALLER_FP;
	SP[5] = code + 60;
	expect_caller(cursor_at(handler, SP, 7, 1), code + 60, SP + 6, CALLER_FP);
	assert_int_equal(java.pc, code + 100);
	SP[1] = NATIVE_PC; /* not a pc of this method: then the handler's is all there is */
	expect_caller(cursor_at(handler, SP, 7, 1), code + 60, SP + 6, CALLER_FP);
	assert_int_equal(java.pc, handler);
	expect_end(cursor_at(handler, SP, 7, 0), DUET_WALK_LEAF);
}

/* ---- stubs ---- */

/* A method at 8192 whose call at +100 goes to `target`; returns the return address. */
static uint64_t make_call(uint64_t target)
{
	uint64_t code = make_blob(8192, METHOD_NAME, 4, method_code, sizeof(method_code));
	int32_t distance = (int32_t)(target - (code + 100));

	memcpy((void *)(uintptr_t)(code + 95), "\xe8", 1);
	memcpy((void *)(uintptr_t)(code + 96), &distance, sizeof(distance));
	return code + 100;
}

/* Words that C2's string intrinsics and C1's subtype checks keep on top of the frame. */
static void test_leaf_that_has_pushed(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	uint64_t caller = make_call(code);
	int words;

	SP[4] = CALLER_FP;
	SP[5] = caller;
	for (words = 0; words <= JAVA_PUSHED_WORDS; words++)
		expect_caller(cursor_at(code + 100, SP - words, 7, 0), caller, SP + 6, CALLER_FP);
	expect_end(cursor_at(code + 100, SP - words, 7, 0), DUET_WALK_LEAF);
	SP[5] = caller + 1; /* no call is in front of it */
	expect_end(cursor_at(code + 100, SP - 1, 7, 0), DUET_WALK_LEAF);
}

/* C2's indexOf: the sp that it has kept shows where the frame is, whatever an earlier call has left in the frame. */
static void test_leaf_that_keeps_sp(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	uint64_t caller = make_call(code);

	SP[4] = CALLER_FP;
	SP[5] = caller;
	SP[2] = SP[3] = caller; /* of an earlier call */
	memcpy((void *)(uintptr_t)(code + 200), "\x48\x8b\xcc", 3);
	memcpy((void *)(uintptr_t)(code + 400), "\x48\x2b\xdf\xd1\xeb\x5c", 6);
	SP[-2] = address_of(SP);
	for (uint64_t at = 250; at <= 405; at += 5)
		expect_caller(cursor_at(code + at, SP - 2, 7, 0), caller, SP + 6, CALLER_FP);
	expect_caller(cursor_at(code + 406, SP - 2, 7, 0), caller, SP + 4, caller); /* behind it any word is a word */
	expect_caller(cursor_at(code + 150, SP - 2, 7, 0), caller, SP + 4, caller);
	SP[-2] = 0;
	java.regs[DUET_X86_RCX] = address_of(SP);
	expect_caller(cursor_at(code + 210, SP - 2, 7, 0), caller, SP + 6, CALLER_FP);
	java.regs[DUET_X86_RCX] = 0;
}

static void test_leaf_stub(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0) + 32;
	uint64_t caller = make_call(stub), other = make_call(stub) + 1;

	SP[0] = caller;
	expect_caller(cursor_at(stub, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	SP[0] = CALLER_FP; /* pushed */
	SP[1] = caller;
	*(uint8_t *)(uintptr_t)stub = 0x55;
	expect_caller(cursor_at(stub + 1, SP, 7, 0), caller, SP + 2, CALLER_FP);
	*(uint8_t *)(uintptr_t)stub = 0x57; /* push %rdi */
	expect_caller(cursor_at(stub + 1, SP, 7, 0), caller, SP + 2, 7);
	SP[0] = other; /* in a local; no call is in front of it */
	SP[1] = NATIVE_PC;
	SP[8] = CALLER_FP;
	SP[9] = caller;
	expect_caller(cursor_at(stub + 40, SP, address_of(&SP[8]), 0), caller, SP + 10, CALLER_FP);
	SP[9] = other;
	expect_end(cursor_at(stub + 40, SP, address_of(&SP[8]), 0), DUET_WALK_LEAF);
	expect_end(cursor_at(stub + 40, SP, 3, 0), DUET_WALK_LEAF);
	caller = make_call(stub + 4096); /* of another blob's stub */
	SP[0] = caller;
	expect_end(cursor_at(stub, SP, 3, 0), DUET_WALK_LEAF);
}

/*
 * A stub that has left its frame: the call went to a later stub, which has jumped here. Or it has pushed words without
 * a frame.
 */
static void test_leaf_stub_without_frame_pointer(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0) + 32;
	uint64_t caller = make_call(stub + 100);

	SP[0] = caller;
	SP[4] = caller; /* the caller's own caller */
	expect_caller(cursor_at(stub + 60, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	SP[0] = NATIVE_PC;
	SP[4] = 0;
	SP[3] = caller; /* of an earlier call: no caller's frame is behind it */
	SP[8] = caller;
	SP[12] = caller;
	expect_caller(cursor_at(stub + 40, SP, CALLER_FP, 0), caller, SP + 9, CALLER_FP);
	memcpy((void *)(uintptr_t)caller, "\x5b\x41\x58", 3); /* pop %rbx; pop %r8: had been pushed for the stub */
	SP[12] = caller; /* in the frame, of an earlier call */
	SP[14] = caller;
	expect_caller(cursor_at(stub + 40, SP, CALLER_FP, 0), caller, SP + 9, CALLER_FP);
	SP[13] = CALLER_FP;
	expect_caller(cursor_at(caller, SP + 9, 7, 1), caller, SP + 15, CALLER_FP);
	SP[12] = caller;
	SP[11] = CALLER_FP;
	expect_caller(cursor_at(caller, SP + 9, 7, 1), caller, SP + 13, CALLER_FP); /* not below a stub */
	SP[8] = SP[12] = SP[14] = NATIVE_PC;
	SP[20] = caller; /* as SHA-512's */
	SP[26] = caller;
	expect_caller(cursor_at(stub + 40, SP, CALLER_FP, 0), caller, SP + 21, CALLER_FP);
	SP[20] = SP[26] = 0;
	SP[96] = caller; /* too far up */
	SP[102] = caller;
	expect_end(cursor_at(stub + 40, SP, CALLER_FP, 0), DUET_WALK_LEAF);
}

static void test_stub_with_a_frame(void **state)
{
	/* leave; ret at 64 of the code, frame complete at 32 */
	uint64_t stub = make_blob(2048, OTHER_NAME, 4, "", 0);
	uint64_t caller = make_call(stub);

	memcpy((void *)(uintptr_t)(stub + 64), "\x5d\xc3", 2);
	SP[2] = CALLER_FP;
	SP[3] = caller;
	expect_caller(cursor_at(stub + 50, SP, 7, 1), caller, SP + 4, CALLER_FP);
	expect_caller(cursor_at(stub + 50, SP, 7, 0), caller, SP + 4, CALLER_FP);
	expect_caller(cursor_at(stub + 64, SP + 2, 7, 0), caller, SP + 4, CALLER_FP);
	expect_caller(cursor_at(stub + 65, SP + 3, CALLER_FP, 0), caller, SP + 4, CALLER_FP);
	expect_caller(cursor_at(stub, SP + 3, CALLER_FP, 0), caller, SP + 4, CALLER_FP);
	expect_end(cursor_at(stub + 20, SP, 7, 0), DUET_WALK_LEAF);
}

#define ADAPTER_NAME 0x555ull
#define VTABLE_NAME 0x666ull

/* Vtable stubs never have a frame. */
static void test_frameless(void **state)
{
	uint64_t stub = make_blob(2048, VTABLE_NAME, 0, "", 0) + 32;
	uint64_t caller = make_call(HEAP_BYTES); /* of anything */

	SP[0] = caller;
	expect_end(cursor_at(stub, SP, CALLER_FP, 0), DUET_WALK_LEAF);
	java.layout.frameless_names[2] = VTABLE_NAME;
	expect_caller(cursor_at(stub, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
}

static uint64_t make_adapter(void)
{
	java.layout.adapter_name = ADAPTER_NAME;
	memset(java.regs, 0, sizeof(java.regs));
	return make_blob(16384, ADAPTER_NAME, 0, "", 0) + 32;
}

/* To the interpreter: the return address goes from the stack to rax, sp to r13 and down, the address there. */
static void test_adapter_from_compiled_code(void **state)
{
	uint64_t adapter = make_adapter(), caller = make_call(HEAP_BYTES);

	SP[0] = caller;
	SP[4] = caller; /* of the caller, whose frame has four words */
	expect_caller(cursor_at(adapter, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	java.regs[DUET_X86_RAX] = caller;
	expect_caller(cursor_at(adapter, SP + 1, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	java.regs[DUET_X86_R13] = address_of(SP + 1);
	expect_caller(cursor_at(adapter, SP - 3, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	java.regs[DUET_X86_RAX] = 0;
	expect_end(cursor_at(adapter, SP - 3, CALLER_FP, 0), DUET_WALK_LEAF);
	SP[-3] = caller;
	expect_caller(cursor_at(adapter, SP - 3, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	SP[4] = NATIVE_PC; /* no frame ends so: these are words of earlier calls */
	expect_end(cursor_at(adapter, SP - 3, CALLER_FP, 0), DUET_WALK_LEAF);
	java.regs[DUET_X86_R13] = 0; /* nothing has been moved */
	expect_caller(cursor_at(adapter, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	SP[0] = caller + 1; /* behind no call */
	expect_end(cursor_at(adapter, SP, CALLER_FP, 0), DUET_WALK_LEAF);
}

/* The caller has only fp on its frame, which it pops after the call: that is no operand. */
static void test_adapter_from_the_smallest_frame(void **state)
{
	static const uint8_t code[] = {0xe8, 0, 0, 0, 0, 0x5d, 0xc3};
	uint64_t adapter = make_adapter(), caller = make_blob(2048, METHOD_NAME, 2, "", 0) + 100;

	memcpy((void *)(uintptr_t)(caller - 5), code, sizeof(code));
	SP[0] = caller;
	SP[2] = make_call(HEAP_BYTES);
	SP[3] = NATIVE_PC;
	java.regs[DUET_X86_R13] = address_of(SP + 1);
	expect_caller(cursor_at(adapter, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	java.regs[DUET_X86_R13] = 0;
}

/* A call of an earlier caller, with a frame as large, has left its sp in r13. */
static void test_adapter_with_a_stale_sender(void **state)
{
	uint64_t adapter = make_adapter(), caller = make_call(HEAP_BYTES);

	memset(java.regs, 0, sizeof(java.regs));
	SP[0] = SP[4] = caller;
	SP[19] = SP[23] = caller;
	java.regs[DUET_X86_R13] = address_of(SP + 20);
	expect_caller(cursor_at(adapter, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
}

/* From the interpreter: the return address is in rax while sp is aligned. */
static void test_adapter_to_compiled_code(void **state)
{
	uint64_t adapter = make_adapter();

	SP[0] = INTERPRETER; /* whose frame does not begin at sp */
	expect_caller(cursor_at(adapter, SP, CALLER_FP, 0), INTERPRETER, SP + 1, CALLER_FP);
	java.regs[DUET_X86_RAX] = INTERPRETER;
	expect_caller(cursor_at(adapter, SP - 2, CALLER_FP, 0), INTERPRETER, SP - 2, CALLER_FP);
}

/*
 * In native code that directs the caller to code compiled since: the general registers lie above the floating point
 * ones.
 */
static void test_adapter_that_has_called(void **state)
{
	uint64_t adapter = make_adapter(), caller = make_call(HEAP_BYTES), *saved = SP - 48;

	for (uint64_t *sp = saved - 512 / 8; sp; sp = sp == saved - 512 / 8 ? saved - 2688 / 8 : NULL) {
		saved[2] = address_of(SP); /* r13 */
		saved[15] = caller; /* rax */
		SP[0] = caller;
		expect_caller(cursor_at(adapter, sp, CALLER_FP, 1), caller, SP + 1, CALLER_FP);
		expect_caller(cursor_at(adapter, sp, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
		SP[0] = caller + 1;
		expect_end(cursor_at(adapter, sp, CALLER_FP, 1), DUET_WALK_NO_FRAME);
		saved[15] = caller + 1; /* behind no call */
		expect_end(cursor_at(adapter, sp, CALLER_FP, 1), DUET_WALK_NO_FRAME);
		saved[2] = address_of(sp - 1);
		expect_end(cursor_at(adapter, sp, CALLER_FP, 1), DUET_WALK_NO_FRAME);
	}
}

/* The barrier at a method's entry has -1 below its return address. */
static void test_entry_barrier(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0);
	uint64_t caller = make_call(stub);

	SP[8] = CALLER_FP;
	SP[9] = ~0ull;
	SP[10] = caller;
	expect_caller(cursor_at(stub + 50, SP, address_of(&SP[8]), 1), caller, SP + 11, CALLER_FP);
	SP[10] = caller + 1;
	expect_end(cursor_at(stub + 50, SP, address_of(&SP[8]), 1), DUET_WALK_NO_FRAME);
}

/* A method calls out of a load. Below its frame are the registers that it restores before it jumps back. */
static void test_barrier_of_a_method(void **state)
{
	static const char small[] = "\x48\x8b\x44\x24\x08\xc5\xf9\x6f\x04\x24\x48\x83\xc4\x30\xeb\x10";
	static const char large[] = "\x48\x8b\x44\x24\x08\x48\x81\xc4\x30\x00\x00\x00\xe9\x00\x01\x00\x00";
	static const char end[] = "\x48\x83\xc4\x30\x5d\xc3"; /* of the method */
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code)) + 200;
	uint64_t caller = make_call(code);

	SP[5] = NATIVE_PC;
	SP[10] = CALLER_FP;
	SP[11] = caller;
	memcpy((void *)(uintptr_t)code, small, sizeof(small));
	expect_caller(cursor_at(code, SP, 7, 1), caller, SP + 12, CALLER_FP);
	memcpy((void *)(uintptr_t)code, large, sizeof(large));
	expect_caller(cursor_at(code, SP, 7, 1), caller, SP + 12, CALLER_FP);
	SP[11] = caller + 1;
	expect_end(cursor_at(code, SP, 7, 1), DUET_WALK_NO_FRAME);
	SP[11] = caller;
	memset((void *)(uintptr_t)code, 0x90, sizeof(large));
	memcpy((void *)(uintptr_t)code, end, sizeof(end));
	expect_end(cursor_at(code, SP, 7, 1), DUET_WALK_NO_FRAME);
}

/* C1's stubs do not say how large their frame is, but keep a frame pointer. */
static void test_stub_of_unknown_size(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, UINT32_MAX, "", 0);
	uint64_t caller = make_call(stub);

	SP[8] = CALLER_FP;
	SP[9] = caller;
	expect_caller(cursor_at(stub + 50, SP, address_of(&SP[8]), 1), caller, SP + 10, CALLER_FP);
	expect_caller(cursor_at(stub + 50, SP, address_of(&SP[8]), 0), caller, SP + 10, CALLER_FP);
	SP[9] = caller + 1;
	expect_end(cursor_at(stub + 50, SP, address_of(&SP[8]), 1), DUET_WALK_NO_FRAME);
}

/* push %rbp; mov %rsp, %rbp; sub $0x20, %rsp; the native call at 48; leave; cmpq $0, 8(%r15); jne; ret at 64. */
static void test_native_wrapper(void **state)
{
	static const char prologue[] = "\x55\x48\x8b\xec\x48\x83\xec\x20";
	static const char epilogue[] = "\xc9\x49\x81\x7f\x08\x00\x00\x00\x00\x0f\x85\x01\x00\x00\x00\xc3";
	uint64_t code = make_blob(2048, METHOD_NAME + 1, FRAME_WORDS_OF_METHOD, prologue, sizeof(prologue) - 1);
	uint64_t caller = make_blob(8192, METHOD_NAME, 4, method_code, sizeof(method_code)) + 100;
	uint64_t fp = address_of(&SP[-1]);

	memcpy((void *)(uintptr_t)(code + 64), epilogue, sizeof(epilogue) - 1);
	SP[0] = caller;
	SP[-1] = CALLER_FP;
	expect_caller(cursor_at(code + 16, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(code + 17, SP - 1, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(code + 20, SP - 1, fp, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(code + 24, SP - 5, fp, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(code + 48, SP - 7, fp, 0), caller, SP + 1, CALLER_FP); /* arguments pushed */
	expect_caller(cursor_at(code + 64, SP - 5, fp, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(code + 65, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(code + 79, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
}

static void test_return_into_a_stub_without_frame(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0);

	expect_end(cursor_at(stub + 50, SP, 7, 1), DUET_WALK_NO_FRAME);
}

/* At `return_address`, the bytes of a call through a pointer in front of it: native code, where it can be read. */
static uint64_t make_native_call(void)
{
	memcpy(&vm.data[8], "\x90\x90\x90\x90\xff\x10", 6); /* call *(%rax) */
	return address_of(&vm.data[8]) + 6;
}

/* push %rbp; mov %rsp, %rbp; ... pop %rbp; ret: the call stub, which native code calls, at each instruction. */
static void test_leaf_call_stub(void **state)
{
	static const char begin[] = "\x55\x48\x8b\xec\x90\x90\x5d\xc3";
	uint64_t stub = make_blob(60416, OTHER_NAME, 0, "", 0), caller = make_native_call(), fp = address_of(SP);
	uint64_t code = java.layout.call_stub_return - 100;

	assert_in_range(code, stub, stub + 1024);
	memcpy((void *)(uintptr_t)code, begin, sizeof(begin) - 1);
	SP[0] = CALLER_FP;
	SP[1] = caller;
	expect_caller(cursor_at(code, SP + 1, CALLER_FP, 0), caller, SP + 2, CALLER_FP);
	expect_caller(cursor_at(code + 1, SP, CALLER_FP, 0), caller, SP + 2, CALLER_FP);
	expect_caller(cursor_at(code + 4, SP, fp, 0), caller, SP + 2, CALLER_FP);
	expect_caller(cursor_at(code + 5, SP - 12, fp, 0), caller, SP + 2, CALLER_FP);
	expect_caller(cursor_at(code + 6, SP, fp, 0), caller, SP + 2, CALLER_FP);
	expect_caller(cursor_at(code + 7, SP + 1, CALLER_FP, 0), caller, SP + 2, CALLER_FP);
	SP[1] = NATIVE_PC; /* behind no call */
	expect_end(cursor_at(code + 5, SP - 12, fp, 0), DUET_WALK_LEAF);
}

/* Java calls native code that jumps to a stub, or native code calls it: JDK 25's fmod. */
static void test_leaf_stub_entered_from_native_code(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0) + 32, native = make_native_call();
	uint64_t caller = make_call(NATIVE_PC);

	SP[0] = CALLER_FP;
	SP[1] = caller;
	memcpy((void *)(uintptr_t)(caller - 13), "\x49\xba\x60\x45\x23\x01\0\0\0\0\x41\xff\xd2", 13);
	expect_caller(cursor_at(stub + 40, SP, address_of(SP), 0), caller, SP + 2, CALLER_FP);
	SP[1] = native;
	expect_caller(cursor_at(stub + 40, SP, address_of(SP), 0), native, SP + 2, CALLER_FP);
	expect_end(cursor_at(stub + 40, SP - 8, address_of(SP), 0), DUET_WALK_LEAF); /* of another frame */
}

/* A stub of an up-call begins with a frame pointer and its frame; its code has called. */
static void test_return_into_a_stub_of_an_upcall(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0), native = make_native_call();

	memcpy((void *)(uintptr_t)stub, "\x55\x48\x8b\xec\x48\x81\xec", 7);
	SP[30] = CALLER_FP;
	SP[31] = native;
	expect_caller(cursor_at(stub + 80, SP, address_of(&SP[30]), 1), native, SP + 32, CALLER_FP);
	expect_caller(cursor_at(stub + 80, SP, address_of(&SP[30]), 0), native, SP + 32, CALLER_FP);
	SP[31] = native - 1;
	expect_end(cursor_at(stub + 80, SP, address_of(&SP[30]), 1), DUET_WALK_NO_FRAME);
}

/* An exception is passed to the caller of a method that has left its frame, by forward_exception, which has called. */
static void test_forwarded_exception(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0), caller = make_call(HEAP_BYTES);

	SP[0] = caller;
	SP[4] = caller;
	expect_caller(cursor_at(stub + 50, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(stub + 50, SP, CALLER_FP, 1), caller, SP + 1, CALLER_FP);
	memcpy((void *)(uintptr_t)(stub + 50), "\x48\x83\xc4\x08", 4); /* add $8, %rsp */
	expect_caller(cursor_at(stub + 50, SP - 1, CALLER_FP, 1), caller, SP + 1, CALLER_FP);
	SP[0] = 0;
	java.regs[DUET_X86_RDX] = caller; /* popped */
	expect_caller(cursor_at(stub + 60, SP + 1, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	java.regs[DUET_X86_RDX] = caller + 1; /* what has thrown is no call */
	expect_caller(cursor_at(stub + 60, SP + 1, CALLER_FP, 0), caller + 1, SP + 1, CALLER_FP);
	SP[4] = caller + 1; /* its frame does not end at a return address */
	expect_end(cursor_at(stub + 60, SP + 1, CALLER_FP, 0), DUET_WALK_LEAF);
}

/* C1's: push %rbp; mov %rsp, %rbp, then registers one by one. And what another has jumped to with its frame. */
static void test_stub_with_a_frame_and_its_pointer(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 20, "", 0), caller = make_call(stub);

	memcpy((void *)(uintptr_t)stub, "\x55\x48\x8b\xec", 4);
	SP[0] = CALLER_FP;
	SP[1] = caller;
	SP[5] = caller;
	for (int words = 0; words <= 18; words++)
		expect_caller(cursor_at(stub + 50, SP - words, address_of(SP), 0), caller, SP + 2, CALLER_FP);
	stub = make_blob(2048, OTHER_NAME, 20, "", 0);
	expect_caller(cursor_at(stub + 18, SP - 18, address_of(SP), 0), caller, SP + 2, CALLER_FP);
	expect_caller(cursor_at(stub + 18, SP - 17, address_of(SP), 0), caller, SP + 2, CALLER_FP);
	expect_end(cursor_at(stub + 18, SP - 19, address_of(SP), 0), DUET_WALK_LEAF);
}

/* The number to be converted lies on the caller's frame, and the result is popped: d2l_fixup, which pushes five. */
static void test_leaf_stub_with_one_operand(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0) + 32, caller = make_call(stub);

	SP[5] = caller;
	SP[10] = caller;
	memcpy((void *)(uintptr_t)caller, "\x41\x5b\x90", 3); /* pop %r11 */
	expect_caller(cursor_at(stub + 40, SP, CALLER_FP, 0), caller, SP + 6, CALLER_FP);
	memcpy((void *)(uintptr_t)caller, "\x5d\x90", 2); /* C2 has other things in %rbp */
	expect_caller(cursor_at(stub + 40, SP, CALLER_FP, 0), caller, SP + 6, CALLER_FP);
}

/* ---- virtual threads ---- */

#define CONTINUATION_NAME 0x888ull
#define ENTRY_WORDS 10

/* An address in the stubs, and one in Continuation.enterSpecial. */
static uint64_t make_continuation(uint64_t *ret_special)
{
	*ret_special = make_blob(8192, METHOD_NAME + 1, ENTRY_WORDS, method_code, sizeof(method_code)) + 100;
	vm.data[0] = *ret_special;
	java.layout.continuation_name = CONTINUATION_NAME;
	java.layout.enter_special = address_of(vm.data);
	return make_blob(2048, CONTINUATION_NAME, 0, method_code, sizeof(method_code)) + 64;
}

/* The next frame is the entry's. Below it are the arguments of the frame that is left, if it has any. */
static void test_frames_on_the_heap(void **state)
{
	uint64_t special, stub = make_continuation(&special);

	for (int arguments = 0; arguments < 2 * JAVA_ENTRY_STEPS; arguments++) {
		uint64_t *entry = SP + (arguments + 1) / 2 * 2;
		struct unwind_cursor cursor = cursor_at(stub, entry - arguments, 7, 1);

		memset(SP - 16, 0x7f, 64 * sizeof(*SP));
		entry[ENTRY_WORDS - 1] = INTERPRETER;
		assert_int_equal(first_step(&cursor), DUET_WALK_NONE);
		assert_int_equal(cursor.pc, special);
		assert_int_equal(cursor.sp, address_of(entry));
		assert_int_equal(java.code_id, DUET_ID_ON_HEAP);
		assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_NONE);
		assert_int_equal(cursor.pc, INTERPRETER);
		assert_int_equal(java.code_id, 0);
	}
}

static void test_what_is_no_continuation(void **state)
{
	uint64_t special, stub = make_continuation(&special);

	SP[ENTRY_WORDS - 1] = INTERPRETER;
	memcpy((void *)(uintptr_t)(stub - 5), "\xe8\0\0\0", 5); /* the stub has called */
	expect_end(cursor_at(stub, SP, 7, 1), DUET_WALK_NO_FRAME);
	memset((void *)(uintptr_t)(stub - 5), 0x90, 5);
	SP[ENTRY_WORDS - 1] = 0;
	expect_end(cursor_at(stub, SP, 7, 1), DUET_WALK_NO_FRAME);
	expect_end(cursor_at(stub, (const uint64_t *)(&vm + 1) - 4, 7, 1), DUET_WALK_UNREADABLE);
	SP[ENTRY_WORDS - 1] = special; /* code, but no call's */
	expect_end(cursor_at(stub, SP, 7, 1), DUET_WALK_NO_FRAME);
	SP[ENTRY_WORDS - 1] = INTERPRETER;
	vm.data[0] = 0; /* the JVM has not had one */
	expect_end(cursor_at(stub, SP, 7, 1), DUET_WALK_NO_FRAME);
	vm.data[0] = stub; /* no wrapper of a native method */
	expect_end(cursor_at(stub, SP, 7, 1), DUET_WALK_NO_FRAME);
	vm.data[0] = special;
	java.layout.continuation_name = 0;
	expect_end(cursor_at(stub, SP, 7, 1), DUET_WALK_NO_FRAME);
}

/* ---- and the rest ---- */

static void test_call_stub(void **state)
{
	uint64_t *fp = SP + 20;

	fp[0] = CALLER_FP;
	fp[1] = NATIVE_PC;
	expect_caller(cursor_at(java.layout.call_stub_return, SP, address_of(fp), 1), NATIVE_PC, fp + 2, CALLER_FP);
	assert_int_equal(java.thread_at, address_of(fp + 3));
	expect_end(cursor_at(java.layout.call_stub_return, SP, address_of(SP - 2), 1), DUET_WALK_BAD_FP);
}

static void test_hostile_heap(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	struct unwind_cursor cursor = cursor_at(code + 100, SP, 7, 1);
	uint8_t *block = heap_at(2048);

	SP[5] = code + 60;
	memcpy(block + FRAME_WORDS, &(uint32_t){UINT32_MAX - 1}, 4);
	expect_end(cursor, DUET_WALK_NO_BLOB);
	memcpy(block + FRAME_WORDS, &(uint32_t){60000}, 4);
	expect_end(cursor, DUET_WALK_UNREADABLE);
	memcpy(block + BYTES, &(uint32_t){64}, 4); /* ends before pc */
	expect_end(cursor, DUET_WALK_NO_BLOB);
	block[USED] = 0;
	expect_end(cursor, DUET_WALK_NO_BLOB);
	memset(vm.segmap, 1, sizeof(vm.segmap)); /* too many hops */
	expect_end(cursor, DUET_WALK_NO_BLOB);
	memset(vm.segmap, 0xfe, sizeof(vm.segmap)); /* out of the map */
	expect_end(cursor, DUET_WALK_NO_BLOB);
	memset(vm.segmap, JAVA_SEGMENT_FREE, sizeof(vm.segmap));
	expect_end(cursor, DUET_WALK_NO_BLOB);
	assert_false(walk_java_owns(&java, address_of(vm.heap) - 1));
	assert_false(walk_java_owns(&java, address_of(vm.heap) + HEAP_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_compiled_caller),
		CASE(test_compiled_recursion),
		CASE(test_compiled_leaf),
		CASE(test_leaf_whose_fp_is_not_saved_yet),
		CASE(test_leaf_that_has_pushed),
		CASE(test_deoptimized),
		CASE(test_leaf_that_keeps_sp),
		CASE(test_leaf_stub),
		CASE(test_leaf_stub_without_frame_pointer),
		CASE(test_stub_with_a_frame),
		CASE(test_frameless),
		CASE(test_adapter_from_compiled_code),
		CASE(test_adapter_from_the_smallest_frame),
		CASE(test_adapter_with_a_stale_sender),
		CASE(test_adapter_to_compiled_code),
		CASE(test_adapter_that_has_called),
		CASE(test_entry_barrier),
		CASE(test_barrier_of_a_method),
		CASE(test_stub_of_unknown_size),
		CASE(test_native_wrapper),
		CASE(test_return_into_a_stub_without_frame),
		CASE(test_leaf_call_stub),
		CASE(test_leaf_stub_entered_from_native_code),
		CASE(test_return_into_a_stub_of_an_upcall),
		CASE(test_forwarded_exception),
		CASE(test_stub_with_a_frame_and_its_pointer),
		CASE(test_leaf_stub_with_one_operand),
		CASE(test_frames_on_the_heap),
		CASE(test_what_is_no_continuation),
		CASE(test_call_stub),
		CASE(test_hostile_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
