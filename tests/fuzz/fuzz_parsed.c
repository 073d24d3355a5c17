/* SPDX-License-Identifier: MIT */
/* What a parser hands to the loader: it may have been taken over by the file that it parsed. */
#include "fuzz.h"
#include "sym/elf_file.h"
#include "unwind/unwind_file.h"

static void ask_symbols(const uint8_t *data, size_t size)
{
	struct elf_file file;
	uint64_t vaddr;
	BUF(bytes);

	buf_add(&bytes, data, size);
	if (elf_file_unpack(&file, &bytes))
		return;
	for (uint64_t at = 0; at < 65536; at += 61) {
		const char *name = elf_file_name(&file, at, NULL);

		FUZZ_CHECK(!name || strlen(name) < size);
		if (elf_segments_vaddr(&file.segments, at, &vaddr))
			elf_file_function_start(&file, vaddr);
		function_starts_next(&file.function_starts, at);
	}
	FUZZ_CHECK(memchr(file.identity.debuglink, '\0', sizeof(file.identity.debuglink)));
	FUZZ_CHECK(file.identity.build_id_len <= sizeof(file.identity.build_id));
	elf_file_release(&file);
}

static void ask_rows(const uint8_t *data, size_t size)
{
	struct parts parts = {.at = (const char *)data, .left = size};
	struct unwind_file file;
	struct unwind_rows more;
	uint64_t vaddr;

	unwind_file_unpack(&parts, &file);
	unwind_rows_unpack(&parts, &more, file.code_start);
	if (!parts.err) {
		if (more.rows.len)
			(void)unwind_rows_merge(&file.rows, &more);
		for (uint64_t at = 0; at < 65536; at += 61)
			unwind_rows_cover(&file.rows, file.base + at);
		for (size_t i = 0; i < file.rows.pages.len; i++)
			FUZZ_CHECK(file.rows.pages.items[i].first < file.rows.pages.items[i].end &&
				   file.rows.pages.items[i].end <= file.rows.rows.len);
		if (file.rows.rows.len)
			unwind_rows_fill_gaps(&file.rows, &CFI_HOST);
		unwind_file_vaddr(&file, 4096, 4096, &vaddr);
	}
	unwind_rows_release(&more);
	unwind_file_release(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ask_symbols(data, size);
	ask_rows(data, size);
	return 0;
}
