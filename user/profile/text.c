/* SPDX-License-Identifier: MIT */
#include "profile/text.h"

#include <stddef.h>
#include <stdint.h>

static bool code_is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false; /* C0, DEL, C1: a terminal obeys them */
	if (code >= 0xd800 && code < 0xe000)
		return false; /* surrogates, as the JVM's modified UTF-8 writes them */
	if ((code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return false; /* line separators and bidirectional overrides */
	return code <= 0x10ffff;
}

/* Bytes of the well-formed printable character at `s` (NUL-terminated), 0 when there is none. */
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

static void add_clean(struct buf *out, const char *text, char semicolon)
{
	while (*text) {
		size_t len = char_len((const uint8_t *)text);

		if (*text == ';')
			buf_add_char(out, semicolon);
		else if (len)
			buf_add(out, text, len);
		else
			buf_add_char(out, '?');
		text += len ? len : 1;
	}
}

void text_add_line(struct buf *out, const char *text)
{
	add_clean(out, text, ';');
}

void text_add_token(struct buf *out, const char *text)
{
	add_clean(out, text, '|');
}
