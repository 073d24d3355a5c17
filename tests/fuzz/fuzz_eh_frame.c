/* SPDX-License-Identifier: MIT */
/* Call frame information to rows. */
#include "fuzz.h"
#include "unwind/unwind_rows.h"

static void check(const struct unwind_rows *rows)
{
	FUZZ_CHECK(rows->rows.len && rows->rows.len <= UNWIND_MAX_ROWS);
	FUZZ_CHECK(rows->pages.len && rows->pages.len <= UNWIND_MAX_PAGES);
	for (size_t i = 1; i < rows->rows.len; i++)
		FUZZ_CHECK(rows->rows.items[i].pc > rows->rows.items[i - 1].pc);
	for (size_t i = 0; i < rows->pages.len; i++) {
		const struct duet_unwind_page *page = &rows->pages.items[i];

		/* BPF halves them WALK_ROW_STEPS times. */
		FUZZ_CHECK(page->first < page->end && page->end <= rows->rows.len && page->end - page->first < 2048);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const struct cfi_machine *machine = input_number(&input, 1) & 1 ? &cfi_aarch64 : &cfi_x86_64;
	uint64_t vaddr = input_number(&input, 8);
	size_t len = input.left;
	void *bytes = input_block(&input, len);
	struct unwind_rows rows = {0};

	if (!unwind_rows_read(&rows, machine, vaddr, bytes, len)) {
		check(&rows);
		unwind_rows_release(&rows);
	}
	free(bytes);
	return 0;
}
