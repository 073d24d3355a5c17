/* SPDX-License-Identifier: MIT */
#include "out/filter.h"

#include <string.h>

static bool same_char(char a, char b)
{
	return a == b || ((a == '.' || a == '/') && (b == '.' || b == '/'));
}

static bool same_text(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!same_char(a[i], b[i]))
			return false;
	return true;
}

static bool contains(const char *name, size_t name_len, const char *text, size_t len)
{
	for (size_t i = 0; i + len <= name_len; i++)
		if (same_text(name + i, text, len))
			return true;
	return false;
}

static bool pattern_match(const char *pattern, const char *name)
{
	size_t len = strlen(pattern), name_len = strlen(name);
	bool open_start = len > 0 && pattern[0] == '*';
	bool open_end = len > 1 && pattern[len - 1] == '*';
	const char *text = pattern + open_start;

	len -= open_start + open_end;
	if (len > name_len)
		return false;
	if (open_start && open_end)
		return contains(name, name_len, text, len);
	if (open_start)
		return same_text(name + name_len - len, text, len);
	return (open_end || len == name_len) && same_text(name, text, len);
}

bool filter_match(const struct opt_strings *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->len; i++)
		if (pattern_match(patterns->items[i], name))
			return true;
	return false;
}
