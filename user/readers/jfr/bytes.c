/* SPDX-License-Identifier: MIT */
#include "readers/jfr/bytes.h"

#include <string.h>

#include "base/text.h"
#include "base/varint.h"

#define NUMBER_BYTES 9
#define TEXT_MAX (1u << 20)

uint8_t jfr_byte(struct jfr_cursor *cursor)
{
	if (cursor->at < cursor->end)
		return cursor->bytes[cursor->at++];
	cursor->failed = true;
	return 0;
}

uint32_t jfr_four_bytes(struct jfr_cursor *cursor)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++)
		value = value << 8 | jfr_byte(cursor);
	return value;
}

/* The ninth byte has eight bits and ends a number, as no other byte with the eighth bit does. */
uint64_t jfr_long_number(struct jfr_cursor *cursor)
{
	size_t left = cursor->end - cursor->at, max = left < NUMBER_BYTES ? left : NUMBER_BYTES;
	uint64_t value;
	size_t used = varint_get(cursor->bytes + cursor->at, max, &value);

	if (!used && max == NUMBER_BYTES) {
		value |= 1ull << 63;
		used = NUMBER_BYTES;
	}
	cursor->failed |= !used;
	cursor->at += used ? used : left;
	return cursor->failed ? 0 : value;
}

void jfr_skip(struct jfr_cursor *cursor, size_t bytes)
{
	if (bytes > cursor->end - cursor->at) {
		cursor->failed = true;
		bytes = cursor->end - cursor->at;
	}
	cursor->at += bytes;
}

/* The length of JFR_CHARS is a number of characters, each of which is a number. */
static void skip_chars(struct jfr_cursor *cursor, uint64_t count)
{
	while (count-- && !cursor->failed)
		(void)jfr_number(cursor);
}

struct jfr_text jfr_text(struct jfr_cursor *cursor)
{
	struct jfr_text text = {.encoding = (enum jfr_encoding)jfr_byte(cursor)};
	uint64_t len;

	if (text.encoding == JFR_OF_POOL)
		text.key = jfr_number(cursor);
	if (text.encoding <= JFR_OF_POOL)
		return text;
	if (text.encoding > JFR_LATIN1) {
		cursor->failed = true;
		return (struct jfr_text){0};
	}
	len = jfr_number(cursor);
	text.bytes = cursor->bytes + cursor->at;
	if (text.encoding == JFR_CHARS)
		skip_chars(cursor, len);
	else
		jfr_skip(cursor, len < SIZE_MAX ? (size_t)len : SIZE_MAX);
	text.len = (size_t)(cursor->bytes + cursor->at - text.bytes);
	return cursor->failed ? (struct jfr_text){0} : text;
}

static void add_code(struct buf *out, uint32_t code)
{
	text_add_utf8(out, code ? code : '?');
}

/* UTF-16; a lone surrogate becomes '?'. */
static void add_chars(struct buf *out, const struct jfr_text *text)
{
	struct jfr_cursor cursor = {.bytes = text->bytes, .end = text->len};
	uint32_t high = 0;

	while (cursor.at < cursor.end && out->len < TEXT_MAX) {
		uint32_t unit = (uint32_t)jfr_number(&cursor) & 0xffff;
		bool is_low = (unit & 0xfc00) == 0xdc00;

		if (high && is_low) {
			add_code(out, 0x10000 + ((high & 0x3ff) << 10) + (unit & 0x3ff));
			high = 0;
			continue;
		}
		if (high)
			add_code(out, '?');
		high = (unit & 0xfc00) == 0xd800 ? unit : 0;
		if (!high)
			add_code(out, is_low ? '?' : unit);
	}
	if (high)
		add_code(out, '?');
}

void jfr_add_text(struct buf *out, const struct jfr_text *text)
{
	size_t len = text->len < TEXT_MAX ? text->len : TEXT_MAX, start = out->len;

	if (text->encoding == JFR_UTF8)
		buf_add(out, text->bytes, strnlen((const char *)text->bytes, len));
	/* the JVM's own recorder has names as class files have them */
	if (text->encoding == JFR_UTF8 && out->len > start)
		buf_cut(out, start + text_join_surrogates(out->data + start, out->len - start));
	for (size_t i = 0; text->encoding == JFR_LATIN1 && i < len; i++)
		add_code(out, text->bytes[i]);
	if (text->encoding == JFR_CHARS)
		add_chars(out, text);
}
