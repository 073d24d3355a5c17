/* SPDX-License-Identifier: MIT */
/* The rows of one file, from its call frame information, with the index that BPF enters them by (duet_unwind.h). */
#ifndef UNWIND_UNWIND_ROWS_H
#define UNWIND_UNWIND_ROWS_H

#include "unwind/cfi.h"

#define UNWIND_MAX_ROWS (DUET_UNWIND_MAX_ROWS / 2)   /* of one file */
#define UNWIND_MAX_PAGES (DUET_UNWIND_MAX_PAGES / 2) /* 256 MB of code */

struct unwind_rows {
	uint64_t base; /* virtual address of pc 0, see unwind_rows_base() */
	struct vec(struct duet_unwind_row) rows; /* by pc; equal neighbours merged; the last says DUET_CFA_NONE */
	struct vec(struct duet_unwind_page) pages;
};

/* Where pcs count from, whatever the rows are: for all copies of a file the same. */
uint64_t unwind_rows_base(uint64_t code_start);
/*
 * 0; -ENODATA when no function is told of; -E2BIG when it is larger than the bounds above or made to cost time;
 * -ENOMEM. Nothing needs a release then.
 */
int unwind_rows_read(struct unwind_rows *rows, const struct cfi_machine *machine, const struct cfi_section *section);
/*
 * Adds what `more`, of the same base, tells of code of which `rows` tell nothing; rows without any are filled so too.
 * 0, or -E2BIG and -ENOMEM: then `rows` are as before. `more` stays the caller's.
 */
int unwind_rows_merge(struct unwind_rows *rows, const struct unwind_rows *more);
/* Do they say anything of the code at a virtual address? */
bool unwind_rows_tell(const struct unwind_rows *rows, uint64_t vaddr);

struct unwind_span { /* virtual addresses */
	uint64_t start;
	uint64_t end; /* exclusive */
};

/*
 * For x86-64 code that has made its frame: from a span's start to its end or the next one's start. Spans are sorted and
 * lie in the file's code. As unwind_rows_read().
 */
int unwind_rows_of_frames(struct unwind_rows *rows, uint64_t code_start, const struct unwind_span *spans, size_t count);
/* Code between the functions that are told of never has a frame, as the caller knows. */
void unwind_rows_fill_gaps(struct unwind_rows *rows, const struct cfi_machine *machine);
void unwind_rows_release(struct unwind_rows *rows);

#endif
