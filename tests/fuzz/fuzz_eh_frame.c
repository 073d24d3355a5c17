/* SPDX-License-Identifier: MIT */
/* Call frame information, .eh_frame's and .debug_frame's, to rows. */
#include "unwind/unwind_file.h"
#include "fuzz.h"

#define CODE_BYTES (1u << 20)

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

/* `len` bytes of the input as one table, which is merged into `rows`. */
static void add_table(struct unwind_rows *rows, struct input *input, size_t len, uint8_t kind, uint64_t vaddr)
{
	const struct cfi_machine *machine = kind & 1 ? &cfi_aarch64 : &cfi_x86_64;
	void *bytes = input_block(input, len);
	struct cfi_section section = {bytes, len, vaddr, kind & 2,
				      vaddr > CODE_BYTES / 2 ? vaddr - CODE_BYTES / 2 : 0, UINT64_MAX};
	struct unwind_rows more = {0};

	if (!unwind_rows_make(&more, machine, &section)) {
		check(&more);
		if (!unwind_rows_merge(rows, &more))
			check(rows);
		unwind_rows_release(&more);
	}
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t kind = (uint8_t)input_number(&input, 1);
	uint64_t vaddr = input_number(&input, 8);
	struct unwind_rows rows = {0};

	if (kind & 4)
		add_table(&rows, &input, input.left / 2, kind & 1, vaddr);
	add_table(&rows, &input, input.left, kind, vaddr);
	unwind_rows_release(&rows);
	return 0;
}
