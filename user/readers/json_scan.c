/* SPDX-License-Identifier: MIT */
#include "readers/json_scan.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

#define DEPTH_MAX 64

static void fail(struct json_scan *scan)
{
	scan->failed = true;
}

char scan_peek(struct json_scan *scan)
{
	while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) && *scan->at)
		scan->at++;
	return scan->at < scan->end && !scan->failed ? *scan->at : '\0';
}

static bool take(struct json_scan *scan, char c)
{
	if (scan_peek(scan) != c || !c)
		return false;
	scan->at++;
	return true;
}

void scan_enter(struct json_scan *scan, char open)
{
	if (!take(scan, open))
		fail(scan);
	scan->is_first = true;
}

bool scan_more(struct json_scan *scan, char close)
{
	bool is_first = scan->is_first;

	scan->is_first = false;
	if (take(scan, close))
		return false;
	if (!scan_peek(scan) || (!is_first && !take(scan, ',')))
		fail(scan);
	return !scan->failed;
}

static uint32_t hex(struct json_scan *scan)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++, scan->at++) {
		char c = scan->at < scan->end ? *scan->at : '\0';

		if (!isxdigit((unsigned char)c)) {
			fail(scan);
			return 0;
		}
		value = value << 4 | (uint32_t)(isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

/* The character behind "\u", which may be two of UTF-16; a lone half becomes '?'. */
static uint32_t escaped_character(struct json_scan *scan)
{
	uint32_t high = hex(scan), low;

	if ((high & 0xfc00) != 0xd800)
		return (high & 0xfc00) == 0xdc00 || !high ? '?' : high;
	if (scan->end - scan->at < 6 || scan->at[0] != '\\' || scan->at[1] != 'u')
		return '?';
	scan->at += 2;
	low = hex(scan);
	return (low & 0xfc00) == 0xdc00 ? 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff)) : '?';
}

static void take_escape(struct json_scan *scan, struct buf *text)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	char c = scan->at < scan->end ? *scan->at++ : '\0';
	const char *found = c ? strchr(from, c) : NULL;

	if (c == 'u')
		text_add_utf8(text, escaped_character(scan));
	else if (found)
		buf_add_char(text, to[found - from]);
	else if (c == '"' || c == '\\' || c == '/')
		buf_add_char(text, c);
	else
		fail(scan);
}

void scan_string(struct json_scan *scan, struct buf *text)
{
	buf_clear(text);
	if (!take(scan, '"'))
		fail(scan);
	while (!scan->failed && scan->at < scan->end && *scan->at != '"') {
		const char *run = scan->at;

		while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\\' && *scan->at)
			scan->at++;
		buf_add(text, run, (size_t)(scan->at - run));
		if (scan->at == scan->end || *scan->at == '"')
			break;
		if (*scan->at++)
			take_escape(scan, text);
		else
			buf_add_char(text, '?');
	}
	if (scan->failed || scan->at == scan->end)
		return fail(scan);
	scan->at++;
}

void scan_key(struct json_scan *scan, struct buf *text)
{
	scan_string(scan, text);
	if (!take(scan, ':'))
		fail(scan);
}

int64_t scan_integer(struct json_scan *scan)
{
	uint64_t value = 0;
	bool is_negative = take(scan, '-');

	if (!isdigit((unsigned char)scan_peek(scan)))
		fail(scan);
	for (; scan->at < scan->end && isdigit((unsigned char)*scan->at); scan->at++) {
		if (value > (uint64_t)INT64_MAX / 10 - 1)
			fail(scan);
		value = scan->failed ? 0 : value * 10 + (uint64_t)(*scan->at - '0');
	}
	if (scan->at < scan->end && strchr(".eE", *scan->at) && *scan->at)
		fail(scan);
	return scan->failed ? 0 : is_negative ? -(int64_t)value : (int64_t)value;
}

bool scan_word(struct json_scan *scan, const char *word)
{
	size_t len = strlen(word);

	if (scan_peek(scan) != *word || (size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len))
		return false;
	scan->at += len;
	return true;
}

static void skip_string(struct json_scan *scan)
{
	for (scan->at++; scan->at < scan->end && *scan->at != '"'; scan->at++)
		scan->at += *scan->at == '\\' && scan->at + 1 < scan->end;
	scan->at += scan->at < scan->end;
}

void scan_skip(struct json_scan *scan)
{
	int depth = 0;

	do {
		char c = scan_peek(scan);

		if (!c || depth > DEPTH_MAX)
			return fail(scan);
		if (c == '"') {
			skip_string(scan);
			continue;
		}
		if (!depth && strchr(",]}:", c))
			return fail(scan);
		depth += c == '[' || c == '{';
		depth -= c == ']' || c == '}';
		scan->at++;
		if (!strchr("[]{},:", c))
			while (scan->at < scan->end && !strchr("[]{},:\" \t\r\n", *scan->at))
				scan->at++;
	} while (depth);
}
