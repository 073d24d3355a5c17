/* SPDX-License-Identifier: MIT */
/* A pprof file, compressed or not. The result is written, and read again the same. */
#include "read_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_back(&reader_pprof, data, size);
	return 0;
}
