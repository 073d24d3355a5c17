/* SPDX-License-Identifier: MIT */
/* Arrays as bytes, from a process that is not trusted: each is its number of bytes, then these. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/vec.h"

void parts_add(struct buf *buf, const void *items, size_t bytes);
#define parts_add_vec(buf, v) parts_add(buf, (v)->items, (v)->len * sizeof(*(v)->items))

/* What is left to read. After an error, what is read is empty. */
struct parts {
	const char *at;
	size_t left;
	int err; /* 0, -EBADMSG or -ENOMEM */
};

void parts_read(struct parts *parts, void *ret, size_t bytes); /* an array of exactly so many bytes */
void parts_read_text(struct parts *parts, struct buf *ret, size_t most); /* at most so many; `ret` is not initialized */
void parts_read_items(struct parts *parts, void **items, size_t *len, size_t *size, size_t item_bytes, size_t most);
#define parts_read_vec(parts, v, most) \
	parts_read_items(parts, (void **)&(v)->items, &(v)->len, &(v)->size, sizeof(*(v)->items), (most))
