/* SPDX-License-Identifier: MIT */
/* perf script's text. The result is written, and read again. */
#include "read_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_back(&reader_perf, data, size);
	return 0;
}
