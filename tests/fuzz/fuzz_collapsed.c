/* SPDX-License-Identifier: MIT */
/* A file of collapsed stacks. The result is written, and read again the same. */
#include <stdio.h>

#include "fuzz.h"
#include "readers/reader.h"
#include "writers/writer.h"

static int read_again(struct profile *profile, const void *bytes, size_t len)
{
	struct reader_source source = {.name = "fuzz", .fd = input_file(bytes, len)};
	struct buf why;
	int err;

	buf_init(&why);
	buf_init(&source.warning);
	FUZZ_CHECK(lseek(source.fd, 0, SEEK_SET) == 0 && !profile_init(profile));
	err = reader_read_as(&reader_collapsed, &source, profile, &why);
	FUZZ_CHECK(!err == !why.len);
	reader_close(&source);
	buf_release(&why);
	return err;
}

static char *write_text(const struct profile *profile, size_t *ret_len)
{
	struct writer_options options;
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	writer_options_default(&options);
	options.style = (struct frame_style){.signatures = true, .annotate = true, .libraries = true, .lines = true};
	FUZZ_CHECK(out && !writer_by_name("collapsed")->write(profile, &options, out));
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile first, second;
	char *text, *again;
	size_t len, again_len;

	(void)reader_collapsed.claims(data, size < READER_START ? size : READER_START);
	if (!read_again(&first, data, size)) {
		text = write_text(&first, &len);
		FUZZ_CHECK(!read_again(&second, text, len));
		again = write_text(&second, &again_len);
		FUZZ_CHECK(!strcmp(text, again));
		free(again);
		profile_release(&second);
		free(text);
	}
	profile_release(&first);
	return 0;
}
