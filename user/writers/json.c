/* SPDX-License-Identifier: MIT */
#include "writers/json.h"

#include "base/buf.h"
#include "base/text.h"

void json_text(FILE *out, const char *text, size_t len)
{
	size_t start = 0;

	fputc('"', out);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c != '"' && c != '\\' && c != '<' && c >= 0x20)
			continue;
		fwrite(text + start, 1, i - start, out);
		fprintf(out, "\\u%04x", c);
		start = i + 1;
	}
	fwrite(text + start, 1, len - start, out);
	fputc('"', out);
}

void json_foreign(FILE *out, const char *text)
{
	BUF(clean);

	text_add_line(&clean, text);
	json_text(out, clean.data, clean.len);
}
