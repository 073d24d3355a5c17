/* SPDX-License-Identifier: MIT */
#include "profile/attributes.h"

#include <string.h>

#include "base/redact.h"
#include "base/text.h"

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

void attributes_add_value(struct buf *out, const void *value, size_t len, size_t most)
{
	BUF(raw);

	buf_add(&raw, value, len < most ? len : most);
	for (size_t i = 0; i < raw.len; i++)
		raw.data[i] = raw.data[i] ? raw.data[i] : '?';
	text_add_line(out, raw.data);
	out->failed |= raw.failed;
}

void attributes_add_key(struct buf *out, const void *key, size_t len)
{
	size_t from = out->len;

	attributes_add_value(out, key, len, ATTRIBUTES_KEY_MAX);
	for (char *equals; (equals = strchr(out->data + from, '='));)
		*equals = '?';
}

void attributes_add(struct buf *out, const void *key, size_t key_len, const void *value, size_t value_len)
{
	if (!key_len)
		return;
	attributes_add_key(out, key, key_len);
	buf_add_str(out, "=");
	attributes_add_value(out, value, value_len, ATTRIBUTES_VALUE_MAX);
	buf_add_str(out, "\n");
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
