/* SPDX-License-Identifier: MIT */
/*
 * A .duet file. The first byte chooses: the input is the file, or it is rows that are put into chunks with correct
 * checksums, because random bytes do not get past these. Every writer can write a profile that was read.
 */
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "fuzz.h"
#include "profile/layout.h"
#include "readers/reader.h"
#include "writers/writer.h"

static uint32_t crc_of(const void *bytes, size_t len)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)len);
}

/* The input has type, coding, size of a row and number of rows, one byte each, then the rows. */
static void add_section(struct input *input, struct buf *body)
{
	struct layout_section section = {
		.type = (uint16_t)(input_number(input, 1) % (LAYOUT_TYPES + 2)),
		.coding = (uint16_t)(input_number(input, 1) & 1),
		.row_bytes = (uint32_t)input_number(input, 1),
	};
	size_t rows = input_number(input, 1), len = section.row_bytes ? rows * section.row_bytes : rows;
	uLongf packed = compressBound(len);
	unsigned char *plain = input_block(input, len), *stored = malloc(packed);

	FUZZ_CHECK(stored && compress(stored, &packed, plain, len) == Z_OK);
	section.raw_bytes = (uint32_t)len;
	section.stored_bytes = section.coding ? (uint32_t)packed : (uint32_t)len;
	buf_add(body, &section, sizeof(section));
	buf_add(body, section.coding ? stored : plain, section.stored_bytes);
	free(plain);
	free(stored);
}

static void add_chunk(struct input *input, struct buf *file)
{
	struct layout_chunk chunk = {.magic = LAYOUT_CHUNK_MAGIC};
	struct buf body;

	buf_init(&body);
	chunk.part = (uint32_t)input_number(input, 1) & 3;
	chunk.flags = chunk.part & LAYOUT_END;
	for (chunk.sections = 0; input->left && chunk.sections < 12; chunk.sections++)
		add_section(input, &body);
	chunk.body_bytes = body.len;
	chunk.body_crc = crc_of(body.data, body.len);
	chunk.crc = crc_of(&chunk, offsetof(struct layout_chunk, crc));
	buf_add(file, &chunk, sizeof(chunk));
	buf_add(file, body.data, body.len);
	buf_release(&body);
}

static void make_file(struct input *input, struct buf *file)
{
	const struct layout_start start = {.magic = LAYOUT_MAGIC, .version = LAYOUT_VERSION, .bytes = sizeof(start)};

	if (!(input_number(input, 1) & 1)) {
		buf_add(file, input->at, input->left);
		return;
	}
	buf_add(file, &start, sizeof(start));
	while (input->left)
		add_chunk(input, file);
}

static void write_all(const struct profile *profile)
{
	struct writer_options options;

	writer_options_default(&options);
	options.processes = writer_shows_processes(profile, &options);
	options.threads = options.style.annotate = true;
	for (size_t i = 0; writers[i]; i++) {
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		FUZZ_CHECK(out && !writers[i]->write(profile, &options, out));
		fclose(out);
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct reader_source source;
	struct profile profile;
	struct buf file, why;
	char path[32];
	int fd, err;

	buf_init(&file);
	buf_init(&why);
	make_file(&input, &file);
	fd = input_file(file.data, file.len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FUZZ_CHECK(!profile_init(&profile));
	err = reader_begin(&source, path, reader_open_file(path), &why);
	if (!err) {
		err = reader_read(&source, &profile, &why);
		reader_close(&source);
	}
	FUZZ_CHECK(err <= 0 && (err < 0) == (why.len > 0));
	if (!err)
		write_all(&profile);
	profile_release(&profile);
	buf_release(&file);
	buf_release(&why);
	close(fd);
	return 0;
}
