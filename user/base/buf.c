/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

char buf_empty[1];

void buf_init(struct buf *buf)
{
	*buf = (struct buf){.data = buf_empty};
}

void buf_release(struct buf *buf)
{
	if (!buf)
		return;
	if (buf->size)
		free(buf->data);
	buf_init(buf);
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->failed = false;
	if (buf->size)
		buf->data[0] = '\0';
}

void buf_shrink(struct buf *buf)
{
	char *fitted = buf->size > buf->len + 1 ? realloc(buf->data, buf->len + 1) : NULL;

	if (!fitted)
		return;
	buf->data = fitted;
	buf->size = buf->len + 1;
}

void buf_cut(struct buf *buf, size_t len)
{
	if (len >= buf->len)
		return;
	buf->len = len;
	buf->data[len] = '\0';
}

bool buf_reserve(struct buf *buf, size_t more)
{
	size_t size = buf->size ? buf->size : 64;
	char *grown;

	if (more < buf->size - buf->len)
		return true;
	if (more >= SIZE_MAX / 4 - buf->len) {
		buf->failed = true;
		return false;
	}
	while (size <= buf->len + more)
		size *= 2;
	grown = realloc(buf->size ? buf->data : NULL, size);
	if (!grown) {
		buf->failed = true;
		return false;
	}
	buf->data = grown;
	buf->size = size;
	return true;
}

bool buf_reserve_only(struct buf *buf, size_t more)
{
	size_t size = buf->len + more + 1;
	char *grown = size > buf->size && more < SIZE_MAX / 4 ? realloc(buf->size ? buf->data : NULL, size) : NULL;

	if (!grown)
		return buf_reserve(buf, more);
	buf->data = grown;
	buf->size = size;
	return true;
}

void buf_add(struct buf *buf, const void *bytes, size_t len)
{
	if (!len || !buf_reserve(buf, len))
		return;
	memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void buf_add_str(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (len < 0)
		buf->failed = true;
	if (len <= 0 || !buf_reserve(buf, (size_t)len))
		return;
	vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
	buf->len += (size_t)len;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(buf, format, args);
	va_end(args);
}

int buf_explain(struct buf *why, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(why, format, args);
	va_end(args);
	return err;
}

char *buf_detach(struct buf *buf)
{
	char *text = NULL;

	if (!buf->failed && buf_reserve(buf, 0)) {
		text = buf->data;
		text[buf->len] = '\0';
		buf->size = 0;
	}
	buf_release(buf);
	return text;
}

void *buf_duplicate(const void *bytes, size_t len)
{
	void *copy = malloc(len);

	return copy ? memcpy(copy, bytes, len) : NULL;
}

int vec_grow(void **items, size_t *size, size_t want, size_t item_bytes)
{
	size_t new_size = *size ? *size : 8, bytes;
	void *grown;

	if (want <= *size)
		return 0;
	while (new_size < want && new_size <= SIZE_MAX / 2)
		new_size *= 2;
	if (new_size < want || __builtin_mul_overflow(new_size, item_bytes, &bytes))
		return -ENOMEM;
	grown = realloc(*items, bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*size = new_size;
	return 0;
}

void vec_fit(void **items, size_t *size, size_t len, size_t item_bytes)
{
	void *fitted = len && len < *size ? realloc(*items, len * item_bytes) : NULL;

	if (!fitted)
		return;
	*items = fitted;
	*size = len;
}

int vec_by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return vec_order(x, y);
}

size_t vec_count_by(const void *items, size_t count, size_t item_bytes, const void *key,
		    int (*compare)(const void *item, const void *key))
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare((const char *)items + middle * item_bytes, key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t vec_count_to(const void *items, size_t count, size_t item_bytes, uint64_t value)
{
	return vec_count_by(items, count, item_bytes, &value, vec_by_u64);
}
