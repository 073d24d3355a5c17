/* SPDX-License-Identifier: MIT */
/*
 * The walk through Java frames, as BPF does it, over a made-up JVM: a code heap with its segment map, blobs, methods
 * and a stack, laid out by rules of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAP_BYTES 65536u
#define SEGMENT_SHIFT 7
#define WORDS 512

static struct {
	_Alignas(4096) uint8_t heap[HEAP_BYTES];
	uint8_t segmap[HEAP_BYTES >> SEGMENT_SHIFT];
	uint64_t stack[WORDS];
	uint64_t data[WORDS]; /* methods and what hangs on them */
} vm;

/* Only the made-up JVM's memory can be read. */
static int walk_read(void *to, uint32_t bytes, uint64_t address)
{
	uint64_t start = (uintptr_t)&vm;

	if (address < start || address - start > sizeof(vm) - bytes)
		return -1;
	memcpy(to, (const void *)(uintptr_t)address, bytes);
	return 0;
}

struct duet_unwind_row;

/* Of native code; there is none here. */
static const struct duet_unwind_row *walk_row(uint32_t index)
{
	(void)index;
	return NULL;
}

#include "duet_walk_java.h"

/* Offsets from the block's start. */
enum {
	USED = 8,
	HEADER = 16,
	NAME = 16,
	BYTES = 24,
	FRAME_WORDS = 28,
	COMPLETE = 32,
	CODE = 40,
	ENTRY = 48,
	STUBS = 56,
	ORIGINAL_PC = 60
};
#define CODE_AT 512 /* of a blob's code, from the block's start */
#define BLOB_ROOM 2048
#define NATIVE_PC 0x1234560ull
#define METHOD_NAME 0x111ull
#define OTHER_NAME 0x333ull

#define INTERPRETER (address_of(heap_at(32768)) + 64)

static struct walk_java java;

static uint8_t *heap_at(uint32_t offset)
{
	return vm.heap + offset;
}

static uint64_t address_of(const void *at)
{
	return (uintptr_t)at;
}

/* A blob in the block at `offset`; returns the address of its code. */
static uint64_t make_blob(uint32_t offset, uint64_t name, uint32_t frame_words, const void *code, size_t code_bytes)
{
	uint8_t *block = heap_at(offset);
	uint64_t begin = address_of(block) + CODE_AT;

	for (uint32_t i = 0; i < BLOB_ROOM >> SEGMENT_SHIFT; i++)
		vm.segmap[(offset >> SEGMENT_SHIFT) + i] = (uint8_t)(i > 3 ? 3 : i); /* several hops */
	memset(block, 0, BLOB_ROOM);
	block[USED] = 1;
	memcpy(block + NAME, &name, 8);
	memcpy(block + BYTES, &(uint32_t){BLOB_ROOM - HEADER}, 4);
	memcpy(block + FRAME_WORDS, &frame_words, 4);
	memcpy(block + COMPLETE, &(uint32_t){32}, 4);
	memcpy(block + CODE, &begin, 8);
	memcpy(block + ENTRY, &(uint64_t){begin + 16}, 8);
	memcpy(block + STUBS, &(uint32_t){1536 - HEADER}, 4);
	memcpy(block + ORIGINAL_PC, &(uint32_t){8}, 4);
	memset(block + CODE_AT, 0x90, 1024);
	memcpy(block + CODE_AT + 16, code, code_bytes);
	return begin;
}

static int make_vm(void **state)
{
	(void)state;
	memset(&vm, 0, sizeof(vm));
	memset(vm.segmap, JAVA_SEGMENT_FREE, sizeof(vm.segmap));
	memset(&java, 0, sizeof(java));
	java.layout = (struct duet_jvm_layout){
		.heaps = {{.low = address_of(vm.heap),
			   .high = address_of(vm.heap) + HEAP_BYTES,
			   .segmap = address_of(vm.segmap),
			   .segment_shift = SEGMENT_SHIFT}},
		.interpreter_low = address_of(heap_at(32768)),
		.interpreter_high = address_of(heap_at(40960)),
		.entries_low = address_of(heap_at(36864)),
		.entries_high = address_of(heap_at(38912)),
		.call_stub_return = address_of(heap_at(61440)),
		.compiled_name = METHOD_NAME,
		.native_name = METHOD_NAME + 1,
		.block_header_bytes = HEADER,
		.block_used = USED,
		.blob_name = NAME,
		.blob_bytes = BYTES,
		.blob_frame_words = FRAME_WORDS,
		.blob_frame_complete = COMPLETE,
		.blob_frame_complete_width = 4,
		.blob_code_begin = CODE,
		.blob_code_offset = DUET_JVM_NO_FIELD,
		.nmethod_entry = ENTRY,
		.nmethod_entry_offset = DUET_JVM_NO_FIELD,
		.nmethod_stubs = STUBS,
		.nmethod_original_pc = ORIGINAL_PC,
		.method_const = 8,
		.const_pool = 8,
		.const_id = 38,
		.const_code_bytes = 32,
		.const_bytes = 48,
		.pool_holder = 24,
		.holder_ids = 16,
		.frame_bcp = -8,
	};
	return 0;
}

#define SP (&vm.stack[64])
#define CALLER_FP 0x7fff0040ull

static struct unwind_cursor cursor_at(uint64_t pc, const uint64_t *sp, uint64_t fp, int is_return)
{
	return (struct unwind_cursor){.pc = pc, .sp = address_of(sp), .fp = fp, .is_return = (uint8_t)is_return};
}

/* A walk's first step. */
static walk_result first_step(struct unwind_cursor *cursor)
{
	java.blob = java.method_at = 0;
	return walk_java_step(&java, cursor);
}

static void expect_caller(struct unwind_cursor cursor, uint64_t pc, const uint64_t *sp, uint64_t fp)
{
	assert_int_equal(first_step(&cursor), DUET_WALK_NONE);
	assert_int_equal(cursor.pc, pc);
	assert_int_equal(cursor.sp, address_of(sp));
	assert_int_equal(cursor.fp, fp);
	assert_true(cursor.is_return);
}

static void expect_end(struct unwind_cursor cursor, walk_result end)
{
	assert_int_equal(first_step(&cursor), end);
}

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

	(void)state;
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

	(void)state;
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

/* At every instruction, the same caller: where sp stands, in words below the slot of the return address. */
static void test_compiled_leaf(void **state)
{
	static const struct {
		uint32_t offset;
		int words;
	} steps[] = {{0, 0}, {7, 0}, {8, 1}, {12, 5}, {20, 5}, {40, 5}, {44, 1}, {45, 0}, {52, 0}, {58, 0}};
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	uint64_t caller = make_blob(8192, METHOD_NAME, 4, method_code, sizeof(method_code)) + 100;

	(void)state;
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

	(void)state;
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

	(void)state;
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

/* What C2's string intrinsics and C1's subtype checks keep on top of the frame. */
static void test_leaf_that_has_pushed(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	uint64_t caller = make_call(code);
	int words;

	(void)state;
	SP[4] = CALLER_FP;
	SP[5] = caller;
	for (words = 0; words <= JAVA_PUSHED_WORDS; words++)
		expect_caller(cursor_at(code + 100, SP - words, 7, 0), caller, SP + 6, CALLER_FP);
	expect_end(cursor_at(code + 100, SP - words, 7, 0), DUET_WALK_LEAF);
	SP[5] = caller + 1; /* no call is in front of it */
	expect_end(cursor_at(code + 100, SP - 1, 7, 0), DUET_WALK_LEAF);
}

static void test_leaf_stub(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0) + 32;
	uint64_t caller = make_call(stub), other = make_call(stub) + 1;

	(void)state;
	SP[0] = caller;
	expect_caller(cursor_at(stub, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	SP[0] = CALLER_FP; /* pushed */
	SP[1] = caller;
	expect_caller(cursor_at(stub + 1, SP, 7, 0), caller, SP + 2, CALLER_FP);
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

/* Its frame is left: the call went to a stub behind this, which had jumped here. Or it has pushed without a frame. */
static void test_leaf_stub_without_frame_pointer(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, 0, "", 0) + 32;
	uint64_t caller = make_call(stub + 100);

	(void)state;
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
	SP[12] = NATIVE_PC;
	SP[14] = caller;
	expect_caller(cursor_at(stub + 40, SP, CALLER_FP, 0), caller, SP + 9, CALLER_FP);
	SP[13] = CALLER_FP;
	expect_caller(cursor_at(caller, SP + 9, 7, 1), caller, SP + 15, CALLER_FP);
	SP[12] = caller;
	SP[11] = CALLER_FP;
	expect_caller(cursor_at(caller, SP + 9, 7, 1), caller, SP + 13, CALLER_FP); /* not below a stub */
	SP[8] = SP[12] = SP[14] = NATIVE_PC;
	SP[16] = caller; /* too far up */
	SP[22] = caller;
	expect_end(cursor_at(stub + 40, SP, CALLER_FP, 0), DUET_WALK_LEAF);
}

static void test_stub_with_a_frame(void **state)
{
	/* leave; ret at 64 of the code, frame complete at 32 */
	uint64_t stub = make_blob(2048, OTHER_NAME, 4, "", 0);
	uint64_t caller = make_call(stub);

	(void)state;
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

/* Vtable stubs never have a frame. Adapters keep in r13 what sp was, once they have moved it. */
static void test_frameless(void **state)
{
	uint64_t stub = make_blob(2048, VTABLE_NAME, 0, "", 0) + 32;
	uint64_t adapter = make_blob(16384, ADAPTER_NAME, 0, "", 0) + 32;
	uint64_t caller = make_call(HEAP_BYTES); /* of anything */

	(void)state;
	SP[0] = caller;
	expect_end(cursor_at(stub, SP, CALLER_FP, 0), DUET_WALK_LEAF);
	java.layout.frameless_names[2] = VTABLE_NAME;
	java.layout.adapter_name = ADAPTER_NAME;
	expect_caller(cursor_at(stub, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	expect_caller(cursor_at(adapter, SP, CALLER_FP, 0), caller, SP + 1, CALLER_FP);
	java.regs[DUET_X86_R13] = address_of(SP + 3);
	expect_end(cursor_at(adapter, SP, CALLER_FP, 0), DUET_WALK_LEAF);
	SP[0] = INTERPRETER; /* whose frame does not begin at sp */
	expect_caller(cursor_at(adapter, SP, CALLER_FP, 0), INTERPRETER, SP + 1, CALLER_FP);
	SP[0] = caller + 1; /* behind no call */
	java.regs[DUET_X86_R13] = 0;
	expect_end(cursor_at(adapter, SP, CALLER_FP, 0), DUET_WALK_LEAF);
}

/* C1's do not say how large their frame is, but keep a frame pointer. */
static void test_stub_of_unknown_size(void **state)
{
	uint64_t stub = make_blob(2048, OTHER_NAME, UINT32_MAX, "", 0);
	uint64_t caller = make_call(stub);

	(void)state;
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

	(void)state;
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

	(void)state;
	expect_end(cursor_at(stub + 50, SP, 7, 1), DUET_WALK_NO_FRAME);
}

/* ---- the interpreter ---- */

#define METHOD_ID 0xabcdef01u

/* A method of 40 bytes of code whose number is 2; its ConstMethod's address. */
static uint64_t make_method(uint64_t *ret_method)
{
	uint64_t *method = vm.data, *constant = vm.data + 8, *pool = vm.data + 32, *holder = vm.data + 48;
	uint64_t *ids = vm.data + 64;

	method[1] = address_of(constant);
	constant[1] = address_of(pool);
	*(uint16_t *)((uint8_t *)constant + 32) = 40;
	*(uint16_t *)((uint8_t *)constant + 38) = 2;
	pool[3] = address_of(holder);
	holder[2] = address_of(ids);
	ids[0] = 3;
	ids[3] = METHOD_ID;
	*ret_method = address_of(method);
	return address_of(constant);
}

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

	(void)state;
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

	(void)state;
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

/* At its own instructions the interpreter has the byte code pointer in a register; elsewhere that has anything. */
static void test_interpreted_leaf(void **state)
{
	uint64_t *fp = SP + 20, method, code = make_method(&method) + 48;

	(void)state;
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

	(void)state;
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

/* What the entry has not pushed yet, the registers have. */
static void test_interpreter_makes_a_frame(void **state)
{
	uint64_t *sender = SP + 20, *fp = SP + 10, code = enter(sender);
	uint64_t pc = ENTRY + PUSH + 5;

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

/* A signal hit the interpreter; what the handler has in its registers says nothing of that. */
static void test_registers_of_an_interrupted_handler(void **state)
{
	uint64_t *frame = SP, *sender = SP + 60;
	struct unwind_cursor cursor = cursor_at(ENTRY, sender - 1, CALLER_FP, 0);

	(void)state;
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

	(void)state;
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

static void test_method_without_an_id(void **state)
{
	uint64_t *fp = SP + 20;

	(void)state;
	make_frame(fp, 17);
	vm.data[64] = 2; /* the class has none for this number */
	expect_caller(cursor_at(INTERPRETER, SP, address_of(fp), 1), INTERPRETER, fp + 5, CALLER_FP);
	assert_int_equal(java.found_method, 0);
}

/* ---- and the rest ---- */

static void test_call_stub(void **state)
{
	uint64_t *fp = SP + 20;

	(void)state;
	fp[0] = CALLER_FP;
	fp[1] = NATIVE_PC;
	expect_caller(cursor_at(java.layout.call_stub_return, SP, address_of(fp), 1), NATIVE_PC, fp + 2, CALLER_FP);
	expect_end(cursor_at(java.layout.call_stub_return, SP, address_of(SP - 2), 1), DUET_WALK_BAD_FP);
}

static void test_hostile_heap(void **state)
{
	uint64_t code = make_blob(2048, METHOD_NAME, FRAME_WORDS_OF_METHOD, method_code, sizeof(method_code));
	struct unwind_cursor cursor = cursor_at(code + 100, SP, 7, 1);
	uint8_t *block = heap_at(2048);

	(void)state;
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

#define CASE(name) cmocka_unit_test_setup(name, make_vm)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_compiled_caller),
		CASE(test_compiled_recursion),
		CASE(test_compiled_leaf),
		CASE(test_leaf_whose_fp_is_not_saved_yet),
		CASE(test_leaf_that_has_pushed),
		CASE(test_deoptimized),
		CASE(test_leaf_stub),
		CASE(test_leaf_stub_without_frame_pointer),
		CASE(test_stub_with_a_frame),
		CASE(test_frameless),
		CASE(test_stub_of_unknown_size),
		CASE(test_native_wrapper),
		CASE(test_return_into_a_stub_without_frame),
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
		CASE(test_method_without_an_id),
		CASE(test_call_stub),
		CASE(test_hostile_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
