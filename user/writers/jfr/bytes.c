/* SPDX-License-Identifier: MIT */
#include "writers/jfr/bytes.h"

#include <endian.h>
#include <string.h>

#include "base/text.h"
#include "base/varint.h"
#include "profile/jfr.h"

#define TEXT_MAX 8191 /* async-profiler's limit */
#define NUMBER_BYTES 9

/* As varint_put(), but the ninth byte has eight bits and is the last one. */
static size_t number_bytes(unsigned char bytes[VARINT_BYTES], uint64_t number)
{
	size_t len = varint_put(bytes, number);

	return len < NUMBER_BYTES ? len : NUMBER_BYTES;
}

void jfr_put_number(struct buf *out, uint64_t number)
{
	unsigned char bytes[VARINT_BYTES];

	buf_add(out, bytes, number_bytes(bytes, number));
}

void jfr_put_array(struct buf *out, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		jfr_put_number(out, numbers[i]);
}

void jfr_put_float(struct buf *out, float number)
{
	uint32_t bits;

	memcpy(&bits, &number, sizeof(bits));
	bits = htobe32(bits);
	buf_add(out, &bits, sizeof(bits));
}

/* The length of the longest beginning that has whole characters. */
static size_t cut_len(const char *text, size_t len)
{
	if (len <= TEXT_MAX)
		return len;
	for (len = TEXT_MAX; len && ((unsigned char)text[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

void jfr_put_text(struct buf *out, const char *text)
{
	BUF(clean);
	size_t len;

	if (!text)
		return buf_add_char(out, JFR_NULL);
	text_add_lines(&clean, text);
	len = cut_len(clean.data, clean.len);
	buf_add_char(out, JFR_UTF8);
	jfr_put_number(out, len);
	buf_add(out, clean.data, len);
	out->failed |= clean.failed;
}

/* The size at the beginning includes itself. */
void jfr_put_event(struct buf *out, const struct buf *body)
{
	unsigned char bytes[VARINT_BYTES];
	size_t size = body->len + 1;

	while (body->len + number_bytes(bytes, size) != size)
		size++;
	jfr_put_number(out, size);
	buf_add(out, body->data, body->len);
	out->failed |= body->failed;
}
