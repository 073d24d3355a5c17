/* SPDX-License-Identifier: MIT */
/* What fuzz targets share: the input read piece by piece. Each target is one parser's worth of foreign bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Called by libFuzzer, which also has main(). Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

/* Zeroes after the end. */
static inline void input_read(struct input *input, void *bytes, size_t len)
{
	size_t have = len < input->left ? len : input->left;

	memset(bytes, 0, len);
	memcpy(bytes, input->at, have);
	input->at += have;
	input->left -= have;
}

static inline uint64_t input_number(struct input *input, size_t bytes)
{
	uint64_t number = 0;

	input_read(input, &number, bytes);
	return number;
}

/* A block of exactly `len` bytes of its own, so that reading past its end is seen. The caller frees it. */
static inline void *input_block(struct input *input, size_t len)
{
	void *block = malloc(len ? len : 1);

	if (!block)
		abort();
	input_read(input, block, len);
	return block;
}

/* The same as a string that ends in NUL. */
static inline char *input_text(struct input *input, size_t len)
{
	char *text = malloc(len + 1);

	if (!text)
		abort();
	input_read(input, text, len);
	text[len] = '\0';
	return text;
}

/* Up to the next newline, which is dropped, or the end. */
static inline char *input_line(struct input *input)
{
	const uint8_t *end = memchr(input->at, '\n', input->left);
	char *line = input_text(input, end ? (size_t)(end - input->at) : input->left);

	if (input->left) {
		input->at++;
		input->left--;
	}
	return line;
}

/* A file with these bytes, for parsers that read descriptors. The caller closes it. */
static inline int input_file(const void *bytes, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || pwrite(fd, bytes, len, 0) != (ssize_t)len)
		abort();
	return fd;
}

/* What must hold for every input. */
#define FUZZ_CHECK(condition)    \
	do {                     \
		if (!(condition)) \
			abort(); \
	} while (0)
