/* SPDX-License-Identifier: MIT */
/* A JFR file. The result is written, and read again. */
#include "read_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_back(&reader_jfr, data, size);
	return 0;
}
