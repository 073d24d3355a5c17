/* SPDX-License-Identifier: MIT */
/*
 * BPF's walk, compiled as ordinary code: on stacks made by hand, and on this program's own stack, compared with
 * libgcc's unwinder.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "unwind/unwind_file.h"
#include "proc/maps.h"

#define STACK 0x7000 /* where the stack made by hand lies */
#define WORDS 64
#define MAX_FRAMES 64

static uint64_t stack[WORDS];
static bool own_memory; /* reads go to this process's */
static const struct unwind_rows *rows; /* of the file that is searched */

static int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address)
{
	if (own_memory) {
		memcpy(to, (const void *)(uintptr_t)address, bytes);
		return 0;
	}
	if (address < STACK || address + bytes > STACK + sizeof(stack))
		return -1;
	memcpy(to, (const char *)stack + (address - STACK), bytes);
	return 0;
}

static const struct duet_unwind_row *walk_row(const void *at, uint32_t index)
{
	return index < rows->rows.len ? &rows->rows.items[index] : NULL;
}

#include "walk/native.h"

static int fresh_stack(void **state)
{
	own_memory = false;
	for (size_t i = 0; i < WORDS; i++)
		stack[i] = 0xdead0000 + i;
	return 0;
}

static struct unwind_cursor leaf_at(size_t sp_word, size_t fp_word)
{
	return (struct unwind_cursor){
		.pc = 0x1000, .sp = STACK + sp_word * 8, .fp = STACK + fp_word * 8, .lr = 0x9999, .has_lr = 1};
}

static void expect_cursor(const struct unwind_cursor *cursor, uint64_t pc, size_t sp_word, uint64_t fp)
{
	assert_int_equal(cursor->pc, pc);
	assert_int_equal(cursor->sp, STACK + sp_word * 8);
	assert_int_equal(cursor->fp, fp);
	assert_true(cursor->is_return);
}

#define ROW(...) (&(struct duet_unwind_row){__VA_ARGS__})
#if WALK_X86
#define RA_SAVED 0
#else
#define RA_SAVED DUET_ROW_RA_SAVED
#endif

#if WALK_X86
#define FUNCTION 20 /* words where it begins, and where the code that calls it goes on */
#define CALLER 40

static struct unwind_cursor called_at(uint64_t code)
{
	struct unwind_cursor cursor = leaf_at(3, 9);
	int32_t distance = (FUNCTION - CALLER) * 8;
	uint8_t *behind = (uint8_t *)&stack[CALLER];

	cursor.pc = STACK + FUNCTION * 8 + 16;
	stack[3] = STACK + CALLER * 8;
	stack[FUNCTION] = code;
	behind[-5] = 0xe8;
	memcpy(behind - 4, &distance, sizeof(distance));
	return cursor;
}

#define MOVES 0xf88948 /* mov %rdi, %rax */

/* No row, and nothing pushed: the word on top of the stack follows a call of the function that pc is in. */
static void called_leaf(void **state)
{
	struct unwind_cursor cursor = called_at(MOVES);

	assert_true(walk_called_leaf(&cursor));
	expect_cursor(&cursor, STACK + CALLER * 8, 4, STACK + 9 * 8);
	cursor = called_at(MOVES);
	cursor.pc += WALK_LEAF_BYTES; /* of another function, then */
	assert_false(walk_called_leaf(&cursor));
	cursor = called_at(MOVES);
	cursor.is_return = 1;
	assert_false(walk_called_leaf(&cursor));
	cursor = called_at(MOVES);
	((uint8_t *)&stack[CALLER])[-5] = 0xe9; /* no call */
	assert_false(walk_called_leaf(&cursor));
}

/* The word on top of the stack is not the return address of a function that makes a frame, but at its beginning. */
static void called_function_with_a_frame(void **state)
{
	static const uint64_t begins[] = {0x53, 0x5541, 0x28ec8348, 0x100ec8148, 0x57fa1e0ff3, 0x28ec8348fa1e0ff3};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		struct unwind_cursor cursor = called_at(begins[i]);

		assert_false(walk_called_leaf(&cursor));
		cursor.pc = STACK + FUNCTION * 8;
		assert_true(walk_called_leaf(&cursor));
	}
}
#endif

#if WALK_X86
/* Only the leaf still has it. */
static void by_the_return_address_in_rdi(void **state)
{
	const struct duet_unwind_row *row = ROW(.rule = DUET_CFA_SP | DUET_ROW_RA_SAVED);
	struct unwind_cursor cursor = leaf_at(4, 40);

	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x9999, 4, STACK + 40 * 8);
	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_NO_ROW);
}
#endif

static void by_stack_pointer(void **state)
{
	struct unwind_cursor cursor = leaf_at(4, 40);

	stack[9] = 0x5000; /* CFA = word 10, the return address below it */
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_SP | RA_SAVED, .cfa = 6, .saved = -1)),
			 DUET_WALK_NONE);
	expect_cursor(&cursor, 0x5000, 10, STACK + 40 * 8);
	assert_false(cursor.is_guess);
}

static void by_frame_pointer_with_the_callers_saved(void **state)
{
	const struct duet_unwind_row *row =
		ROW(.rule = DUET_CFA_FP | DUET_ROW_FP_SAVED | RA_SAVED, .cfa = 2, .saved = -2);
	struct unwind_cursor cursor = leaf_at(4, 20);

	stack[20] = STACK + 50 * 8;
	stack[21] = 0x6000;
	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x6000, 22, STACK + 50 * 8);
}

/* Far below the CFA, and near the register that it is reckoned from. */
static void with_words_saved_at_the_lower_end(void **state)
{
	const struct duet_unwind_row *row =
		ROW(.rule = DUET_CFA_SP | DUET_ROW_FP_SAVED | DUET_ROW_FROM_BASE | RA_SAVED, .cfa = 50, .saved = 1);
	struct unwind_cursor cursor = leaf_at(4, 20);

	stack[5] = STACK + 60 * 8;
	stack[WALK_X86 ? 53 : 6] = 0x6000;
	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x6000, 54, STACK + 60 * 8);
}

#if WALK_X86
static void of_functions_that_align_their_stack(void **state)
{
	struct unwind_cursor cursor = leaf_at(4, 20);

	stack[19] = STACK + 30 * 8; /* the CFA */
	stack[20] = STACK + 50 * 8; /* the caller's fp */
	stack[29] = 0x6000;
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_DEREF_FP | DUET_ROW_FP_AT_FP, .cfa = -1)),
			 DUET_WALK_NONE);
	expect_cursor(&cursor, 0x6000, 30, STACK + 50 * 8);
	cursor = leaf_at(4, 20);
	stack[6] = STACK + 32 * 8; /* the sp before the switch, 8 below the CFA */
	stack[32] = 0x7000;
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_DEREF_SP, .cfa = 2)), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x7000, 33, STACK + 20 * 8);
}

static void in_a_plt(void **state)
{
	const struct duet_unwind_row *row = ROW(.rule = DUET_CFA_PLT, .saved = 11);
	struct unwind_cursor cursor = leaf_at(4, 20);

	stack[4] = 0x5000;
	stack[5] = 0x6000;
	cursor.pc = 0x100a;
	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x5000, 5, STACK + 20 * 8);
	cursor = leaf_at(4, 20);
	cursor.pc = 0x100b;
	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x6000, 6, STACK + 20 * 8);
}
#else
static void in_the_link_register(void **state)
{
	struct unwind_cursor cursor = leaf_at(4, 20);

	cursor.lr = 0x00ab000000005000; /* signed */
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_SP)), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x5000, 4, STACK + 20 * 8);
	/* A caller's lr has been overwritten long ago. */
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_SP, .cfa = 2)), DUET_WALK_NO_ROW);
}

/* A frame record does not show where its frame ends. */
static void after_a_guess_sp_is_not_known(void **state)
{
	const struct duet_unwind_row *by_sp = ROW(.rule = DUET_CFA_SP | RA_SAVED, .cfa = 2, .saved = -1);
	const struct duet_unwind_row *by_fp =
		ROW(.rule = DUET_CFA_FP | DUET_ROW_FP_SAVED | RA_SAVED, .cfa = 4, .saved = -4);
	struct unwind_cursor cursor = leaf_at(4, 20);

	stack[20] = STACK + 30 * 8;
	stack[21] = 0x5000;
	assert_int_equal(walk_by_fp(&cursor), DUET_WALK_NONE);
	assert_int_equal(walk_by_row(&cursor, by_sp), DUET_WALK_NO_ROW);
	assert_int_equal(walk_by_row(&cursor, by_fp), DUET_WALK_NONE);
	assert_int_equal(cursor.sp, STACK + 34 * 8);
	assert_false(cursor.no_sp);
}
#endif

/* The kernel's frame: an interrupted pc is no return address. */
static void through_a_signal_frame(void **state)
{
	static struct {
#if !WALK_X86
		char siginfo[128];
#endif
		ucontext_t context;
	} frame;
	struct unwind_cursor cursor = {.pc = 0x1000, .sp = (uint64_t)(uintptr_t)&frame};
	mcontext_t *registers = &frame.context.uc_mcontext;

	own_memory = true;
#if WALK_X86
	registers->gregs[REG_RIP] = 0x5000;
	registers->gregs[REG_RSP] = 0x8888;
	registers->gregs[REG_RBP] = 0x9998;
#else
	registers->pc = 0x5000;
	registers->sp = 0x8888;
	registers->regs[29] = 0x9998;
#endif
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_SIGNAL)), DUET_WALK_NONE);
	assert_int_equal(cursor.pc, 0x5000);
	assert_int_equal(cursor.sp, 0x8888);
	assert_int_equal(cursor.fp, 0x9998);
	assert_false(cursor.is_return);
}

/* musl's trampoline has no row. Other code before one has a row that says that it has no frame, so it cannot call. */
static void through_a_trampoline(void **state)
{
	const struct duet_unwind_row *const described[] = {NULL, ROW(.rule = DUET_CFA_NONE),
						      ROW(.rule = DUET_CFA_SP, .cfa = WALK_X86)};
	const size_t code = 40, sp = 4, registers = sp + WALK_SIGNAL_FP / 8;

	stack[registers + (WALK_SIGNAL_PC - WALK_SIGNAL_FP) / 8] = 0x5000;
	stack[registers + (WALK_SIGNAL_SP - WALK_SIGNAL_FP) / 8] = STACK + 50 * 8;
	for (size_t i = 0; i < sizeof(described) / sizeof(*described) && registers < WORDS; i++) {
		struct unwind_cursor cursor = leaf_at(sp, 2);
		uint16_t guessed = 0;

		cursor.pc = STACK + code * 8;
		cursor.is_return = 1;
		cursor.has_lr = 0;
		stack[code] = WALK_SIGRETURN;
		assert_int_equal(walk_native_step(&cursor, described[i], DUET_CODE_FILE, &guessed), DUET_WALK_NONE);
		assert_int_equal(cursor.pc, 0x5000);
		assert_int_equal(cursor.sp, STACK + 50 * 8);
		assert_false(cursor.is_return);
		assert_int_equal(guessed, 0);
		cursor = leaf_at(sp, 2);
		stack[code]++; /* other code */
		cursor.pc = STACK + code * 8;
		cursor.is_return = 1;
		(void)walk_native_step(&cursor, described[i], DUET_CODE_FILE, &guessed);
		assert_int_not_equal(cursor.pc, 0x5000);
	}
}

#if WALK_X86
/* Go's runtime has called on another stack, on which two functions have kept fp. */
static void through_a_switch_of_stacks(void **state)
{
	struct unwind_cursor cursor = leaf_at(50, 40);
	const struct duet_unwind_row *row = ROW(.rule = DUET_CFA_SWITCHED);

	stack[40] = STACK + 45 * 8;
	stack[45] = STACK + 55 * 8;
	stack[55] = STACK + 20 * 8;
	stack[56] = 0x5000;
	cursor.is_return = 1;
	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x5000, 57, STACK + 20 * 8);
	/* the list of frames is a ring, or leads nowhere */
	cursor = leaf_at(50, 40);
	stack[45] = STACK + 40 * 8;
	(void)walk_by_row(&cursor, row);
	cursor = leaf_at(50, 40);
	stack[45] = 8;
	assert_int_equal(walk_by_row(&cursor, row), DUET_WALK_UNREADABLE);
}
#endif

static void ends_have_reasons(void **state)
{
	const struct duet_unwind_row *outside = ROW(.rule = DUET_CFA_SP | RA_SAVED, .cfa = WORDS + 1, .saved = -1);
	const struct duet_unwind_row *downwards = ROW(.rule = DUET_CFA_FP | RA_SAVED, .cfa = 1, .saved = -1);
	struct unwind_cursor cursor = leaf_at(4, 2);

	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_ENTRY)), DUET_WALK_ENTRY);
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_NONE)), DUET_WALK_NO_ROW);
	assert_int_equal(walk_by_row(&cursor, outside), DUET_WALK_UNREADABLE);
	assert_int_equal(walk_by_row(&cursor, downwards), DUET_WALK_BAD_CFA);
	stack[4] = 0;
	assert_int_equal(walk_by_row(&cursor, ROW(.rule = DUET_CFA_SP | RA_SAVED, .cfa = 1, .saved = -1)),
			 DUET_WALK_ENTRY);
}

static void frame_pointers_are_a_guess(void **state)
{
	struct unwind_cursor cursor = leaf_at(4, 20);

	stack[20] = STACK + 30 * 8;
	stack[21] = 0x5000;
	assert_int_equal(walk_by_fp(&cursor), DUET_WALK_NONE);
	expect_cursor(&cursor, 0x5000, 22, STACK + 30 * 8);
	assert_true(cursor.is_guess);
	cursor.fp = STACK + 10 * 8;
	assert_int_equal(walk_by_fp(&cursor), DUET_WALK_BAD_FP);
	cursor.fp = STACK + 30 * 8 + 1;
	assert_int_equal(walk_by_fp(&cursor), DUET_WALK_BAD_FP);
	cursor.fp = STACK + sizeof(stack);
	assert_int_equal(walk_by_fp(&cursor), DUET_WALK_UNREADABLE);
}

/* Code of JIT compilers keeps frame pointers, so it is no guess; a file's code may keep them or not. */
static void code_in_memory_is_no_guess(void **state)
{
	static const enum duet_code codes[] = {DUET_CODE_UNKNOWN, DUET_CODE_FILE, DUET_CODE_MEMORY};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		struct unwind_cursor cursor = leaf_at(4, 20);
		uint16_t guessed = 0;

		stack[20] = STACK + 30 * 8;
		stack[21] = 0x5000;
		assert_int_equal(walk_native_step(&cursor, NULL, codes[i], &guessed), DUET_WALK_NONE);
		expect_cursor(&cursor, 0x5000, 22, STACK + 30 * 8);
		assert_int_equal(guessed, codes[i] != DUET_CODE_MEMORY);
	}
}

/* Its code passes on the result of the function that it has called. Other code may have no frame pointer, too. */
static void no_frame_pointer_marks_the_outermost_frame(void **state)
{
#if WALK_X86
	static const uint64_t passes[] = {0xe8c789, 0xe8c78948, 0xe8f86348, 0x66f4, 0x10c48949},
			      others[] = {0xc789c085, 0xc78948c0, 0xe8};
#else
	static const uint64_t passes[] = {0x94000010, 0x9400001093407c00, 0xaa0003f5},
			      others[] = {0x14000010, 0xaa0003e093407c00};
#endif
	const struct unwind_cursor outermost = {.pc = STACK, .sp = STACK, .is_return = 1};
	struct unwind_cursor cursor = outermost;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		stack[0] = others[i];
		assert_false(walk_is_outermost(&outermost));
	}
	for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++) {
		stack[0] = passes[i];
		assert_true(walk_is_outermost(&outermost));
	}
	cursor.is_guess = 1;
	assert_false(walk_is_outermost(&cursor));
	cursor = outermost;
	cursor.is_return = 0; /* a leaf may use it for anything */
	assert_false(walk_is_outermost(&cursor));
	cursor = outermost;
	cursor.fp = STACK;
	assert_false(walk_is_outermost(&cursor));
}

static void rows_are_found_by_pc(void **state)
{
	struct duet_unwind_row some[1025];
	struct unwind_rows table = {.rows = {some, 1025, 1025}};

	for (uint32_t i = 0; i < 1025; i++)
		some[i] = (struct duet_unwind_row){.pc = 100 + i * 3};
	rows = &table;
	assert_null(walk_search_rows(NULL, 0, 1025, 99));
	assert_null(walk_search_rows(NULL, 7, 7, 5000));
	assert_null(walk_search_rows(NULL, 1025, 2000, 5000));
	for (uint32_t pc = 100; pc < 100 + 1025 * 3; pc++)
		assert_ptr_equal(walk_search_rows(NULL, 0, 1025, pc), &some[(pc - 100) / 3]);
}

/* ---- this program's own stack ---- */

struct own_file {
	char *path;
	struct unwind_file file;
};

static struct maps maps;
static struct own_file files[32];
static size_t file_count;

static const struct unwind_file *file_of(const struct mapping *mapping)
{
	int fd;

	for (size_t i = 0; i < file_count; i++)
		if (!strcmp(files[i].path, mapping->path))
			return &files[i].file;
	fd = open(mapping->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && file_count < sizeof(files) / sizeof(files[0]));
	assert_int_equal(unwind_file_read(&files[file_count].file, fd), 0);
	close(fd);
	files[file_count].path = mapping->path;
	return &files[file_count++].file;
}

static const struct duet_unwind_row *find_row(uint64_t pc)
{
	const struct mapping *mapping = maps_find(&maps, pc);
	const struct unwind_file *file = mapping ? file_of(mapping) : NULL;
	const struct duet_unwind_page *page;
	uint64_t vaddr, offset;

	assert_non_null(file);
	assert_true(unwind_file_vaddr(file, mapping->offset, mapping->end - mapping->start, &vaddr));
	offset = pc - (mapping->start - vaddr + file->base);
	assert_true(offset >> DUET_UNWIND_PAGE_SHIFT < file->rows.pages.len);
	page = &file->rows.pages.items[offset >> DUET_UNWIND_PAGE_SHIFT];
	rows = &file->rows;
	return walk_search_rows(NULL, page->first, page->end, (uint32_t)offset);
}

/* From getcontext() on; its own pc lies in the frame that called it. */
static size_t walk(const ucontext_t *context, void **pcs)
{
#if WALK_X86
	struct unwind_cursor cursor = {.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP],
				       .sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP],
				       .fp = (uint64_t)context->uc_mcontext.gregs[REG_RBP]};
#else
	struct unwind_cursor cursor = {.pc = context->uc_mcontext.pc,
				       .sp = context->uc_mcontext.sp,
				       .fp = context->uc_mcontext.regs[29],
				       .lr = context->uc_mcontext.regs[30]};
#endif
	size_t count = 0;
	walk_result end;

	do {
		const struct duet_unwind_row *row = find_row(cursor.pc - cursor.is_return);

		assert_true(row && count < MAX_FRAMES);
		pcs[count++] = (void *)(uintptr_t)cursor.pc;
		end = walk_by_row(&cursor, row);
	} while (end == DUET_WALK_NONE);
	assert_int_equal(end, DUET_WALK_ENTRY);
	return count;
}

struct pc_list {
	void *pcs[MAX_FRAMES];
	size_t count;
};

static _Unwind_Reason_Code add_pc(struct _Unwind_Context *context, void *list)
{
	struct pc_list *theirs = list;

	/* It sees one more frame after the outermost one, at address 0. */
	if (theirs->count == MAX_FRAMES || !_Unwind_GetIP(context))
		return _URC_END_OF_STACK;
	theirs->pcs[theirs->count++] = (void *)(uintptr_t)_Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/* Expects the same frames, except the first, where each of the two was called at a pc of its own. */
static __attribute__((noinline)) void compare_here(void)
{
	struct pc_list theirs = {.count = 0}; /* not by backtrace(), into which sanitizers put a frame of theirs */
	void *ours[MAX_FRAMES];
	ucontext_t context;
	size_t count;

	_Unwind_Backtrace(add_pc, &theirs);
	getcontext(&context);
	own_memory = true;
	count = walk(&context, ours);
	assert_true(count > 4);
	assert_int_equal(count, theirs.count);
	assert_memory_equal(ours + 1, theirs.pcs + 1, (count - 1) * sizeof(ours[0]));
}

static __attribute__((noinline)) int compare_numbers(const void *a, const void *b)
{
	compare_here();
	return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) void through_alloca(size_t len)
{
	volatile char *bytes = __builtin_alloca(len);
	int numbers[] = {2, 1};

	bytes[0] = bytes[len - 1] = 1;
	qsort(numbers, 2, sizeof(numbers[0]), compare_numbers);
	bytes[0] = 2;
}

static void the_same_as_libgcc(void **state)
{
	assert_int_equal(maps_read(&maps, CHARGE_OWN(getpid())), 0);
	compare_here();
	for (size_t len = 1; len < 3000; len += 777)
		through_alloca(len);
	for (size_t i = 0; i < file_count; i++)
		unwind_file_release(&files[i].file);
	maps_release(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if WALK_X86
		cmocka_unit_test_setup(called_leaf, fresh_stack),
		cmocka_unit_test_setup(called_function_with_a_frame, fresh_stack),
		cmocka_unit_test_setup(by_the_return_address_in_rdi, fresh_stack),
#endif
		cmocka_unit_test_setup(by_stack_pointer, fresh_stack),
		cmocka_unit_test_setup(by_frame_pointer_with_the_callers_saved, fresh_stack),
		cmocka_unit_test_setup(with_words_saved_at_the_lower_end, fresh_stack),
#if WALK_X86
		cmocka_unit_test_setup(of_functions_that_align_their_stack, fresh_stack),
		cmocka_unit_test_setup(in_a_plt, fresh_stack),
#else
		cmocka_unit_test_setup(in_the_link_register, fresh_stack),
		cmocka_unit_test_setup(after_a_guess_sp_is_not_known, fresh_stack),
#endif
		cmocka_unit_test_setup(through_a_signal_frame, fresh_stack),
		cmocka_unit_test_setup(through_a_trampoline, fresh_stack),
#if WALK_X86
		cmocka_unit_test_setup(through_a_switch_of_stacks, fresh_stack),
#endif
		cmocka_unit_test_setup(ends_have_reasons, fresh_stack),
		cmocka_unit_test_setup(frame_pointers_are_a_guess, fresh_stack),
		cmocka_unit_test_setup(code_in_memory_is_no_guess, fresh_stack),
		cmocka_unit_test_setup(no_frame_pointer_marks_the_outermost_frame, fresh_stack),
		cmocka_unit_test_setup(rows_are_found_by_pc, fresh_stack),
		cmocka_unit_test_setup(the_same_as_libgcc, fresh_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
