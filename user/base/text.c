/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool code_is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false; /* C0, DEL, C1: a terminal interprets them */
	if (code >= 0xd800 && code < 0xe000)
		return false; /* surrogates; the JVM's modified UTF-8 contains them */
	if ((code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return false; /* line separators and bidirectional overrides */
	return code <= 0x10ffff;
}

/* Returns the length of the well-formed printable character at `s` (NUL-terminated), or 0 when there is none. */
static size_t char_len(const uint8_t *s)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
	uint32_t code = len < 2 ? s[0] : s[0] & (0x7fu >> len);

	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	return len && code >= least[len] && code_is_printable(code) ? len : 0;
}

/* The length of the text before what is to be looked at: all but printable ASCII, and ';'. */
static size_t plain_len(const char *text)
{
	size_t len = 0;

	while (text[len] >= ' ' && text[len] < 0x7f && text[len] != ';')
		len++;
	return len;
}

/* ';' becomes `semicolon`, '\n' becomes `newline`. Where a new line may begin, a tab is harmless, too. */
static void add_clean(struct buf *out, const char *text, char semicolon, char newline)
{
	while (*text) {
		size_t plain = plain_len(text), len;

		buf_add(out, text, plain);
		text += plain;
		if (!*text)
			break;
		len = char_len((const uint8_t *)text);
		if (*text == ';')
			buf_add_char(out, semicolon);
		else if (*text == '\n')
			buf_add_char(out, newline);
		else if (*text == '\t' && newline == '\n')
			buf_add_char(out, '\t');
		else if (len)
			buf_add(out, text, len);
		else
			buf_add_char(out, '?');
		text += len ? len : 1;
	}
}

void text_add_line(struct buf *out, const char *text)
{
	add_clean(out, text, ';', '?');
}

void text_add_lines(struct buf *out, const char *text)
{
	add_clean(out, text, ';', '\n');
}

void text_clean_lines(struct buf *text)
{
	BUF(lines);

	text_add_lines(&lines, text->data);
	buf_clear(text);
	buf_add(text, lines.data, lines.len);
}

void text_add_token(struct buf *out, const char *text)
{
	add_clean(out, text, '|', '?');
}

void text_add_html(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '<')
			buf_add_str(out, "&lt;");
		else if (*text == '>')
			buf_add_str(out, "&gt;");
		else if (*text == '&')
			buf_add_str(out, "&amp;");
		else if (*text == '"')
			buf_add_str(out, "&quot;");
		else
			buf_add_char(out, *text);
}

/* Writes one character as UTF-8. Returns how many bytes of `to` are used. */
static size_t text_put_utf8(char to[4], uint32_t character)
{
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0}; /* byte, by the number of bytes */
	size_t bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	for (size_t i = bytes; i-- > 1; character >>= 6)
		to[i] = (char)(0x80 | (character & 0x3f));
	to[0] = (char)(first[bytes] | character);
	return bytes;
}

void text_add_utf8(struct buf *out, uint32_t character)
{
	char bytes[4];

	buf_add(out, bytes, text_put_utf8(bytes, character));
}

/* Appends one code point. A Latin-1 byte becomes at most two bytes of UTF-8, a UTF-16 unit at most three. */
static char *add_code(char *to, uint32_t code)
{
	return to + text_put_utf8(to, !code || (code >= 0xd800 && code < 0xe000) ? '?' : code);
}

/* Returns the surrogate of this kind, 0xd800 or 0xdc00, that the three bytes are; 0: they are none. */
static uint32_t surrogate_at(const char *text, uint32_t kind)
{
	const uint8_t *s = (const uint8_t *)text;
	uint32_t code = (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);

	return s[0] == 0xed && (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80 && (code & 0xfc00) == kind ? code : 0;
}

#define SURROGATE_BYTES 3

size_t text_join_surrogates(char *text, size_t len)
{
	char *to = memchr(text, 0xed, len);
	size_t i = to ? (size_t)(to - text) : len;

	if (!to)
		return len;
	while (i < len) {
		bool has_two = len - i >= 2 * SURROGATE_BYTES;
		uint32_t high = has_two ? surrogate_at(text + i, 0xd800) : 0;
		uint32_t low = high ? surrogate_at(text + i + SURROGATE_BYTES, 0xdc00) : 0;

		if (low) {
			to = add_code(to, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
			i += 2 * SURROGATE_BYTES;
		} else {
			*to++ = text[i++];
		}
	}
	return (size_t)(to - text);
}

void text_add_surrogates(struct buf *out, const char *text)
{
	const uint8_t *s = (const uint8_t *)text;

	for (; *s; s++) {
		uint32_t code;

		if (*s < 0xf0 || char_len(s) != 4) {
			buf_add_char(out, (char)*s);
			continue;
		}
		code = (s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
		text_add_utf8(out, 0xd800 + ((code - 0x10000) >> 10));
		text_add_utf8(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
		s += 3;
	}
}

void text_copy_surrogates(char *to, size_t size, const char *text)
{
	BUF(copy);

	text_add_surrogates(&copy, text);
	snprintf(to, size, "%s", copy.data);
}

static uint32_t unit_at(const uint8_t *value, size_t i)
{
	return value[i] | (uint32_t)value[i + 1] << 8;
}

void text_from_java(char *to, const uint8_t *value, size_t bytes, bool is_utf16)
{
	for (size_t i = 0; !is_utf16 && i < bytes; i++)
		to = add_code(to, value[i]);
	for (size_t i = 0; is_utf16 && i + 1 < bytes; i += 2) {
		uint32_t code = unit_at(value, i), low = i + 3 < bytes ? unit_at(value, i + 2) : 0;

		if (code >= 0xd800 && code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			i += 2;
		}
		to = add_code(to, code);
	}
	*to = '\0';
}

static bool has_word(const char *text, const char *words, bool is_whole)
{
	size_t len;

	for (; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		if (!strncmp(text, words, len) && (!is_whole || !text[len]))
			return true;
	}
	return false;
}

bool text_is_word(const char *text, const char *words)
{
	return has_word(text, words, true);
}

bool text_begins_with(const char *text, const char *words)
{
	return has_word(text, words, false);
}

/* Levenshtein distance, row by row: row[j] is the distance between the letters of `a` so far and the first j of `b`. */
size_t text_distance(const char *a, const char *b)
{
	size_t len = strlen(b), row[TEXT_DISTANCE_MAX + 1], before;

	if (len > TEXT_DISTANCE_MAX || strlen(a) > TEXT_DISTANCE_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		before = row[0]++;
		for (size_t j = 1; j <= len; j++) {
			size_t least = before + (a[i] != b[j - 1]);

			before = row[j];
			least = least < row[j] + 1 ? least : row[j] + 1;
			row[j] = least < row[j - 1] + 1 ? least : row[j - 1] + 1;
		}
	}
	return row[len];
}

#define BEGINNING_MIN 3 /* letters */

/* Of a short word, few letters may differ. */
static size_t most_changes(size_t len)
{
	return len < 4 ? 1 : len < 8 ? 2 : 3;
}

/* True if two neighbours have changed places, which is one mistake. */
static bool is_swapped(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a && *b && a[0] == b[1] && a[1] == b[0] && !strcmp(a + 2, b + 2);
}

void text_guess(struct text_guess *guess, const char *word)
{
	size_t len = strlen(guess->typed), changes = text_distance(guess->typed, word);

	if (changes == SIZE_MAX)
		return;
	if (!strcasecmp(guess->typed, word))
		changes = 0;
	else if (is_swapped(guess->typed, word) || (len >= BEGINNING_MIN && !strncmp(word, guess->typed, len)))
		changes = 1;
	if (changes > most_changes(len) || (guess->word[0] && changes >= guess->changes))
		return;
	guess->changes = changes;
	strcpy(guess->word, word);
}

void text_add_guess(const struct text_guess *guess, const char *prefix, const char *otherwise, struct buf *out)
{
	if (guess->word[0])
		buf_printf(out, ": did you mean %s%s?", prefix, guess->word);
	else if (otherwise)
		buf_printf(out, ": %s", otherwise);
}
