/* SPDX-License-Identifier: MIT */
#include "runtime/class_name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAX_DIMENSIONS 255 /* JVM specification, 4.4.1 */

/* The type of the elements of an array, or NULL. */
static const char *primitive(char letter)
{
	static const char letters[] = "ZBCSIJFD";
	static const char *const names[] = {"boolean", "byte", "char", "short", "int", "long", "float", "double"};
	const char *at = letter ? strchr(letters, letter) : NULL;

	return at ? names[at - letters] : NULL;
}

/* A '/' between packages, or the '+' of HotSpot's own name for a hidden class. */
static bool is_dot(const char *text, size_t len)
{
	return *text == '/' || (len > 3 && !memcmp(text, "+0x", 3));
}

void class_name_add(struct buf *out, const char *signature, size_t len)
{
	size_t dimensions = 0, start = out->len;
	const char *element;

	while (dimensions < len && dimensions < MAX_DIMENSIONS && signature[dimensions] == '[')
		dimensions++;
	signature += dimensions;
	len -= dimensions;
	element = dimensions && len == 1 ? primitive(signature[0]) : NULL;
	if (len >= 2 && signature[0] == 'L' && signature[len - 1] == ';') {
		signature++;
		len -= 2;
	}
	if (element)
		buf_add_str(out, element);
	for (size_t i = 0; !element && i < len; i++)
		buf_add_char(out, is_dot(signature + i, len - i) ? '.' : signature[i]);
	if (!out->failed && out->len > start)
		buf_cut(out, start + text_join_surrogates(out->data + start, out->len - start));
	while (dimensions--)
		buf_add_str(out, "[]");
}

uint32_t java_text_intern(struct intern *strings, const char *text, uint32_t len)
{
	char *copy = memchr(text, 0xed, len) ? buf_duplicate(text, len) : NULL; /* each surrogate begins with it */
	uint32_t id;

	if (!copy)
		return intern_bytes(strings, text, len);
	id = intern_bytes(strings, copy, (uint32_t)text_join_surrogates(copy, len));
	free(copy);
	return id;
}
