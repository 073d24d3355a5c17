/* SPDX-License-Identifier: MIT */
/* A growing byte string, always NUL-terminated. A failed allocation sets `failed` and keeps the contents so far. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* "" when empty, never NULL */
	size_t len;
	size_t size;
	bool failed;
};

/* A local variable: an empty buf, which is released at the end of its scope. */
#define BUF(name) __attribute__((cleanup(buf_release))) struct buf name = BUF_NONE
#define BUF_NONE {.data = buf_empty} /* initializes a member as buf_init() does */
extern char buf_empty[1]; /* never written, because size is 0 */

void buf_init(struct buf *buf); /* for others; buf_release() afterwards */
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf); /* keeps the memory */
void buf_shrink(struct buf *buf); /* frees unused capacity; call when the string is complete */
void buf_cut(struct buf *buf, size_t len); /* truncates to an earlier length */
/* Makes room for `more` bytes behind `len`, and a NUL. Returns false, and `failed` is set, when out of memory. */
bool buf_reserve(struct buf *buf, size_t more);
bool buf_reserve_only(struct buf *buf, size_t more); /* the same, and no more: for large strings of known length */
void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_add_str(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *buf, const char *format, ...);
__attribute__((format(printf, 2, 0))) void buf_vprintf(struct buf *buf, const char *format, va_list args);
/* Appends what is wrong. Returns `err`. */
__attribute__((format(printf, 3, 4))) int buf_explain(struct buf *why, int err, const char *format, ...);
/* Returns the string, which the caller frees, or NULL when `failed` is set. */
char *buf_detach(struct buf *buf);

/* Returns a copy of any bytes, which the caller frees, or NULL when out of memory. */
void *buf_duplicate(const void *bytes, size_t len);
