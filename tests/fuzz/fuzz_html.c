/* SPDX-License-Identifier: MIT */
/* A flame graph in HTML, of duet or of async-profiler. The result is written, and read again. */
#include "read_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_back(&reader_html, data, size);
	return 0;
}
