/* SPDX-License-Identifier: MIT */
/* The rows of one file, from its call frame information, with the index that BPF enters them by (duet_unwind.h). */
#ifndef UNWIND_UNWIND_ROWS_H
#define UNWIND_UNWIND_ROWS_H

#include "unwind/cfi.h"

#define UNWIND_MAX_ROWS (DUET_UNWIND_MAX_ROWS / 2)   /* of one file */
#define UNWIND_MAX_PAGES (DUET_UNWIND_MAX_PAGES / 2) /* 256 MB of code */

struct unwind_rows {
	uint64_t base; /* virtual address of pc 0 */
	struct vec(struct duet_unwind_row) rows; /* by pc; equal neighbours merged; the last says DUET_CFA_NONE */
	struct vec(struct duet_unwind_page) pages;
};

/*
 * From the `len` bytes of .eh_frame, which the file loads at `vaddr`. 0; -ENODATA when no function is told of; -E2BIG
 * when it is larger than the bounds above or made to cost time; -ENOMEM. Nothing needs a release then.
 */
int unwind_rows_read(struct unwind_rows *rows, const struct cfi_machine *machine, uint64_t vaddr, const void *bytes,
		     size_t len);
/* Code between the functions that are told of never has a frame, as the caller knows. */
void unwind_rows_fill_gaps(struct unwind_rows *rows, const struct cfi_machine *machine);
void unwind_rows_release(struct unwind_rows *rows);

#endif
