/* SPDX-License-Identifier: MIT */
#include "base/parts.h"

#include <string.h>

void parts_add(struct buf *buf, const void *items, size_t bytes)
{
	buf_add(buf, &bytes, sizeof(bytes));
	buf_add(buf, items, bytes);
}

/* Returns the next array; an empty one after an error. */
static const char *next(struct parts *parts, size_t item_bytes, size_t most, size_t *ret_bytes)
{
	const char *items = parts->at + sizeof(*ret_bytes);

	*ret_bytes = 0;
	if (!parts->err && parts->left >= sizeof(*ret_bytes))
		memcpy(ret_bytes, parts->at, sizeof(*ret_bytes));
	else
		parts->err = parts->err ? parts->err : -EBADMSG;
	if (parts->err || *ret_bytes > parts->left - sizeof(*ret_bytes) || *ret_bytes % item_bytes ||
	    *ret_bytes / item_bytes > most) {
		parts->err = parts->err ? parts->err : -EBADMSG;
		*ret_bytes = 0;
		return parts->at;
	}
	parts->at = items + *ret_bytes;
	parts->left -= sizeof(*ret_bytes) + *ret_bytes;
	return items;
}

void parts_read(struct parts *parts, void *ret, size_t bytes)
{
	size_t found;
	const char *items = next(parts, bytes, 1, &found);

	memset(ret, 0, bytes);
	if (found != bytes)
		parts->err = parts->err ? parts->err : -EBADMSG;
	else
		memcpy(ret, items, bytes);
}

void parts_read_text(struct parts *parts, struct buf *ret, size_t most)
{
	size_t bytes;
	const char *text = next(parts, 1, most, &bytes);

	buf_init(ret);
	if (bytes && buf_reserve(ret, bytes))
		buf_add(ret, text, bytes);
	if (ret->failed)
		parts->err = -ENOMEM;
}

void parts_read_items(struct parts *parts, void **items, size_t *len, size_t *size, size_t item_bytes, size_t most)
{
	size_t bytes;
	const char *found = next(parts, item_bytes, most, &bytes);

	*items = NULL;
	*len = *size = 0;
	if (!bytes)
		return;
	if (vec_grow(items, size, bytes / item_bytes, item_bytes) < 0) {
		parts->err = -ENOMEM;
		return;
	}
	memcpy(*items, found, bytes);
	*len = bytes / item_bytes;
	vec_fit(items, size, *len, item_bytes);
}
