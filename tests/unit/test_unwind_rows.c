/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/unwind_file.h"

#define VADDR 0x10000 /* of .eh_frame */
#define CODE 0x2000
#define PLT_EXPRESSION 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22

/* An .eh_frame, or .debug_frame, made by hand. */
struct made {
	uint8_t bytes[8192];
	size_t len;
	bool is_debug_frame;
};

static void put(struct made *made, const void *bytes, size_t len)
{
	assert_true(made->len + len <= sizeof(made->bytes));
	memcpy(made->bytes + made->len, bytes, len);
	made->len += len;
}

static void put32(struct made *made, uint32_t number)
{
	put(made, &number, sizeof(number));
}

/* One entry with its length and id; returns where it starts. */
static size_t entry(struct made *made, uint32_t id, const void *body, size_t len)
{
	size_t at = made->len;

	put32(made, (uint32_t)len + 4);
	put32(made, id);
	put(made, body, len);
	return at;
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define CIE(made, ...) entry(made, 0, BYTES(__VA_ARGS__))
/* Version 1, "zR", code 1, data -8, ra 16, addresses relative and of 4 bytes; then CFA = rsp + 8, ra at CFA - 8. */
#define X86_CIE 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1

static void fde(struct made *made, size_t cie, uint64_t start, uint32_t len, const uint8_t *program, size_t program_len)
{
	uint8_t body[256];
	int32_t distance = (int32_t)(start - (VADDR + made->len + 8));

	memcpy(body, &distance, 4);
	memcpy(body + 4, &len, 4);
	body[8] = 0; /* no augmentation data */
	memcpy(body + 9, program, program_len);
	entry(made, (uint32_t)(made->len + 4 - cie), body, 9 + program_len);
}

/* Version 4, no augmentation, addresses of 8 bytes, no segments; then the same. */
#define DEBUG_CIE(made, ...) entry(made, UINT32_MAX, BYTES(__VA_ARGS__))
#define X86_DEBUG_CIE_4 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1

static void debug_fde(struct made *made, size_t cie, uint64_t start, uint64_t len, const uint8_t *program,
		      size_t program_len)
{
	uint8_t body[256];

	memcpy(body, &start, 8);
	memcpy(body + 8, &len, 8);
	memcpy(body + 16, program, program_len);
	entry(made, (uint32_t)cie, body, 16 + program_len);
}

static int read_made(const struct made *made, const struct cfi_machine *machine, uint64_t code_end,
		     struct unwind_rows *ret)
{
	struct cfi_section section = {made->bytes, made->len, VADDR, made->is_debug_frame, CODE, code_end};

	return unwind_rows_make(ret, machine, &section);
}

static struct unwind_rows rows_of(const struct made *made, const struct cfi_machine *machine)
{
	struct unwind_rows rows = {0};

	assert_int_equal(read_made(made, machine, UINT64_MAX, &rows), 0);
	return rows;
}

static void expect_row(const struct unwind_rows *rows, size_t i, uint64_t pc, uint8_t rule, int cfa, int saved)
{
	const struct duet_unwind_row *row = &rows->rows.items[i];

	assert_true(i < rows->rows.len);
	assert_int_equal(rows->base + row->pc, pc);
	assert_int_equal(row->rule, rule);
	assert_int_equal(row->cfa * 8, cfa);
	assert_int_equal(row->saved * 8, saved);
}

static void a_function_with_a_frame_pointer(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	/* push rbp; mov rsp, rbp; ...; pop rbp; ret */
	fde(&made, cie, CODE, 0x40, BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x40 + 0x30, 0x0c, 7, 8, 0xc0 + 6));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 5);
	expect_row(&rows, 0, CODE, DUET_CFA_SP, 8, 0);
	expect_row(&rows, 1, CODE + 1, DUET_CFA_SP | DUET_ROW_FP_SAVED, 16, -16);
	expect_row(&rows, 2, CODE + 4, DUET_CFA_FP | DUET_ROW_FP_SAVED, 16, -16);
	expect_row(&rows, 3, CODE + 0x34, DUET_CFA_SP, 8, 0);
	expect_row(&rows, 4, CODE + 0x40, DUET_CFA_NONE, 0, 0);
	unwind_rows_release(&rows);
}

/* Assembler without call frame information, of which it is known that it makes no frames. */
static void gaps_are_filled(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 0x10, BYTES(0x41, 0x0e, 16));
	fde(&made, cie, CODE + 0x40, 0x10, BYTES(0x41, 0x0e, 16));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 6);
	expect_row(&rows, 2, CODE + 0x10, DUET_CFA_NONE, 0, 0);
	unwind_rows_fill_gaps(&rows, &cfi_x86_64);
	expect_row(&rows, 2, CODE + 0x10, DUET_CFA_SP, 8, 0);
	expect_row(&rows, 5, CODE + 0x50, DUET_CFA_NONE, 0, 0);
	unwind_rows_release(&rows);
}

/* vfork(3) of glibc: pop rdi; syscall; push rdi. */
static void the_return_address_in_a_register(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 0x10, BYTES(0x41, 0x0e, 0, 0x09, 16, 5, 0x48, 0x0e, 8));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 4);
	expect_row(&rows, 1, CODE + 1, DUET_CFA_SP | DUET_ROW_RA_SAVED, 0, 0);
	expect_row(&rows, 2, CODE + 9, DUET_CFA_SP | DUET_ROW_RA_SAVED, 8, 0);
	expect_row(&rows, 3, CODE + 0x10, DUET_CFA_NONE, 0, 0);
	unwind_rows_release(&rows);
}

static void states_are_remembered(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 0x40, BYTES(0x44, 0x0e, 64, 0x0a, 0x44, 0x0e, 8, 0x44, 0x0b));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 5);
	expect_row(&rows, 1, CODE + 4, DUET_CFA_SP, 64, 0);
	expect_row(&rows, 2, CODE + 8, DUET_CFA_SP, 8, 0);
	expect_row(&rows, 3, CODE + 12, DUET_CFA_SP, 64, 0);
	unwind_rows_release(&rows);
}

static void all_widths_of_advances_and_offsets(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 0x40000,
	    BYTES(0x02, 0x80, 0x0e, 16, 0x03, 0x00, 0x10, 0x13, 0x7d, 0x04, 0x00, 0x00, 0x01, 0x00, 0x0e, 0x80, 0x20,
		  0x41, 0x12, 6, 0x7e, 0x11, 6, 2));
	rows = rows_of(&made, &cfi_x86_64);
	expect_row(&rows, 1, CODE + 0x80, DUET_CFA_SP, 16, 0);
	expect_row(&rows, 2, CODE + 0x1080, DUET_CFA_SP, 24, 0);
	expect_row(&rows, 3, CODE + 0x11080, DUET_CFA_SP, 4096, 0);
	expect_row(&rows, 4, CODE + 0x11081, DUET_CFA_FP | DUET_ROW_FP_SAVED, 16, -16);
	unwind_rows_release(&rows);
}

static void known_expressions(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 32, BYTES(0x0f, 11, PLT_EXPRESSION));
	fde(&made, cie, CODE + 32, 32, BYTES(0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0));
	fde(&made, cie, CODE + 64, 32, BYTES(0x0f, 5, 0x77, 0x10, 0x06, 0x23, 8));
	fde(&made, cie, CODE + 96, 32, BYTES(0x0f, 3, 0x75, 0x78, 0x06)); /* from another register */
	rows = rows_of(&made, &cfi_x86_64);
	expect_row(&rows, 0, CODE, DUET_CFA_PLT, 0, 11 * 8);
	expect_row(&rows, 1, CODE + 32, DUET_CFA_DEREF_FP | DUET_ROW_FP_AT_FP, -8, 0);
	expect_row(&rows, 2, CODE + 64, DUET_CFA_DEREF_SP, 16, 0);
	expect_row(&rows, 3, CODE + 96, DUET_CFA_NONE, 0, 0);
	unwind_rows_release(&rows);
}

static void entries_and_signal_frames(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	size_t signal = CIE(&made, 1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 32, BYTES(0x07, 16)); /* the return address is undefined */
	fde(&made, signal, CODE + 64, 32, BYTES(0x0f, 4, 0x77, 0xa0, 0x01, 0x06));
	rows = rows_of(&made, &cfi_x86_64);
	expect_row(&rows, 0, CODE, DUET_CFA_ENTRY, 0, 0);
	expect_row(&rows, 1, CODE + 32, DUET_CFA_NONE, 0, 0);
	expect_row(&rows, 2, CODE + 64, DUET_CFA_SIGNAL, 0, 0);
	unwind_rows_release(&rows);
}

static void what_rows_cannot_tell_is_not_told(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 32, BYTES(0x44, 0x0c, 10, 0)); /* CFA = r10 */
	fde(&made, cie, CODE + 64, 32, BYTES(0x44, 0x0e, 0x88, 0x80, 0x80, 1)); /* a frame of 2 MB */
	fde(&made, cie, CODE + 128, 32, BYTES(0x44, 0x09, 16, 4)); /* return address in rsi */
	fde(&made, cie, CODE + 192, 32, BYTES(0x44, 0x0e, 12)); /* no whole word */
	fde(&made, cie, CODE + 256, 32, BYTES(0x44, 0x0e, 0x80, 0x40, 0x86, 0x80, 2)); /* rbp far from both ends */
	rows = rows_of(&made, &cfi_x86_64);
	for (size_t i = 0; i < 5; i++) {
		expect_row(&rows, 2 * i, CODE + 64 * i, DUET_CFA_SP, 8, 0);
		expect_row(&rows, 2 * i + 1, CODE + 64 * i + 4, DUET_CFA_NONE, 0, 0);
	}
	unwind_rows_release(&rows);
}

static void arm64_keeps_pairs(void **state)
{
	struct made made = {0};
	/* code 4, data -8, ra 30: CFA = sp */
	size_t cie = CIE(&made, 1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0);
	struct unwind_rows rows;

	/* stp x29, x30, [sp, -32]!; mov x29, sp; paciasp tells of itself */
	fde(&made, cie, CODE, 64, BYTES(0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29));
	fde(&made, cie, CODE + 128, 64, BYTES(0x41, 0x0e, 16, 0x9e, 2)); /* x30 alone */
	fde(&made, cie, CODE + 256, 64, BYTES(0x41, 0x0e, 32, 0x9d, 4, 0x9e, 2)); /* not side by side */
	/* sub sp, sp, 4096; stp x29, x30, [sp] */
	fde(&made, cie, CODE + 384, 64, BYTES(0x41, 0x0e, 0x80, 0x20, 0x9d, 0x80, 0x04, 0x9e, 0xff, 0x03));
	rows = rows_of(&made, &cfi_aarch64);
	expect_row(&rows, 0, CODE, DUET_CFA_SP, 0, 0);
	expect_row(&rows, 1, CODE + 8, DUET_CFA_SP | DUET_ROW_FP_SAVED | DUET_ROW_RA_SAVED, 32, -32);
	expect_row(&rows, 2, CODE + 12, DUET_CFA_FP | DUET_ROW_FP_SAVED | DUET_ROW_RA_SAVED, 32, -32);
	expect_row(&rows, 5, CODE + 132, DUET_CFA_SP | DUET_ROW_RA_SAVED, 16, -16);
	expect_row(&rows, 8, CODE + 260, DUET_CFA_NONE, 0, 0);
	expect_row(&rows, 10, CODE + 388, DUET_CFA_SP | DUET_ROW_FP_SAVED | DUET_ROW_RA_SAVED | DUET_ROW_FROM_BASE,
		   4096, 0);
	unwind_rows_release(&rows);
}

static void neighbours_that_say_the_same_are_one(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE + 0x48, 8, BYTES(0));
	fde(&made, cie, CODE, 0x30, BYTES(0x44, 0x0e, 16, 0x44, 0x87, 2)); /* r7's place is of no use */
	fde(&made, cie, CODE + 0x30, 0x10, BYTES(0x0e, 16));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 4);
	expect_row(&rows, 1, CODE + 4, DUET_CFA_SP, 16, 0);
	expect_row(&rows, 2, CODE + 0x48, DUET_CFA_SP, 8, 0); /* 8 bytes of padding before it */
	expect_row(&rows, 3, CODE + 0x50, DUET_CFA_NONE, 0, 0);
	unwind_rows_release(&rows);
}

static void pages_lead_to_every_row(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	for (uint32_t i = 0; i < 40; i++)
		fde(&made, cie, CODE + i * 333, 200, BYTES(0x44, 0x0e, 16, 0x50, 0x0e, 32));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 160);
	for (uint32_t pc = CODE; pc <= CODE + 39 * 333 + 200; pc++) {
		uint32_t offset = (uint32_t)(pc - rows.base), in_force = 0;
		const struct duet_unwind_page *page = &rows.pages.items[offset >> DUET_UNWIND_PAGE_SHIFT];

		assert_true(offset >> DUET_UNWIND_PAGE_SHIFT < rows.pages.len);
		while (in_force + 1 < rows.rows.len && rows.rows.items[in_force + 1].pc <= offset)
			in_force++;
		assert_in_range(in_force, page->first, page->end - 1);
	}
	unwind_rows_release(&rows);
}

static void damage_ends_a_function_not_the_file(void **state)
{
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);
	struct unwind_rows rows;

	fde(&made, cie, CODE, 32, BYTES(0x44, 0x0e, 16, 0x44, 0x3f)); /* no such instruction */
	fde(&made, cie, CODE + 64, 32, BYTES(0x44, 0x0b)); /* nothing was remembered */
	fde(&made, cie, CODE + 128, 32, BYTES(0x44, 0x0f, 200, 1)); /* longer than there is */
	fde(&made, 4, CODE + 192, 32, BYTES(0)); /* a CIE in the middle of another */
	fde(&made, cie, CODE + 256, 32, BYTES(0x44, 0x0e, 24));
	rows = rows_of(&made, &cfi_x86_64);
	expect_row(&rows, 1, CODE + 4, DUET_CFA_SP, 16, 0);
	expect_row(&rows, 2, CODE + 8, DUET_CFA_NONE, 0, 0);
	expect_row(&rows, rows.rows.len - 2, CODE + 260, DUET_CFA_SP, 24, 0);
	for (size_t i = 3; i + 3 < rows.rows.len; i++)
		assert_true(rows.rows.items[i].rule == DUET_CFA_NONE || rows.rows.items[i].cfa == 1);
	unwind_rows_release(&rows);
}

/* Every prefix, and every byte inverted: the rows may be anything, but nothing crashes. */
static void damage(const struct made *made, bool is_debug_frame)
{
	for (size_t i = 0; i < made->len * 8; i++) {
		size_t len = i % 8 ? made->len : i / 8;
		struct unwind_rows rows = {0};
		uint8_t *copy = malloc(made->len);
		struct cfi_section section = {copy, len, VADDR, is_debug_frame, CODE, UINT64_MAX};

		memcpy(copy, made->bytes, made->len);
		copy[i / 8] ^= (uint8_t)(0xff >> (i % 8));
		if (!unwind_rows_make(&rows, &cfi_x86_64, &section))
			unwind_rows_release(&rows);
		free(copy);
	}
}

static void any_damage_is_survived(void **state)
{
	struct made made = {0}, debug = {.is_debug_frame = true};
	size_t cie = CIE(&made, X86_CIE);

	fde(&made, cie, CODE, 64,
	    BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x44, 0x0b, 0x0f, 11, PLT_EXPRESSION));
	fde(&made, cie, CODE + 64, 64, BYTES(0x07, 16));
	damage(&made, false);
	debug_fde(&debug, DEBUG_CIE(&debug, X86_DEBUG_CIE_4), CODE, 64, BYTES(0x41, 0x0e, 16, 0x86, 2));
	damage(&debug, true);
}

/* ---- .debug_frame ---- */

/* The CIE is where the section's start and a distance say, addresses are as they are. */
static void debug_frame_of_each_version(void **state)
{
	struct made made = {.is_debug_frame = true};
	size_t cies[] = {DEBUG_CIE(&made, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1),
			 DEBUG_CIE(&made, 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1), DEBUG_CIE(&made, X86_DEBUG_CIE_4)};
	struct unwind_rows rows;

	for (size_t i = 0; i < 3; i++)
		debug_fde(&made, cies[i], CODE + 64 * i, 32, BYTES(0x44, 0x0e, 16));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 9);
	for (size_t i = 0; i < 3; i++) {
		expect_row(&rows, 3 * i, CODE + 64 * i, DUET_CFA_SP, 8, 0);
		expect_row(&rows, 3 * i + 1, CODE + 64 * i + 4, DUET_CFA_SP, 16, 0);
		expect_row(&rows, 3 * i + 2, CODE + 64 * i + 32, DUET_CFA_NONE, 0, 0);
	}
	unwind_rows_release(&rows);
}

static void debug_frame_of_64_bits(void **state)
{
	static const uint8_t cie[] = {X86_DEBUG_CIE_4};
	struct made made = {.is_debug_frame = true};
	struct unwind_rows rows;
	uint64_t numbers[] = {8 + sizeof(cie), UINT64_MAX}, fde_numbers[] = {24, 0, CODE, 32};

	put32(&made, UINT32_MAX);
	put(&made, numbers, sizeof(numbers));
	put(&made, cie, sizeof(cie));
	put32(&made, UINT32_MAX);
	put(&made, fde_numbers, sizeof(fde_numbers));
	rows = rows_of(&made, &cfi_x86_64);
	assert_int_equal(rows.rows.len, 2);
	expect_row(&rows, 0, CODE, DUET_CFA_SP, 8, 0);
	expect_row(&rows, 1, CODE + 32, DUET_CFA_NONE, 0, 0);
	unwind_rows_release(&rows);
}

static void debug_frame_of_other_machines_is_refused(void **state)
{
	struct made made = {.is_debug_frame = true};
	size_t narrow = DEBUG_CIE(&made, 4, 0, 4, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1);
	size_t segments = DEBUG_CIE(&made, 4, 0, 8, 2, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1);
	size_t later = DEBUG_CIE(&made, 5, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1);
	struct unwind_rows rows;

	debug_fde(&made, narrow, CODE, 32, BYTES(0));
	debug_fde(&made, segments, CODE + 64, 32, BYTES(0));
	debug_fde(&made, later, CODE + 128, 32, BYTES(0));
	assert_int_equal(read_made(&made, &cfi_x86_64, UINT64_MAX, &rows), -ENODATA);
}

static void debug_frame_knows_signal_frames(void **state)
{
	struct made made = {.is_debug_frame = true};
	size_t signal = DEBUG_CIE(&made, 1, 'S', 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1);
	struct unwind_rows rows;

	debug_fde(&made, signal, CODE, 32, BYTES(0x0f, 4, 0x77, 0xa0, 0x01, 0x06));
	rows = rows_of(&made, &cfi_x86_64);
	expect_row(&rows, 0, CODE, DUET_CFA_SIGNAL, 0, 0);
	unwind_rows_release(&rows);
}

/* Linkers leave functions that they dropped in .debug_frame, at 0 or elsewhere. These must not hide other functions. */
static void code_elsewhere_is_left_out(void **state)
{
	struct made made = {.is_debug_frame = true};
	size_t cie = DEBUG_CIE(&made, X86_DEBUG_CIE_4);
	struct unwind_rows rows;

	debug_fde(&made, cie, 0, 1 << 30, BYTES(0x44, 0x0e, 64));
	debug_fde(&made, cie, CODE + 4096, 32, BYTES(0x44, 0x0e, 64));
	debug_fde(&made, cie, UINT64_MAX - 1, 1 << 20, BYTES(0x44, 0x0e, 64));
	debug_fde(&made, cie, CODE + 64, 1 << 20, BYTES(0x44, 0x0e, 64));
	debug_fde(&made, cie, CODE + 128, 32, BYTES(0));
	assert_int_equal(read_made(&made, &cfi_x86_64, CODE + 4096, &rows), 0);
	assert_int_equal(rows.rows.len, 2);
	expect_row(&rows, 0, CODE + 128, DUET_CFA_SP, 8, 0);
	unwind_rows_release(&rows);
}

static void one_table_fills_the_gaps_of_another(void **state)
{
	struct made made = {0}, debug = {.is_debug_frame = true};
	size_t cie = CIE(&made, X86_CIE), debug_cie = DEBUG_CIE(&debug, X86_DEBUG_CIE_4);
	struct unwind_rows rows, more, none = {0};

	fde(&made, cie, CODE + 0x100, 0x40, BYTES(0x44, 0x0e, 16));
	fde(&made, cie, CODE + 0x200, 0x40, BYTES(0x44, 0x0e, 24));
	debug_fde(&debug, debug_cie, CODE, 0x40, BYTES(0x44, 0x0e, 32)); /* before */
	debug_fde(&debug, debug_cie, CODE + 0x110, 0x90, BYTES(0x44, 0x0e, 40)); /* from the middle of one on */
	debug_fde(&debug, debug_cie, CODE + 0x200, 0x40, BYTES(0x44, 0x0e, 48)); /* the same function */
	debug_fde(&debug, debug_cie, CODE + 0x1000, 0x40, BYTES(0x44, 0x0e, 56)); /* behind */
	rows = rows_of(&made, &cfi_x86_64);
	more = rows_of(&debug, &cfi_x86_64);
	assert_int_equal(unwind_rows_merge(&rows, &more), 0);
	assert_int_equal(rows.rows.len, 13);
	expect_row(&rows, 0, CODE, DUET_CFA_SP, 8, 0);
	expect_row(&rows, 1, CODE + 4, DUET_CFA_SP, 32, 0);
	expect_row(&rows, 2, CODE + 0x40, DUET_CFA_NONE, 0, 0);
	expect_row(&rows, 4, CODE + 0x104, DUET_CFA_SP, 16, 0);
	expect_row(&rows, 5, CODE + 0x140, DUET_CFA_SP, 40, 0);
	expect_row(&rows, 6, CODE + 0x1a0, DUET_CFA_NONE, 0, 0);
	expect_row(&rows, 8, CODE + 0x204, DUET_CFA_SP, 24, 0);
	expect_row(&rows, 11, CODE + 0x1004, DUET_CFA_SP, 56, 0);
	assert_int_equal(rows.pages.len, 5);
	assert_int_equal(unwind_rows_merge(&none, &more), 0);
	assert_int_equal(none.rows.len, more.rows.len);
	unwind_rows_release(&rows);
	unwind_rows_release(&more);
	unwind_rows_release(&none);
}

static void nothing_is_no_data(void **state)
{
	struct unwind_rows rows = {0};
	struct made made = {0};

	assert_int_equal(read_made(&made, &cfi_x86_64, UINT64_MAX, &rows), -ENODATA);
	put32(&made, 0); /* the end mark alone */
	assert_int_equal(read_made(&made, &cfi_x86_64, UINT64_MAX, &rows), -ENODATA);
	CIE(&made, X86_CIE);
	assert_int_equal(read_made(&made, &cfi_x86_64, UINT64_MAX, &rows), -ENODATA);
}

static void a_file_may_not_cost_what_it_wants(void **state)
{
	struct unwind_rows rows = {0};
	struct made made = {0};
	size_t cie = CIE(&made, X86_CIE);

	fde(&made, cie, CODE, 16, BYTES(0));
	fde(&made, cie, CODE + 0x40000000, 16, BYTES(0)); /* 1 GB of code */
	assert_int_equal(read_made(&made, &cfi_x86_64, UINT64_MAX, &rows), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_with_a_frame_pointer),
		cmocka_unit_test(gaps_are_filled),
		cmocka_unit_test(the_return_address_in_a_register),
		cmocka_unit_test(states_are_remembered),
		cmocka_unit_test(all_widths_of_advances_and_offsets),
		cmocka_unit_test(known_expressions),
		cmocka_unit_test(entries_and_signal_frames),
		cmocka_unit_test(what_rows_cannot_tell_is_not_told),
		cmocka_unit_test(arm64_keeps_pairs),
		cmocka_unit_test(neighbours_that_say_the_same_are_one),
		cmocka_unit_test(pages_lead_to_every_row),
		cmocka_unit_test(damage_ends_a_function_not_the_file),
		cmocka_unit_test(any_damage_is_survived),
		cmocka_unit_test(debug_frame_of_each_version),
		cmocka_unit_test(debug_frame_of_64_bits),
		cmocka_unit_test(debug_frame_of_other_machines_is_refused),
		cmocka_unit_test(debug_frame_knows_signal_frames),
		cmocka_unit_test(code_elsewhere_is_left_out),
		cmocka_unit_test(one_table_fills_the_gaps_of_another),
		cmocka_unit_test(nothing_is_no_data),
		cmocka_unit_test(a_file_may_not_cost_what_it_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
