/* SPDX-License-Identifier: MIT */
/* The walk of arm64's frames, on any machine: compiled code, stubs, the interpreter. */
#define WALK_X86 0
#include "fixtures/walk_vm.h"

#define FRAME_WORDS_OF_METHOD 6
#define RET 0xd65f03c0u
#define NOP 0xd503201fu
#define PUSH 0xa9bf7bfdu /* stp x29, x30, [sp, #-16]! */
#define POP 0xa8c17bfdu /* ldp x29, x30, [sp], #16 */
#define MOV_FP_SP 0x910003fdu

/* ---- what instructions show ---- */

/* Instructions, followed by NOPs up to the size that the functions are given. */
static const uint8_t *code_of(const uint32_t *insns, size_t count)
{
	static uint32_t code[DUET_FRAME_CODE_BYTES / 4];

	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		code[i] = i < count ? insns[i] : NOP;
	return (const uint8_t *)code;
}

#define CODE(...) code_of((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void expect_prologue(const uint8_t *code, const int *slots, uint32_t count, uint32_t end)
{
	uint32_t got = 0;

	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(duet_frame_prologue(code, 4 * i, &got), slots[i]);
	assert_int_equal(got, end);
}

#define BANG 0xd1405009u, 0xf900013fu /* sub x9, sp, #20 << 12; str xzr, [x9] */

static void test_prologues(void **state)
{
	static const int small[] = {0, 0, 0, 0, DUET_FRAME_FP_UNSAVED, DUET_FRAME_BUILT, DUET_FRAME_BUILT};
	static const int large[] = {0, 0, 8, DUET_FRAME_BUILT, DUET_FRAME_BUILT};
	static const int larger[] = {0, 8, 8, 8, DUET_FRAME_BUILT};
	static const int saving[] = {0, 8, DUET_FRAME_BUILT};

	/* sub sp, sp, #48; stp x29, x30, [sp, #32] */
	expect_prologue(CODE(NOP, BANG, 0xd100c3ff, 0xa9027bfd), small, 7, 20);
	/* sub sp, sp, #1024 */
	expect_prologue(CODE(NOP, PUSH, 0xd11003ff), large, 5, 12);
	/* mov x29, sp; mov x8, #65536; sub sp, sp, x8 */
	expect_prologue(CODE(PUSH, MOV_FP_SP, 0xd2a00028, 0xcb2863ff), larger, 5, 16);
	/* stp x28, x30...: it saves registers below, and how far nobody tells */
	expect_prologue(CODE(PUSH, 0xa9bf07e0), saving, 3, 0);
}

static void test_epilogues(void **state)
{
	/* ldp x29, x30, [sp, #32]; add sp, sp, #48; ldr x8, [x28, #1088]; cmp sp, x8; b.hi; ret */
	assert_int_equal(duet_frame_epilogue(CODE(0xa9427bfd, 0x9100c3ff, RET)), DUET_FRAME_BUILT);
	assert_int_equal(duet_frame_epilogue(CODE(0x9100c3ff, 0xf9422388, 0xeb2863ff, 0x54000068, RET)),
			 DUET_FRAME_FP_UNSAVED);
	assert_int_equal(duet_frame_epilogue(CODE(0xf9422388, 0xeb2863ff, 0x54000068, RET)), 0);
	assert_int_equal(duet_frame_epilogue(CODE(0xeb2863ff, 0x54000068, RET)), 0);
	assert_int_equal(duet_frame_epilogue(CODE(0x54000068, RET)), 0);
	assert_int_equal(duet_frame_epilogue(CODE(RET)), 0);
	/* JDK 11: ldr x8, [x28, #264]; ldr wzr, [x8] */
	assert_int_equal(duet_frame_epilogue(CODE(0xf9408788, 0xb940011f, RET)), 0);
	/* a native method's: ldr x8, [x28, #8]; cbnz x8; and signed: autiaz */
	assert_int_equal(duet_frame_epilogue(CODE(0xf9400788, 0xb5000068, RET)), 0);
	assert_int_equal(duet_frame_epilogue(CODE(0xd503239f, RET)), 0);
	/* add sp, sp, #1024; ldp x29, x30, [sp], #16 */
	assert_int_equal(duet_frame_epilogue(CODE(0x911003ff, POP, RET)), DUET_FRAME_BUILT);
	assert_int_equal(duet_frame_epilogue(CODE(POP, RET)), 8);
	/* the poll's stub: adr x8; str x8, [x28, #1112]; b, or adrp x8; add x8; br x8 */
	assert_int_equal(duet_frame_epilogue(CODE(0x10fffee8, 0xf9022f88, 0x17ff0000)), 0);
	assert_int_equal(duet_frame_epilogue(CODE(0xf9022f88, 0x90000008, 0x91000108, 0xd61f0100)), 0);
	assert_int_equal(duet_frame_epilogue(CODE(0xf9022f88, NOP)), DUET_FRAME_BUILT);
	assert_int_equal(duet_frame_epilogue(CODE(NOP, RET)), DUET_FRAME_BUILT);
}

static void test_calls(void **state)
{
	static const uint64_t pc = 0xffff80001010;

	assert_true(duet_code_calls(CODE(0x94000001), 4)); /* bl */
	assert_true(duet_code_calls(CODE(0xd63f0120), 4)); /* blr x9 */
	assert_false(duet_code_calls(CODE(0xd61f0120), 4)); /* br x9 */
	assert_int_equal(duet_frame_call_target(CODE(NOP, NOP, NOP, 0x94000400), pc), pc - 4 + 4096);
	assert_int_equal(duet_frame_call_target(CODE(NOP, NOP, NOP, 0x97ffffff), pc), pc - 8);
	/* adrp x8, -1 page, or 5 pages; add x8, x8, #64; blr x8 */
	assert_int_equal(duet_frame_call_target(CODE(NOP, 0xf0ffffe8, 0x91010108, 0xd63f0100), pc), 0xffff80000040);
	assert_int_equal(duet_frame_call_target(CODE(NOP, 0xb0000028, 0x91010108, 0xd63f0100), pc), 0xffff80006040);
	/* three moves */
	assert_int_equal(duet_frame_call_target(CODE(0xd2824688, 0xf2aacf08, 0xf2dfffe8, 0xd63f0100), pc),
			 0xffff56781234);
	assert_int_equal(duet_frame_call_target(CODE(NOP, NOP, NOP, 0xd63f0120), pc), 0);
}

static void test_what_calls_push_and_stubs_free(void **state)
{
	assert_int_equal(duet_frame_operand_bytes(CODE(0x910043ff)), 16); /* add sp, sp, #16 */
	assert_int_equal(duet_frame_operand_bytes(CODE(NOP, 0xf280001f, 0xf2a0001f, 0x910043ff)), 16);
	assert_int_equal(duet_frame_operand_bytes(CODE(0xa8c113e0)), 16); /* ldp x0, x4, [sp], #16 */
	assert_int_equal(duet_frame_operand_bytes(CODE(POP)), 0);
	assert_int_equal(duet_frame_operand_bytes(CODE(0x9100c3ff)), 0);
	/* ldp q0, q1, [sp, #32]; ldp q2, q3, [sp], #64; ldp x2, x3, [sp, #16]; ldp x0, x1, [sp], #32; b */
	assert_int_equal(duet_frame_freed_bytes(CODE(0xad4107e0, 0xacc20fe2, 0xa9410fe2, 0xa8c207e0, 0x17fffff0), 64),
			 96);
	assert_int_equal(duet_frame_freed_bytes(CODE(0xa8c207e0, RET), 64), 0);
	assert_int_equal(duet_frame_freed_bytes(CODE(0x910083ff, 0x17fffff0), 64), 32); /* add sp, sp, #32 */
	assert_int_equal(duet_frame_stub_bytes(CODE(0xa8c207e0, RET), 64), 32);
	assert_int_equal(duet_frame_stub_bytes(CODE(0xd10083ff, 0xf81f0fe0, 0xa8c207e0, 0xf84107e0, RET), 64), 0);
	assert_int_equal(duet_frame_stub_bytes(CODE(PUSH, MOV_FP_SP, 0x910003bf, POP, RET), 64), 0);
	assert_int_equal(duet_frame_stub_bytes(CODE(MOV_FP_SP, 0x910003bf, POP, RET), 64), 16);
	assert_int_equal(duet_frame_stub_bytes(CODE(NOP, 0x910003bf, POP, RET), 64), -1);
	assert_int_equal(duet_frame_stub_bytes(CODE(NOP), 64), -1);
}

/* isb; movz, movk, movk x12; movz, movk, movk x8; br x8. And one that goes far: ldr x8; br x8 */
static void test_call_stubs(void **state)
{
	assert_true(duet_frame_is_call_stub(CODE(0xd5033fdf)));
	assert_true(duet_frame_is_call_stub(CODE(0xd280000c)));
	assert_true(duet_frame_is_call_stub(CODE(0xf2dfffec)));
	assert_true(duet_frame_is_call_stub(CODE(0xd2800008)));
	assert_true(duet_frame_is_call_stub(CODE(0x58000048, 0xd61f0100)));
	assert_false(duet_frame_is_call_stub(CODE(0xd61f0100))); /* an exception handler ends so too */
	assert_false(duet_frame_is_call_stub(CODE(0x1000001e))); /* adr lr: one deoptimizes */
}

static void test_linkage_tables(void **state)
{
	assert_true(duet_frame_is_linkage(CODE(0xd503245f, 0x90000910, 0xf947ce11, 0x913e6210, 0xd61f0220)));
	assert_true(duet_frame_is_linkage(CODE(0xf947ce11, 0x913e6210, 0xd61f0220)));
	assert_true(duet_frame_is_linkage(CODE(0xd61f0220)));
	assert_false(duet_frame_is_linkage(CODE(0x90000910, 0xd61f0200)));
}

/* As JDK 21 and 17 enter a method: stp x29, x30, [sp, #80]; add x29, sp, #80; ...; stp xzr, x19, [sp, #64] */
static void test_interpreter_entries(void **state)
{
	uint32_t pop, push;

	assert_int_equal(
		duet_frame_find_entry(CODE(0xa9be07e0, 0xa9057bfd, 0x910143fd, NOP, NOP, 0xa9044fff), 64, &pop, &push),
		19);
	assert_int_equal(push, 4);
	assert_int_equal(pop, 20);
	assert_int_equal(duet_frame_find_entry(CODE(0xa9057bfd, 0x910143fd, 0xa90437ff), 64, &pop, &push), 13);
	assert_int_equal(push, 0);
	assert_int_equal(pop, 8);
	assert_int_equal(duet_frame_find_entry(CODE(0xa9057bfd, 0x910143fd, NOP), 64, &pop, &push), 0);
	assert_int_equal(duet_frame_find_entry(CODE(0xa9057bfd, NOP, 0xa90437ff), 64, &pop, &push), 0);
	assert_int_equal(duet_frame_made(20, 4, 0), DUET_FRAME_MADE_NOTHING);
	assert_int_equal(duet_frame_made(20, 4, 8), DUET_FRAME_MADE_NOTHING);
	assert_int_equal(duet_frame_made(20, 4, 12), DUET_FRAME_MADE_UNSENT);
	assert_int_equal(duet_frame_made(20, 4, 20), DUET_FRAME_MADE_UNSENT);
	assert_int_equal(duet_frame_made(20, 4, 24), DUET_FRAME_MADE);
}

/* ---- the walk ---- */

static uint64_t make_method_code(uint32_t offset, uint32_t frame_words, const uint32_t *insns, size_t count)
{
	uint64_t code = make_blob(offset, METHOD_NAME, frame_words, insns, count * 4);

	for (uint32_t at = 16 + (uint32_t)count * 4; at + 4 <= 1024; at += 4)
		memcpy((void *)(uintptr_t)(code + at), &(uint32_t){NOP}, 4);
	return code;
}

/* A method at 8192 whose call at +100 goes to `target`; returns the return address. */
static uint64_t make_caller(uint64_t target)
{
	uint64_t code = make_method_code(8192, 4, &(uint32_t){NOP}, 1), at = code + 96;
	uint32_t call = 0x94000000u | ((uint32_t)((int64_t)(target - at) / 4) & 0x3ffffff);

	memcpy((void *)(uintptr_t)at, &call, sizeof(call));
	return at + 4;
}

static struct unwind_cursor leaf_at(uint64_t pc, const uint64_t *sp, uint64_t fp, uint64_t lr)
{
	struct unwind_cursor cursor = cursor_at(pc, sp, fp, 0);

	cursor.lr = lr;
	cursor.has_lr = 1;
	java.regs[DUET_FRAME_RETURN] = lr;
	return cursor;
}

/* No bit of a return address's signature is left. */
static void test_compiled_caller(void **state)
{
	uint64_t code = make_method_code(2048, FRAME_WORDS_OF_METHOD, &(uint32_t){NOP}, 1), caller = make_caller(code);

	SP[4] = CALLER_FP;
	SP[5] = caller | 0x7full << 48;
	expect_caller(cursor_at(code + 100, SP, 7, 1), caller, SP + 6, CALLER_FP);
	/* C2 has pushed two words for a call of the JVM, and takes them off again. */
	memcpy((void *)(uintptr_t)(code + 100), &(uint32_t){0x910043ff}, 4);
	expect_caller(cursor_at(code + 100, SP - 2, 7, 1), caller, SP + 6, CALLER_FP);
}

/* At every instruction, the same caller. */
static void test_compiled_leaf(void **state)
{
	static const uint32_t insns[] = {NOP,	     BANG,	 0xd100c3ff, 0xa9027bfd, NOP, 0xa9427bfd,
					 0x9100c3ff, 0xf9422388, 0xeb2863ff, 0x54000068, RET};
	static const struct {
		int words; /* sp below the caller's */
		int is_stored; /* fp and lr are on the stack, else in registers */
	} steps[] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {6, 0}, {6, 1}, {6, 1}, {6, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};
	uint64_t code = make_method_code(2048, FRAME_WORDS_OF_METHOD, insns, sizeof(insns) / 4) + 16;
	uint64_t caller = make_caller(code);

	for (uint32_t i = 0; i < sizeof(insns) / 4; i++) {
		memset(vm.stack, 0, sizeof(vm.stack));
		SP[-2] = steps[i].is_stored ? CALLER_FP : 0;
		SP[-1] = steps[i].is_stored ? caller : 0;
		expect_caller(leaf_at(code + 4 * i, SP - steps[i].words, steps[i].is_stored ? 7 : CALLER_FP,
				      steps[i].is_stored ? 7 : caller),
			      caller, SP, CALLER_FP);
	}
	expect_caller(leaf_at(code - 4, SP, CALLER_FP, caller), caller, SP, CALLER_FP); /* inline cache check */
	expect_end(leaf_at(code - 4, SP, CALLER_FP, NATIVE_PC), DUET_WALK_LEAF);
}

/* In its own frame, or without a frame but with words pushed: the caller's frame ends in a return address. */
static void test_leaf_stub(void **state)
{
	/* stp x0, x1, [sp, #-32]!; stp x2, x3, [sp, #-16]!; ...; ldp x2, x3, [sp], #16; ldp x0, x1, [sp], #32; ret */
	static const uint32_t pushing[] = {0xa9be07e0, 0xa9bf0fe2, 0xa90117e4, 0xa8c10fe2, 0xa8c207e0, RET};
	static const int words[] = {0, 4, 6, 6, 4, 0};
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0) + 32, caller = make_caller(stub);

	SP[3] = caller; /* of the caller's own caller */
	expect_caller(leaf_at(stub + 40, SP, CALLER_FP, caller), caller, SP, CALLER_FP);
	memcpy((void *)(uintptr_t)stub, pushing, sizeof(pushing));
	for (uint32_t i = 0; i < 6; i++) {
		SP[3 - words[i]] = caller; /* of an earlier call */
		expect_caller(leaf_at(stub + 4 * i, SP - words[i], CALLER_FP, caller), caller, SP, CALLER_FP);
	}
	SP[3] = 0;
	expect_end(leaf_at(stub + 4, SP - 4, CALLER_FP, caller), DUET_WALK_LEAF);
	/* it pushes a number of words that is not known */
	expect_end(leaf_at(stub + 40, SP, CALLER_FP, caller), DUET_WALK_LEAF);
	memcpy((void *)(uintptr_t)(stub + 40), &(uint32_t){RET}, 4);
	SP[4] = CALLER_FP;
	SP[5] = caller;
	expect_caller(leaf_at(stub + 40, SP, address_of(SP + 4), caller), caller, SP + 6, CALLER_FP);
	expect_end(leaf_at(stub + 40, SP, address_of(SP + 4), stub + 20), DUET_WALK_LEAF);
	SP[9] = caller; /* it has called, but its frame is there */
	expect_caller(leaf_at(stub + 40, SP, address_of(SP + 4), stub + 20), caller, SP + 6, CALLER_FP);
	expect_caller(leaf_at(stub + 40, SP, CALLER_FP, INTERPRETER), INTERPRETER, SP, CALLER_FP);
	expect_caller(leaf_at(stub + 40, SP, CALLER_FP, NATIVE_PC), NATIVE_PC, SP, CALLER_FP);
}

/* A stub with a frame size that saves all registers: meanwhile its frame pointer shows the frame. */
static void test_leaf_stub_that_saves_registers(void **state)
{
	static const uint32_t insns[] = {PUSH, MOV_FP_SP, 0xa9bf07e0, 0xa9bf0fe2};
	uint64_t stub = make_blob(2048, OTHER_NAME, 12, "", 0), caller = make_caller(stub);

	memcpy((void *)(uintptr_t)stub, insns, sizeof(insns));
	expect_caller(leaf_at(stub, SP, CALLER_FP, caller), caller, SP, CALLER_FP);
	SP[-2] = CALLER_FP;
	SP[-1] = caller;
	expect_caller(leaf_at(stub + 4, SP - 2, CALLER_FP, caller), caller, SP, CALLER_FP);
	expect_caller(leaf_at(stub + 12, SP - 4, address_of(SP - 2), caller), caller, SP, CALLER_FP);
}

static void test_adapters(void **state)
{
	uint64_t adapter = make_blob(16384, 0x555, 0, "", 0) + 32, caller = make_caller(HEAP_BYTES);

	java.layout.adapter_name = 0x555;
	java.layout.frame_sender = 19;
	expect_caller(leaf_at(adapter, SP, CALLER_FP, INTERPRETER), INTERPRETER, SP, CALLER_FP);
	SP[3] = caller;
	expect_caller(leaf_at(adapter, SP, CALLER_FP, caller), caller, SP, CALLER_FP);
	java.regs[19] = address_of(SP);
	expect_caller(leaf_at(adapter, SP - 6, CALLER_FP, caller), caller, SP, CALLER_FP);
	SP[3] = 0;
	expect_end(leaf_at(adapter, SP - 6, CALLER_FP, caller), DUET_WALK_LEAF);
	SP[4] = CALLER_FP; /* it has called, with a frame pointer */
	SP[5] = caller;
	expect_caller(cursor_at(adapter, SP, address_of(SP + 4), 1), caller, SP + 6, CALLER_FP);
}

static void make_frame(uint64_t *fp, uint32_t at, uint64_t to, const uint64_t *sender)
{
	uint64_t method, constant = make_method(&method);

	java.layout.frame_bcp = DUET_FRAME_BCP_WORD;
	java.layout.frame_sender = 19;
	fp[-9] = constant + 48 + at;
	fp[-3] = method;
	fp[-1] = address_of(sender);
	fp[0] = CALLER_FP;
	fp[1] = to;
}

/* An interpreted caller has its sp far down, so its frame is found by fp. A compiled caller's sp is where it was. */
static void test_interpreted(void **state)
{
	uint64_t *fp = SP + 20, caller = make_caller(HEAP_BYTES);

	make_frame(fp, 17, INTERPRETER, SP + 3);
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 1), INTERPRETER, fp + 2, CALLER_FP);
	assert_int_equal(java.found_method, METHOD_ID);
	assert_int_equal(java.found_bci, 17);
	make_frame(fp, 18, caller, fp + 8);
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 1), caller, fp + 8, CALLER_FP);
	java.regs[DUET_FRAME_BCP] = fp[-9] + 3;
	expect_caller(leaf_at(INTERPRETER, SP, address_of(fp), 7), caller, fp + 8, CALLER_FP);
	assert_int_equal(java.found_bci, 21);
	expect_end(cursor_at(INTERPRETER, fp - 8, address_of(fp), 1), DUET_WALK_BAD_FP);
}

#define METHOD_ENTRY (java.layout.entries_low + 256)
#define RECORD 64 /* stp x29, x30, from the entry's start */
#define SENT 96 /* stp xzr, x19 */

static void test_interpreter_enters(void **state)
{
	uint32_t begin = (uint32_t)(METHOD_ENTRY - java.layout.interpreter_low);
	uint64_t *fp = SP + 20, caller = make_caller(HEAP_BYTES), method;

	java.layout.entries[0] = (struct duet_method_entry){begin, begin + 512, begin + SENT, begin + RECORD};
	make_frame(fp, 0, caller, SP);
	make_method(&method);
	java.regs[DUET_FRAME_METHOD] = method;
	java.regs[19] = address_of(fp + 8);
	for (uint32_t at = 0; at < RECORD + 8; at += 4) {
		expect_caller(leaf_at(METHOD_ENTRY + at, SP, CALLER_FP, caller), caller, fp + 8, CALLER_FP);
		assert_int_equal(java.found_method, METHOD_ID);
	}
	for (uint32_t at = RECORD + 8; at <= SENT; at += 4)
		expect_caller(leaf_at(METHOD_ENTRY + at, fp - 10, address_of(fp), 7), caller, fp + 8, CALLER_FP);
	fp[-1] = address_of(fp + 6);
	expect_caller(leaf_at(METHOD_ENTRY + SENT + 4, fp - 10, address_of(fp), 7), caller, fp + 6, CALLER_FP);
	expect_caller(leaf_at(METHOD_ENTRY, fp + 10, CALLER_FP, INTERPRETER), INTERPRETER, fp + 10, CALLER_FP);
	expect_end(leaf_at(METHOD_ENTRY, fp + 10, CALLER_FP, caller), DUET_WALK_LEAF); /* sp is above the caller's */
	/* An entry without a frame that has called: lr does not show its caller. */
	expect_end(leaf_at(METHOD_ENTRY - 8, SP, CALLER_FP, METHOD_ENTRY - 16), DUET_WALK_LEAF);
	expect_end(cursor_at(METHOD_ENTRY - 8, SP, CALLER_FP, 1), DUET_WALK_NO_FRAME);
}

/* mov sp, x29; ldp x29, x30, [sp], #16; and sp, x20, #-16; ret, or mov sp, x20 of native methods. */
static void test_interpreter_leaves(void **state)
{
	static const uint32_t restores[] = {0x927cee9f, 0x9100029f};
	uint64_t pc = INTERPRETER + 32, caller = make_caller(HEAP_BYTES);

	for (int i = 0; i < 2; i++) {
		const uint32_t insns[] = {0x910003bf, POP, restores[i], RET};

		memcpy((void *)(uintptr_t)pc, insns, sizeof(insns));
		SP[0] = CALLER_FP;
		SP[1] = caller;
		java.regs[20] = address_of(SP + 8);
		expect_caller(leaf_at(pc + 4, SP, address_of(SP), 7), caller, SP + 8, CALLER_FP);
		expect_caller(leaf_at(pc + 8, SP + 2, CALLER_FP, caller), caller, SP + 8, CALLER_FP);
		java.regs[20] = 0;
		expect_caller(leaf_at(pc + 12, SP + 8, CALLER_FP, caller), caller, SP + 8, CALLER_FP);
		expect_end(leaf_at(pc + 12, SP + 8, CALLER_FP, NATIVE_PC), DUET_WALK_LEAF);
	}
}

static void test_call_stub(void **state)
{
	uint64_t *fp = SP + 20;

	fp[0] = CALLER_FP;
	fp[1] = NATIVE_PC;
	expect_caller(cursor_at(java.layout.call_stub_return, SP, address_of(fp), 1), NATIVE_PC, fp + 2, CALLER_FP);
	assert_int_equal(java.thread_at, address_of(fp - 1));
}

/* A signal hit the interpreter: the registers in the handler are not those of the interpreter. */
static void test_registers_of_an_interrupted_handler(void **state)
{
	uint64_t *frame = SP, pc = INTERPRETER + 32, caller = make_caller(HEAP_BYTES);
	const uint32_t insns[] = {0x927cee9f, RET};
	struct unwind_cursor cursor = leaf_at(pc, SP + 60, CALLER_FP, 7);

	memcpy((void *)(uintptr_t)pc, insns, sizeof(insns));
	frame[WALK_SIGNAL_REGS / 8 + 20] = address_of(SP + 80);
	frame[WALK_SIGNAL_REGS / 8 + 30] = caller;
	cursor.signal_frame = address_of(frame);
	expect_caller(cursor, caller, SP + 80, CALLER_FP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologues),
		cmocka_unit_test(test_epilogues),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_what_calls_push_and_stubs_free),
		cmocka_unit_test(test_call_stubs),
		cmocka_unit_test(test_linkage_tables),
		cmocka_unit_test(test_interpreter_entries),
		CASE(test_compiled_caller),
		CASE(test_compiled_leaf),
		CASE(test_leaf_stub),
		CASE(test_leaf_stub_that_saves_registers),
		CASE(test_adapters),
		CASE(test_interpreted),
		CASE(test_interpreter_enters),
		CASE(test_interpreter_leaves),
		CASE(test_call_stub),
		CASE(test_registers_of_an_interrupted_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
