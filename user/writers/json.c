/* SPDX-License-Identifier: MIT */
#include "writers/json.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"

void json_begin(struct json *json, const char *text)
{
	if (json->has_value)
		fputc(',', json->out);
	fputs(text, json->out);
	json->has_value = false;
}

void json_end(struct json *json, const char *text)
{
	fputs(text, json->out);
	json->has_value = true;
}

void json_put(struct json *json, const char *format, ...)
{
	va_list args;

	if (json->has_value)
		fputc(',', json->out);
	va_start(args, format);
	vfprintf(json->out, format, args);
	va_end(args);
	json->has_value = true;
}

/* printf takes ten times as long, and a file may have a hundred million numbers. */
void json_number(struct json *json, uint32_t number)
{
	char text[12], *at = text + sizeof(text);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	if (json->has_value)
		*--at = ',';
	fwrite(at, 1, (size_t)(text + sizeof(text) - at), json->out);
	json->has_value = true;
}

void json_text(struct json *json, const char *text, size_t len)
{
	size_t start = 0;

	json_begin(json, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c != '"' && c != '\\' && c != '<' && c >= 0x20)
			continue;
		fwrite(text + start, 1, i - start, json->out);
		fprintf(json->out, "\\u%04x", c);
		start = i + 1;
	}
	fwrite(text + start, 1, len - start, json->out);
	json_end(json, "\"");
}

/* Most are clean, and formats with the frames of each sample have millions. */
static bool is_plain(const char *text)
{
	while (*text >= ' ' && *text < 0x7f)
		text++;
	return !*text;
}

void json_foreign(struct json *json, const char *text)
{
	BUF(clean);

	if (is_plain(text))
		return json_text(json, text, strlen(text));
	text_add_line(&clean, text);
	json_text(json, clean.data, clean.len);
}

void json_member(struct json *json, const char *key, const char *text)
{
	json_begin(json, "\"");
	fputs(key, json->out);
	fputs("\":", json->out);
	json_foreign(json, text);
}
