/* SPDX-License-Identifier: MIT */
/*
 * What a program says of itself or of its work, as one text: "key=value\n" for each attribute. The text may be a
 * file's, so it may be anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define ATTRIBUTES_MAX 64 /* that formats show of one text */
#define ATTRIBUTES_SERVICE "service.name"
#define ATTRIBUTES_KEY_MAX 255 /* bytes of a name; a longer one is cut */
#define ATTRIBUTES_VALUE_MAX 1024 /* the same of a value */

struct attribute {
	const char *key, *value; /* not terminated */
	size_t key_len, value_len;
};

/* Takes the first attribute of the text at *at. Returns false at its end. */
bool attributes_next(const char **at, struct attribute *ret);
bool attributes_find(const char *text, const char *key, struct attribute *ret); /* the first of this key */
/* Append a name or a value of any bytes, clean, on one line, and at most `most` bytes of it; a name without '='. */
void attributes_add_key(struct buf *out, const void *key, size_t len);
void attributes_add_value(struct buf *out, const void *value, size_t len, size_t most);
/* Appends an attribute of any bytes, unless its name is empty. */
void attributes_add(struct buf *out, const void *key, size_t key_len, const void *value, size_t value_len);
/* Appends the text without the secrets of its values. */
void attributes_redact(const char *text, struct buf *out);
bool attribute_is(const struct attribute *attribute, const char *key);
