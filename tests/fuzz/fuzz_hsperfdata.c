/* SPDX-License-Identifier: MIT */
/* /tmp/hsperfdata_USER/PID, which the JVM's user may write as he likes. */
#include "attach/hsperfdata.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"java.rt.vmFlags", "java.rt.vmArgs", "", "a"};
	struct input input = {data, size};
	char *bytes = input_block(&input, size);
	char value[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!hsperfdata_string(bytes, size, names[i], value, sizeof(value)))
			FUZZ_CHECK(memchr(value, '\0', sizeof(value)));
	free(bytes);
	return 0;
}
