/* SPDX-License-Identifier: MIT */
#include "writers/shared/filter.h"

#include <errno.h>
#include <string.h>

static bool same_text(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (a[i] != b[i] && !((a[i] == '.' || a[i] == '/') && (b[i] == '.' || b[i] == '/')))
			return false;
	return true;
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
	if (open_start && open_end) {
		for (size_t i = 0; i + len <= name_len; i++)
			if (same_text(name + i, text, len))
				return true;
		return false;
	}
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

/* Compiles the expression so that it matches whole names only. */
static int add_regex(struct filter *filter, const char *pattern, struct buf *why)
{
	char reason[128];
	BUF(whole);
	regex_t regex;
	int code;

	buf_printf(&whole, "^(%s)$", pattern);
	code = whole.failed ? REG_ESPACE : regcomp(&regex, whole.data, REG_EXTENDED | REG_NOSUB);
	if (code == REG_ESPACE)
		return -ENOMEM;
	if (code) {
		regerror(code, &regex, reason, sizeof(reason));
		return buf_explain(why, -EINVAL, "'%s' is not a regular expression: %s", pattern, reason);
	}
	if (!vec_push(&filter->compiled, regex))
		return 0;
	regfree(&regex);
	return -ENOMEM;
}

int filter_init(struct filter *filter, const struct opt_strings *patterns, bool is_regex, struct buf *why)
{
	int err = 0;

	*filter = (struct filter){.patterns = patterns};
	for (size_t i = 0; is_regex && !err && i < patterns->len; i++)
		err = add_regex(filter, patterns->items[i], why);
	if (err < 0)
		filter_release(filter);
	return err;
}

void filter_release(struct filter *filter)
{
	for (size_t i = 0; i < filter->compiled.len; i++)
		regfree(&filter->compiled.items[i]);
	vec_release(&filter->compiled);
}

bool filter_has(const struct filter *filter, const char *name)
{
	for (size_t i = 0; i < filter->compiled.len; i++)
		if (!regexec(&filter->compiled.items[i], name, 0, NULL, 0))
			return true;
	return !filter->compiled.len && filter_match(filter->patterns, name);
}
