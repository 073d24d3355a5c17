// SPDX-License-Identifier: MIT
#include "unwind/unwind_rows.h"

#include <errno.h>

#define PAGE_BYTES (1ull << DUET_UNWIND_PAGE_SHIFT)
#define WORD 8
#define ALIGNMENT 16 /* of functions, in bytes */

static bool to_words(int64_t bytes, int64_t lowest, int64_t highest, int64_t *ret)
{
	*ret = bytes / WORD;
	return bytes % WORD == 0 && *ret >= lowest && *ret <= highest;
}

/* Counts in words from the CFA or, if that is too far, from the register from which the CFA is computed. */
static bool encode_place(struct duet_unwind_row *row, const struct cfi_state *state, int64_t offset)
{
	bool has_base = state->cfa == DUET_CFA_SP || state->cfa == DUET_CFA_FP;
	int64_t words;

	if (!to_words(offset, INT8_MIN, INT8_MAX, &words)) {
		if (!has_base || !to_words(state->cfa_offset + offset, INT8_MIN, INT8_MAX, &words))
			return false;
		row->rule |= DUET_ROW_FROM_BASE;
	}
	row->saved = (int8_t)words;
	return true;
}

/* How the caller's fp and return address are saved. On arm64 the latter alone, or directly after fp. */
static bool encode_saved(struct duet_unwind_row *row, const struct cfi_state *state, const struct cfi_machine *machine)
{
	bool fp_saved = state->fp.rule == CFI_OFFSET, ra_saved = !machine->ra_on_stack && state->ra.rule == CFI_OFFSET;

	if (state->fp.rule == CFI_AT_FP)
		row->rule |= DUET_ROW_FP_AT_FP;
	else if (!fp_saved && state->fp.rule != CFI_SAME)
		return false;
	if (fp_saved && ra_saved && state->ra.offset != state->fp.offset + WORD)
		return false;
	row->rule |= (fp_saved ? DUET_ROW_FP_SAVED : 0) | (ra_saved ? DUET_ROW_RA_SAVED : 0);
	if (!fp_saved && !ra_saved)
		return true;
	return encode_place(row, state, fp_saved ? state->fp.offset : state->ra.offset);
}

static bool encode_frame(struct duet_unwind_row *row, const struct cfi_state *state, const struct cfi_machine *machine)
{
	bool linked = state->ra.rule == CFI_LINKED;
	int64_t words;

	if (machine->ra_on_stack ? !linked && (state->ra.rule != CFI_OFFSET || state->ra.offset != -WORD)
				 : state->ra.rule != CFI_OFFSET && state->ra.rule != CFI_SAME)
		return false;
	row->rule = state->cfa;
	if (!encode_saved(row, state, machine))
		return false;
	if (state->cfa == DUET_CFA_PLT) {
		row->saved = (int8_t)state->plt_push_end;
		return row->rule == DUET_CFA_PLT;
	}
	if (!to_words(state->cfa_offset, INT16_MIN, INT16_MAX, &words))
		return false;
	row->cfa = (int16_t)words;
	row->rule |= linked ? DUET_ROW_RA_SAVED : 0;
	return true;
}

static struct duet_unwind_row encode(const struct cfi_state *state, const struct cfi_machine *machine)
{
	struct duet_unwind_row row = {0};

	if (state->cfa == DUET_CFA_SIGNAL)
		return (struct duet_unwind_row){.rule = DUET_CFA_SIGNAL};
	if (state->ra.rule == CFI_UNDEFINED)
		return (struct duet_unwind_row){.rule = DUET_CFA_ENTRY};
	if (state->cfa == DUET_CFA_NONE || !encode_frame(&row, state, machine))
		return (struct duet_unwind_row){.rule = DUET_CFA_NONE};
	return row;
}

static int add_row(struct unwind_rows *rows, uint64_t pc, struct duet_unwind_row row)
{
	struct duet_unwind_row *last = rows->rows.len ? &rows->rows.items[rows->rows.len - 1] : NULL;

	if (last && last->cfa == row.cfa && last->saved == row.saved && last->rule == row.rule)
		return 0;
	row.pc = (uint32_t)(pc - rows->base);
	if (last && last->pc == row.pc) { /* the end of one function is the start of the next */
		*last = row;
		return 0;
	}
	return rows->rows.len < UNWIND_MAX_ROWS ? vec_push(&rows->rows, row) : -E2BIG;
}

/* Rows that are being made from a section. */
struct making {
	struct cfi cfi;
	struct unwind_rows rows;
};

static int on_state(void *context, uint64_t pc, const struct cfi_state *state)
{
	struct making *making = context;

	return add_row(&making->rows, pc, encode(state, making->cfi.machine));
}

static int add_function(struct making *making, size_t i)
{
	const struct cfi_fde *fde = &making->cfi.fdes.items[i];
	/* no code runs in the gap before an aligned function; rows for such gaps would be a fourth of all rows */
	bool is_padding = i + 1 < making->cfi.fdes.len && fde[1].start - fde->end < ALIGNMENT;
	int err = cfi_run(&making->cfi, fde, on_state, making);

	if (!err && !is_padding)
		err = add_row(&making->rows, fde->end, (struct duet_unwind_row){.rule = DUET_CFA_NONE});
	return err;
}

/* Makes the index up to the last row, which ends the code. */
static int build_pages(struct unwind_rows *rows)
{
	uint64_t count = rows->rows.items[rows->rows.len - 1].pc / PAGE_BYTES + 1;
	uint32_t row = 0;
	int err = vec_reserve(&rows->pages, count);

	for (uint64_t page = 0; !err && page < count; page++) {
		uint32_t first = row;

		while (row + 1 < rows->rows.len && rows->rows.items[row + 1].pc <= (page + 1) * PAGE_BYTES)
			row++;
		err = vec_push(&rows->pages, (struct duet_unwind_page){first, row + 1});
	}
	return err;
}

uint64_t unwind_rows_base(uint64_t code_start)
{
	return code_start & ~(PAGE_BYTES - 1);
}

static bool is_too_large(const struct unwind_rows *rows, uint64_t end)
{
	return (end - rows->base) / PAGE_BYTES + 1 >= UNWIND_MAX_PAGES;
}

static int find_functions(struct making *making)
{
	struct cfi *cfi = &making->cfi;
	int err = cfi_find(cfi);

	if (err)
		return err;
	if (!cfi->fdes.len)
		return -ENODATA;
	return is_too_large(&making->rows, cfi->fdes.items[cfi->fdes.len - 1].end) ? -E2BIG : 0;
}

int unwind_rows_make(struct unwind_rows *ret, const struct cfi_machine *machine, const struct cfi_section *section)
{
	struct making making = {.rows.base = unwind_rows_base(section->code_start)};
	int err;

	cfi_begin(&making.cfi, machine, section);
	err = find_functions(&making);
	for (size_t i = 0; !err && i < making.cfi.fdes.len; i++)
		err = add_function(&making, i);
	if (!err)
		err = build_pages(&making.rows);
	cfi_release(&making.cfi);
	if (err)
		unwind_rows_release(&making.rows);
	else
		*ret = making.rows;
	return err;
}

bool unwind_rows_cover(const struct unwind_rows *rows, uint64_t vaddr)
{
	uint64_t pc = vaddr - rows->base, page = pc / PAGE_BYTES;
	size_t low, high;

	if (vaddr < rows->base || page >= rows->pages.len)
		return false;
	low = rows->pages.items[page].first;
	high = rows->pages.items[page].end;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows->rows.items[middle].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low && rows->rows.items[low - 1].rule != DUET_CFA_NONE;
}

static int add_spans(struct unwind_rows *rows, const struct unwind_span *spans, size_t count)
{
	static const struct duet_unwind_row framed = {.cfa = 2, .saved = -2, .rule = DUET_CFA_FP | DUET_ROW_FP_SAVED};
	static const struct duet_unwind_row nothing = {.rule = DUET_CFA_NONE};
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		bool is_cut = i + 1 < count && spans[i + 1].start <= spans[i].end;
		struct duet_unwind_row other = {.rule = (uint8_t)spans[i].cfa};

		err = add_row(rows, spans[i].start, spans[i].cfa == DUET_CFA_FP ? framed : other);
		if (!err && !is_cut)
			err = add_row(rows, spans[i].end, nothing);
	}
	return err;
}

int unwind_rows_of_frames(struct unwind_rows *rows, uint64_t code_start, const struct unwind_span *spans, size_t count)
{
	struct unwind_rows made = {.base = unwind_rows_base(code_start)};
	int err;

	if (is_too_large(&made, spans[count - 1].end))
		return -E2BIG;
	err = add_spans(&made, spans, count);
	if (!err)
		err = build_pages(&made);
	if (err)
		unwind_rows_release(&made);
	else
		*rows = made;
	return err;
}

/* Reads one of the tables from its start. */
struct reader {
	const struct unwind_rows *rows;
	size_t next;
};

static uint64_t next_pc(const struct reader *reader)
{
	return reader->next < reader->rows->rows.len ? reader->rows->rows.items[reader->next].pc : UINT64_MAX;
}

/* Advances to `pc`, which is not after the next row. Returns the row in force there. */
static struct duet_unwind_row go_to(struct reader *reader, uint64_t pc)
{
	reader->next += next_pc(reader) == pc;
	return reader->next ? reader->rows->rows.items[reader->next - 1]
			    : (struct duet_unwind_row){.rule = DUET_CFA_NONE};
}

int unwind_rows_merge(struct unwind_rows *rows, const struct unwind_rows *more)
{
	struct unwind_rows merged = {.base = more->base};
	struct reader first = {rows, 0}, second = {more, 0};
	uint64_t pc;
	int err = 0;

	while (!err && (pc = next_pc(&first) < next_pc(&second) ? next_pc(&first) : next_pc(&second)) != UINT64_MAX) {
		struct duet_unwind_row row = go_to(&first, pc), other = go_to(&second, pc);

		err = add_row(&merged, merged.base + pc, row.rule == DUET_CFA_NONE ? other : row);
	}
	if (!err)
		err = build_pages(&merged);
	unwind_rows_release(err ? &merged : rows);
	if (!err)
		*rows = merged;
	return err;
}

void unwind_rows_fill_gaps(struct unwind_rows *rows, const struct cfi_machine *machine)
{
	/* All rows but the last, which ends the code. */
	for (size_t i = 0; i + 1 < rows->rows.len; i++) {
		struct duet_unwind_row *row = &rows->rows.items[i];

		if (row->rule == DUET_CFA_NONE)
			*row = (struct duet_unwind_row){
				.pc = row->pc, .cfa = machine->ra_on_stack, .rule = DUET_CFA_SP};
	}
}

void unwind_rows_release(struct unwind_rows *rows)
{
	if (!rows)
		return;
	vec_release(&rows->rows);
	vec_release(&rows->pages);
}

void unwind_rows_pack(struct buf *buf, const struct unwind_rows *rows)
{
	parts_add_vec(buf, &rows->rows);
}

/* The walk goes through them in a JVM's signal handler, too. */
static bool are_valid(const struct unwind_rows *rows)
{
	const struct duet_unwind_row *all = rows->rows.items;

	for (size_t i = 0; i < rows->rows.len; i++)
		if ((i && all[i].pc <= all[i - 1].pc) || (all[i].rule & DUET_ROW_CFA) > DUET_CFA_SWITCHED)
			return false;
	return all[rows->rows.len - 1].rule == DUET_CFA_NONE &&
	       !is_too_large(rows, rows->base + all[rows->rows.len - 1].pc);
}

void unwind_rows_unpack(struct parts *parts, struct unwind_rows *ret, uint64_t code_start)
{
	*ret = (struct unwind_rows){.base = unwind_rows_base(code_start)};
	parts_read_vec(parts, &ret->rows, UNWIND_MAX_ROWS);
	if (parts->err || !ret->rows.len)
		return;
	parts->err = are_valid(ret) ? build_pages(ret) : -EBADMSG;
}
