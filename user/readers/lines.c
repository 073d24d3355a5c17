/* SPDX-License-Identifier: MIT */
#include "readers/lines.h"

#include <errno.h>
#include <string.h>

#define CHUNK_BYTES 16384
#define LINE_BYTES_MAX (8u << 20)

void lines_init(struct lines *lines, struct reader_source *source)
{
	*lines = (struct lines){.source = source};
	buf_init(&lines->text);
}

void lines_release(struct lines *lines)
{
	buf_release(&lines->text);
}

size_t lines_without_return(const char *line, size_t len)
{
	return len && line[len - 1] == '\r' ? len - 1 : len;
}

/* Drops the lines that were returned, and reads on. */
static int lines_fill(struct lines *lines)
{
	char chunk[CHUNK_BYTES];
	size_t rest = lines->text.len - lines->at;
	ssize_t got;

	if (rest > LINE_BYTES_MAX)
		return -EFBIG;
	memmove(lines->text.data, lines->text.data + lines->at, rest);
	buf_cut(&lines->text, rest);
	lines->at = 0;
	lines->scanned = rest;
	got = reader_bytes(lines->source, chunk, sizeof(chunk));
	if (got < 0)
		return (int)got;
	lines->ended = (size_t)got < sizeof(chunk);
	buf_add(&lines->text, chunk, (size_t)got);
	return lines->text.failed ? -ENOMEM : 0;
}

/* Like lines_next(), but leaves the sentence to that function. */
static int next_line(struct lines *lines, const char **ret_line, size_t *ret_len)
{
	const char *newline;

	while (!(newline = memchr(lines->text.data + lines->scanned, '\n', lines->text.len - lines->scanned)) &&
	       !lines->ended) {
		int err = lines_fill(lines);

		if (err < 0)
			return err;
	}
	*ret_line = lines->text.data + lines->at;
	*ret_len = newline ? (size_t)(newline - *ret_line) : lines->text.len - lines->at;
	if (!newline && !*ret_len)
		return 0;
	lines->at += *ret_len + (newline != NULL);
	lines->scanned = lines->at;
	return *ret_len > LINE_BYTES_MAX ? -EFBIG : 1;
}

int lines_next(struct lines *lines, const char **ret_line, size_t *ret_len, struct buf *why)
{
	int got = next_line(lines, ret_line, ret_len);

	lines->number++;
	if (got > 0)
		*ret_len = lines_without_return(*ret_line, *ret_len);
	if (got == -EFBIG)
		buf_printf(why, "line %llu is longer than %u MB", (unsigned long long)lines->number,
			   LINE_BYTES_MAX >> 20);
	else if (got < 0)
		buf_add_str(why, strerror(-got));
	return got;
}
