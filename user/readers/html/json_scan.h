/* SPDX-License-Identifier: MIT */
/*
 * Reads JSON from memory, value by value, without a tree of it:
 *
 *	json_scan_enter(&scan, '[');
 *	while (json_scan_more(&scan, ']'))
 *		number = json_scan_integer(&scan);
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

void json_scan_init(struct json_scan *scan, const char *text, size_t len);
char json_scan_peek(struct json_scan *scan); /* the first character of the next value; 0 at the end */
void json_scan_enter(struct json_scan *scan, char open); /* '[' or '{' */
bool json_scan_more(struct json_scan *scan, char close); /* true: a value, or a key, follows */
/* Sets `text` to the next string. Its characters may be any but NUL, which becomes '?'. */
void json_scan_string(struct json_scan *scan, struct buf *text);
void json_scan_key(struct json_scan *scan, struct buf *text); /* a string, and the ':' behind it */
int64_t json_scan_integer(struct json_scan *scan);
bool json_scan_word(struct json_scan *scan, const char *word); /* "true", "false" or "null": taken if it is this one */
void json_scan_skip(struct json_scan *scan); /* any value */
