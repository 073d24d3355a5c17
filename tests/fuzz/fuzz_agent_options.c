/* SPDX-License-Identifier: MIT */
/* The text after -agentpath:libduet.so=, which is also what dynamic attach hands over. */
#include "options.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *text = input_text(&input, size);
	struct agent_options options;
	const char *why = NULL;

	if (!options_parse(&options, text, &why)) {
		FUZZ_CHECK(options.control[0] && strlen(options.control) <= DUET_NAME_MAX);
		FUZZ_CHECK(options.wait_ms <= OPTIONS_WAIT_MAX_MS);
	} else {
		FUZZ_CHECK(why && why[0]);
	}
	free(text);
	return 0;
}
