/* SPDX-License-Identifier: MIT */
/* The rows of one file, made from its call frame information, and the index by which BPF finds them (duet_unwind.h). */
#pragma once

#include "base/parts.h"
#include "unwind/cfi.h"

#define UNWIND_MAX_ROWS (DUET_UNWIND_MAX_ROWS / 2)   /* of one file */
#define UNWIND_MAX_PAGES (DUET_UNWIND_MAX_PAGES / 2) /* 256 MB of code */

struct unwind_rows {
	uint64_t base; /* virtual address of pc 0, see unwind_rows_base() */
	struct vec(struct duet_unwind_row) rows; /* sorted by pc, no equal neighbours; the last is DUET_CFA_NONE */
	struct vec(struct duet_unwind_page) pages;
};

/* The virtual address of pc 0. It does not depend on the rows, so it is the same for all copies of a file. */
uint64_t unwind_rows_base(uint64_t code_start);

/*
 * Makes the rows of a section. Returns 0; -ENODATA if the section describes no function; -E2BIG if it exceeds the
 * limits above, or if reading it would take much longer than its size justifies; or -ENOMEM. After an error there is
 * nothing to release.
 */
int unwind_rows_make(struct unwind_rows *ret, const struct cfi_machine *machine, const struct cfi_section *section);
/*
 * Adds the rows of `more` for code that `rows` do not describe. Both must have the same base, unless `rows` are empty.
 * Returns 0, -E2BIG or -ENOMEM; after an error `rows` are as before. `more` stays the caller's.
 */
int unwind_rows_merge(struct unwind_rows *rows, const struct unwind_rows *more);
/* Returns true if the rows describe the code at a virtual address. */
bool unwind_rows_cover(const struct unwind_rows *rows, uint64_t vaddr);

struct unwind_span { /* virtual addresses */
	uint64_t start;
	uint64_t end; /* exclusive */
	enum duet_unwind_cfa cfa; /* DUET_CFA_FP, _SWITCHED or _ENTRY */
};

/*
 * Makes rows for spans of x86-64 code that has made its frame. A span ends at its end, or where the next one starts.
 * There must be at least one span; spans are sorted and lie in the file's code. Returns 0, -E2BIG or -ENOMEM; after an
 * error there is nothing to release.
 */
int unwind_rows_of_frames(struct unwind_rows *rows, uint64_t code_start, const struct unwind_span *spans, size_t count);
/* Adds rows for the code between functions, for code that has no frame. The caller must know that it has none. */
void unwind_rows_fill_gaps(struct unwind_rows *rows, const struct cfi_machine *machine);
void unwind_rows_release(struct unwind_rows *rows);
/* The rows as bytes. Sets parts->err for rows that unwind_rows_make() does not make. Release them in any case. */
void unwind_rows_pack(struct buf *buf, const struct unwind_rows *rows);
void unwind_rows_unpack(struct parts *parts, struct unwind_rows *ret, uint64_t code_start);
