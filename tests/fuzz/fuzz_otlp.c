/* SPDX-License-Identifier: MIT */
/* An OTLP file, binary or JSON, compressed or not. What was read is written, and read again the same. */
#include "read_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_back(&reader_otlp, data, size);
	return 0;
}
