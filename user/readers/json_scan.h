/* SPDX-License-Identifier: MIT */
/*
 * Reads JSON from memory, value by value, without a tree of it:
 *
 *	scan_enter(&scan, '[');
 *	while (scan_more(&scan, ']'))
 *		number = scan_integer(&scan);
 *
 * After the first error nothing is read any more: loops end, and numbers are 0. The caller tests `failed` at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct json_scan {
	const char *start, *at, *end;
	bool is_first; /* of the innermost list or object */
	bool failed; /* the text is not JSON of the expected form; `at` is the place */
};

/* The first character of the next value; 0 at the end. */
char scan_peek(struct json_scan *scan);
void scan_enter(struct json_scan *scan, char open);
/* True if a value, or a key, follows. */
bool scan_more(struct json_scan *scan, char close);
/* Sets `text` to the next string. Its characters may be any but NUL, which becomes '?'. */
void scan_string(struct json_scan *scan, struct buf *text);
void scan_key(struct json_scan *scan, struct buf *text);
int64_t scan_integer(struct json_scan *scan);
/* Takes "true", "false" or "null" if it is this word. */
bool scan_word(struct json_scan *scan, const char *word);
/* Lists and objects are counted, not checked: what is skipped may be anything. */
void scan_skip(struct json_scan *scan);
