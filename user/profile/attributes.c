/* SPDX-License-Identifier: MIT */
#include "profile/attributes.h"

#include <string.h>

#include "base/redact.h"

bool attributes_next(const char **at, struct attribute *ret)
{
	size_t len = strcspn(*at, "\n");
	const char *equals = memchr(*at, '=', len);

	if (!**at)
		return false;
	ret->key = *at;
	ret->key_len = equals ? (size_t)(equals - *at) : len;
	ret->value = equals ? equals + 1 : *at + len;
	ret->value_len = (size_t)(*at + len - ret->value);
	*at += len + ((*at)[len] == '\n');
	return true;
}

bool attribute_is(const struct attribute *attribute, const char *key)
{
	return attribute->key_len == strlen(key) && !memcmp(attribute->key, key, attribute->key_len);
}

bool attributes_find(const char *text, const char *key, struct attribute *ret)
{
	while (attributes_next(&text, ret))
		if (attribute_is(ret, key))
			return true;
	return false;
}

void attributes_redact(const char *text, struct buf *out)
{
	struct attribute attribute;
	BUF(value);

	while (attributes_next(&text, &attribute)) {
		buf_clear(&value);
		buf_add(&value, attribute.value, attribute.value_len);
		buf_add(out, attribute.key, attribute.key_len);
		buf_add_str(out, "=");
		redact_value(attribute.key, attribute.key_len, value.failed ? "" : value.data, out);
		buf_add_str(out, "\n");
	}
}
