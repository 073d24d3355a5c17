/* SPDX-License-Identifier: MIT */
/* Frames of the interpreter, also while they are built or removed. */
#include "fixtures/walk_vm.h"

/* A frame of that method at `fp`, called from the interpreter again; byte code `at`. */
static void make_frame(uint64_t *fp, uint32_t at)
{
	uint64_t method, constant = make_method(&method);

	memset(fp - 10, 0, 10 * sizeof(*fp));
	fp[-8] = constant + 48 + at;
	fp[-3] = method;
	fp[-1] = address_of(fp + 5);
	fp[0] = CALLER_FP;
	fp[1] = INTERPRETER;
}

static void test_interpreted(void **state)
{
	uint64_t *fp = SP + 20;

	make_frame(fp, 17);
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 1), INTERPRETER, fp + 5, CALLER_FP);
	assert_true(java.has_found);
	assert_int_equal(java.found_method, METHOD_ID);
	assert_int_equal(java.found_bci, 17);
	*(uint16_t *)((uint8_t *)(vm.data + 8) + 32) = 0; /* a native method */
	fp[-8] = 12345;
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 1), INTERPRETER, fp + 5, CALLER_FP);
	assert_int_equal(java.found_bci, DUET_BCI_NATIVE);
}

/* Where a method calls itself, it is read once. */
static void test_interpreted_recursion(void **state)
{
	uint64_t *fp = SP + 20;
	struct unwind_cursor cursor = cursor_at(INTERPRETER, SP, address_of(fp), 1);

	make_frame(fp, 17);
	make_frame(fp + 20, 20);
	make_frame(fp + 40, 23);
	fp[0] = address_of(fp + 20);
	fp[20] = address_of(fp + 40);
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_NONE);
	*(uint64_t *)(uintptr_t)(fp[17] + 8) = 1;
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_NONE);
	assert_int_equal(java.found_method, METHOD_ID);
	assert_int_equal(java.found_bci, 20);
	fp[37] += 8; /* another method */
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_BAD_INTERPRETED);
}

/* At its own instructions the interpreter has the byte code pointer in a register, which has any value elsewhere. */
static void test_interpreted_leaf(void **state)
{
	uint64_t *fp = SP + 20, method, code = make_method(&method) + 48;

	make_frame(fp, 17);
	java.regs[DUET_X86_R13] = code + 21;
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 0), INTERPRETER, fp + 5, CALLER_FP);
	assert_int_equal(java.found_bci, 21);
	java.regs[DUET_X86_R13] = code + 40;
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 0), INTERPRETER, fp + 5, CALLER_FP);
	assert_int_equal(java.found_bci, 17);
	java.regs[DUET_X86_R13] = code + 21;
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 1), INTERPRETER, fp + 5, CALLER_FP);
	assert_int_equal(java.found_bci, 17);
}

#define ENTRY (java.layout.entries_low + 256)
#define ENTRY_BYTES 512
#define POP 64 /* from the entry's start */
#define PUSH 96

/* A method's entry that is called from the interpreter, with its sp in r13, and the method in rbx. */
static uint64_t enter(const uint64_t *sender)
{
	uint64_t method, constant = make_method(&method);

	java.layout.entries[1] = (struct duet_method_entry){
		.begin = (uint32_t)(ENTRY - java.layout.interpreter_low),
		.end = (uint32_t)(ENTRY - java.layout.interpreter_low) + ENTRY_BYTES,
		.pop = (uint32_t)(ENTRY - java.layout.interpreter_low) + POP,
		.push = (uint32_t)(ENTRY - java.layout.interpreter_low) + PUSH,
	};
	java.regs[DUET_X86_RBX] = method;
	java.regs[DUET_X86_R13] = address_of(sender);
	return constant + 48;
}

/* At every instruction of an entry, the method that is entered and its caller. */
static void test_interpreter_enters(void **state)
{
	uint64_t *sender = SP + 20, *fp = SP + 10;

	enter(sender);
	sender[-1] = INTERPRETER; /* two locals are not parameters: pushed later */
	for (uint64_t at = 0; at <= POP; at += POP / 2) {
		expect_caller(cursor_at(ENTRY + at, sender - 1, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
		assert_true(java.has_found);
		assert_int_equal(java.found_method, METHOD_ID);
		assert_int_equal(java.found_bci, 0);
	}
	sender[-1] = 0;
	java.regs[DUET_X86_RAX] = INTERPRETER;
	expect_caller(cursor_at(ENTRY + POP + 1, sender, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
	expect_caller(cursor_at(ENTRY + PUSH, fp + 2, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
	java.regs[DUET_X86_RAX] = 0;
	fp[1] = INTERPRETER;
	expect_caller(cursor_at(ENTRY + PUSH + 1, fp + 1, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
	fp[0] = CALLER_FP;
	expect_caller(cursor_at(ENTRY + PUSH + 2, fp, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
}

/* Words that the entry has not pushed yet are in the registers. */
static void test_interpreter_makes_a_frame(void **state)
{
	uint64_t *sender = SP + 20, *fp = SP + 10, code = enter(sender);
	uint64_t pc = ENTRY + PUSH + 5;

	fp[0] = CALLER_FP;
	fp[1] = INTERPRETER;
	expect_caller(cursor_at(pc, fp, address_of(fp), 0), INTERPRETER, sender, CALLER_FP);
	fp[-1] = address_of(sender);
	java.regs[DUET_X86_R13] = code;
	expect_caller(cursor_at(pc + 9, fp - 2, address_of(fp), 0), INTERPRETER, sender, CALLER_FP);
	assert_int_equal(java.found_method, METHOD_ID);
	assert_int_equal(java.found_bci, 0);
	fp[-3] = java.regs[DUET_X86_RBX];
	java.regs[DUET_X86_RBX] = 0xdead;
	expect_caller(cursor_at(pc + 40, fp - 5, address_of(fp), 0), INTERPRETER, sender, CALLER_FP);
	java.regs[DUET_X86_R13] = 0xdead; /* it calls the JVM, with the frame complete */
	fp[-8] = code + 7;
	expect_caller(cursor_at(pc + 200, fp - 20, address_of(fp), 0), INTERPRETER, sender, CALLER_FP);
	assert_int_equal(java.found_bci, 7);
	expect_caller(cursor_at(pc + 200, fp - 20, address_of(fp), 1), INTERPRETER, sender, CALLER_FP);
}

static void test_what_is_no_entering(void **state)
{
	uint64_t *sender = SP + 20;

	enter(sender);
	sender[-1] = NATIVE_PC; /* native code gets here by the call stub */
	expect_end(cursor_at(ENTRY, sender - 1, CALLER_FP, 0), DUET_WALK_LEAF);
	sender[-1] = INTERPRETER;
	java.regs[DUET_X86_R13] = address_of(SP) - 8; /* below sp */
	expect_end(cursor_at(ENTRY, sender - 1, CALLER_FP, 0), DUET_WALK_LEAF);
	java.regs[DUET_X86_R13] = address_of(sender);
	java.regs[DUET_X86_RBX] = 8; /* no method */
	expect_end(cursor_at(ENTRY, sender - 1, CALLER_FP, 0), DUET_WALK_LEAF);
}

/* An entry that computes a sine needs no frame; nor does it name a method. */
static void test_interpreter_enters_without_a_frame(void **state)
{
	uint64_t *sender = SP + 20, compiled = make_blob(2048, METHOD_NAME, 4, "", 0) + 100;

	enter(sender);
	sender[-1] = INTERPRETER;
	expect_caller(cursor_at(ENTRY - 8, sender - 1, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
	assert_false(java.has_found);
	expect_caller(cursor_at(ENTRY - 8, sender - 1, CALLER_FP, 1), INTERPRETER, sender, CALLER_FP);
	sender[-1] = compiled; /* an adapter may have moved sp below its frame */
	expect_end(cursor_at(ENTRY - 8, sender - 1, CALLER_FP, 1), DUET_WALK_NO_FRAME);
}

/* pop %rcx; mov %rbx, %rsp; jmp *%rcx: behind the leave, fp is the caller's. And with registers from r8 on. */
static void test_interpreter_leaves(void **state)
{
	static const struct {
		const char *code;
		uint8_t to, sp;
		uint8_t steps[3];
	} exits[] = {
		{"\x59\x48\x8b\xe3\xff\xe1", 1, 3, {0, 1, 4}},
		{"\x58\x49\x8b\xe5\xff\xe0", 0, 13, {0, 1, 4}},
		{"\x41\x5d\x48\x8b\xe3\x41\xff\xe5", 13, 3, {0, 2, 5}},
		{"\x5f\x4c\x89\xdc\xff\xe7", 7, 11, {0, 1, 4}},
	};
	uint64_t *sender = SP + 20;

	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++) {
		uint64_t pc = INTERPRETER + 32;

		memset(java.regs, 0, sizeof(java.regs));
		memcpy((void *)(uintptr_t)pc, exits[i].code, strlen(exits[i].code));
		java.regs[exits[i].sp] = address_of(sender);
		SP[0] = INTERPRETER;
		expect_caller(cursor_at(pc + exits[i].steps[0], SP, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
		SP[0] = 0;
		java.regs[exits[i].to] = INTERPRETER;
		expect_caller(cursor_at(pc + exits[i].steps[1], SP + 1, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
		java.regs[exits[i].sp] = 0;
		expect_caller(cursor_at(pc + exits[i].steps[2], sender, CALLER_FP, 0), INTERPRETER, sender, CALLER_FP);
		java.regs[exits[i].to] = NATIVE_PC;
		expect_end(cursor_at(pc + exits[i].steps[2], sender, CALLER_FP, 0), DUET_WALK_LEAF);
	}
}

/* A signal hit the interpreter: the registers in the handler are not those of the interpreter. */
static void test_registers_of_an_interrupted_handler(void **state)
{
	uint64_t *frame = SP, *sender = SP + 60;
	struct unwind_cursor cursor = cursor_at(ENTRY, sender - 1, CALLER_FP, 0);

	enter(sender);
	frame[5 + 5] = address_of(sender); /* r13: the sixth from offset 40 */
	frame[5 + 11] = java.regs[DUET_X86_RBX];
	sender[-1] = INTERPRETER;
	memset(java.regs, 0xff, sizeof(java.regs));
	cursor.signal_frame = address_of(frame);
	expect_caller(cursor, INTERPRETER, sender, CALLER_FP);
	assert_int_equal(java.found_method, METHOD_ID);
}

static void test_what_is_no_interpreter_frame(void **state)
{
	uint64_t *fp = SP + 20;

	make_frame(fp, 40); /* behind the method's code */
	expect_end(cursor_at(INTERPRETER, SP, address_of(fp), 1), DUET_WALK_BAD_INTERPRETED);
	make_frame(fp, 17);
	fp[-3] = 8;
	expect_end(cursor_at(INTERPRETER, SP, address_of(fp), 1), DUET_WALK_BAD_INTERPRETED);
	expect_end(cursor_at(INTERPRETER, SP, address_of(SP + 4), 1), DUET_WALK_BAD_FP);
	expect_end(cursor_at(INTERPRETER, SP, 0, 1), DUET_WALK_BAD_FP);
	expect_end(cursor_at(INTERPRETER, SP, address_of(&vm) + sizeof(vm) + 64, 1), DUET_WALK_UNREADABLE);
	make_frame(fp, 17);
	fp[-1] = address_of(SP - 1); /* below the frame itself */
	expect_end(cursor_at(INTERPRETER, SP, address_of(fp), 1), DUET_WALK_BAD_CFA);
}

/* One more step, through a frame that is filled or not. */
static void expect_frame(struct unwind_cursor *cursor, int is_filled)
{
	assert_int_equal(walk_java_step(&java, cursor), DUET_WALK_NONE);
	assert_int_equal(java.has_found, is_filled);
	assert_int_equal(java.code_id, is_filled ? 0 : DUET_ID_NOT_FILLED);
}

/*
 * Two frames that a stub has laid out, and that of their caller; the stub has called the JVM. Values of earlier calls
 * are valid but name other methods, until the sp is there that a frame keeps while it calls.
 */
static void test_frames_that_are_not_filled(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 4, "", 0) + 100, *fp = SP + 20, *outer = fp + 20, *caller = fp + 40;
	struct unwind_cursor cursor, begin = cursor_at(stub, SP, CALLER_FP, 1);

	make_frame(fp, 17);
	make_frame(outer, 20);
	make_frame(caller, 23);
	fp[0] = address_of(outer);
	outer[0] = address_of(caller);
	SP[2] = address_of(fp);
	SP[3] = INTERPRETER;
	for (int filled = 0; filled <= 2; filled++) {
		cursor = begin;
		caller[-2] = address_of(caller - 12);
		outer[-2] = filled > 0 ? address_of(outer - 12) : 0;
		fp[-2] = filled > 1 ? address_of(fp - 12) : 0;
		assert_int_equal(first_step(&cursor), DUET_WALK_NONE);
		expect_frame(&cursor, filled > 1);
		assert_int_equal(cursor.sp, address_of(fp + 5));
		expect_frame(&cursor, filled > 0);
		expect_frame(&cursor, 1);
		assert_int_equal(java.found_bci, 23);
		assert_int_equal(cursor.fp, CALLER_FP);
	}
	fp[-8] = 1; /* the byte code comes last */
	cursor = begin;
	assert_int_equal(first_step(&cursor), DUET_WALK_NONE);
	expect_frame(&cursor, 0);
	expect_frame(&cursor, 1);
	fp[1] = NATIVE_PC;
	cursor = begin;
	assert_int_equal(first_step(&cursor), DUET_WALK_NONE);
	assert_int_equal(walk_java_step(&java, &cursor), DUET_WALK_BAD_INTERPRETED);
}

/* Below native code frames are filled, whatever has called it. */
static void test_frame_below_native_code_is_filled(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 4, "", 0) + 100, *fp = SP + 20;
	struct unwind_cursor cursor = cursor_at(stub, SP, CALLER_FP, 1);

	make_frame(fp, 17);
	SP[3] = NATIVE_PC;
	assert_int_equal(first_step(&cursor), DUET_WALK_NONE);
	assert_int_equal(cursor.pc, NATIVE_PC);
	cursor = cursor_at(INTERPRETER, SP + 8, address_of(fp), 1);
	expect_frame(&cursor, 1);
}

static void test_method_without_an_id(void **state)
{
	uint64_t *fp = SP + 20;

	make_frame(fp, 17);
	vm.data[64] = 2; /* the class has none for this number */
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 1), INTERPRETER, fp + 5, CALLER_FP);
	assert_true(java.found_method & DUET_METHOD_BARE);
	assert_int_equal(java.found_method & DUET_METHOD_ADDRESS, java.method_at);
	assert_int_not_equal(java.method_at, 0);
	walk_java_note(&java);
	assert_int_equal(java.code_id & DUET_ID_BCI, 17);
	assert_int_equal(java.code_id >> DUET_ID_CHECK_SHIFT & DUET_ID_CHECK, java.found_check);
	assert_int_not_equal(java.found_check, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_interpreted),
		CASE(test_interpreted_recursion),
		CASE(test_interpreted_leaf),
		CASE(test_interpreter_enters),
		CASE(test_interpreter_makes_a_frame),
		CASE(test_what_is_no_entering),
		CASE(test_interpreter_enters_without_a_frame),
		CASE(test_interpreter_leaves),
		CASE(test_registers_of_an_interrupted_handler),
		CASE(test_what_is_no_interpreter_frame),
		CASE(test_frames_that_are_not_filled),
		CASE(test_frame_below_native_code_is_filled),
		CASE(test_method_without_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
