/* SPDX-License-Identifier: MIT */
/* A pprof file, compressed or not. What was read is written, and read again the same. */
#include <stdio.h>

#include "fuzz.h"
#include "out/writer.h"
#include "read_pprof.h"

static char *write_as(const char *writer, const struct profile *profile, uint32_t event, size_t *ret_len)
{
	struct writer_options options;
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	writer_options_default(&options);
	options.style = (struct frame_style){.signatures = true, .annotate = true, .libraries = true, .lines = true};
	options.event = event;
	options.threads = true;
	FUZZ_CHECK(out && !writer_by_name(writer)->write(profile, &options, out));
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile first, second;
	size_t len;

	if (!read_pprof(&first, data, size)) {
		char *file = write_as("pprof", &first, 0, &len);

		FUZZ_CHECK(!read_pprof(&second, file, len));
		free(file);
		FUZZ_CHECK(first.events.len >= second.events.len);
		for (uint32_t i = 0; i < second.events.len; i++)
			free(write_as("collapsed", &second, i, &len));
		profile_release(&second);
	}
	profile_release(&first);
	return 0;
}
