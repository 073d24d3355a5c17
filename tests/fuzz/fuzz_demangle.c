/* SPDX-License-Identifier: MIT */
/* Mangled names from a foreign file's symbol table. */
#include "fuzz.h"
#include "sym/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *name = input_text(&input, size);
	struct buf out;

	buf_init(&out);
	buf_add_str(&out, "before");
	FUZZ_CHECK(demangle(name, &out) || out.len == strlen("before"));
	FUZZ_CHECK(out.len <= strlen("before") + DEMANGLE_MAX_OUTPUT + strlen(DEMANGLE_PLT_SUFFIX));
	buf_release(&out);
	free(name);
	return 0;
}
