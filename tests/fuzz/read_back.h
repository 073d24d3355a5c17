/* SPDX-License-Identifier: MIT */
/* The profile that a reader made from the input is written in its format, and read again. */
#pragma once

#include <stdio.h>

#include "fuzz.h"
#include "readers/reader.h"
#include "writers/writer.h"

static inline int fuzz_read(const struct reader *reader, struct profile *profile, const void *bytes, size_t len)
{
	struct reader_source source;
	struct buf why;
	char path[32];
	int fd = input_file(bytes, len), err;

	buf_init(&why);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FUZZ_CHECK(!profile_init(profile));
	err = reader_begin(&source, path, reader_open_file(path), &why);
	if (!err) {
		(void)reader->claims(source.start, source.start_len);
		err = reader_read_as(reader, &source, profile, &why);
		reader_close(&source);
	}
	FUZZ_CHECK(err <= 0 && !err == !why.len);
	buf_release(&why);
	close(fd);
	return err;
}

/* The caller frees it. */
static inline char *fuzz_write(const char *writer, const struct profile *profile, uint32_t event, size_t *ret_len)
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

static inline void fuzz_read_back(const struct reader *reader, const void *bytes, size_t size)
{
	struct profile first, second;
	size_t len;

	if (!fuzz_read(reader, &first, bytes, size)) {
		char *file = fuzz_write(reader->name, &first, 0, &len);

		FUZZ_CHECK(!fuzz_read(reader, &second, file, len));
		free(file);
		FUZZ_CHECK(first.events.len >= second.events.len);
		for (uint32_t i = 0; i < second.events.len; i++)
			free(fuzz_write("collapsed", &second, i, &len));
		profile_release(&second);
	}
	profile_release(&first);
}
