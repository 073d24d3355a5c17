/* SPDX-License-Identifier: MIT */
/* The search table of .eh_frame_hdr. */
#include "fuzz.h"
#include "sym/function_starts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint64_t vaddr = input_number(&input, 8), start;
	size_t len = input.left;
	void *bytes = input_block(&input, len);
	struct function_starts starts = {0};

	if (!function_starts_read(&starts, vaddr, bytes, len)) {
		for (uint64_t at = vaddr - 64; at != vaddr + 64; at++) {
			function_starts_find(&starts, at, &start);
			function_starts_next(&starts, at);
		}
		function_starts_release(&starts);
	}
	free(bytes);
	return 0;
}
