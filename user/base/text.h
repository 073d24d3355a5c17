/* SPDX-License-Identifier: MIT */
/*
 * Names come from symbol tables, class files, /proc and other processes: any byte may be in them. Here they become text
 * that a terminal shows and does not obey. All that people read goes through here: reports, messages, lists.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdint.h>

#include "base/buf.h"

/*
 * Appends `text` as valid UTF-8 on one line: every byte of a control character,
 * of an ill-formed sequence and of what reorders or breaks lines becomes '?'.
 */
void text_add_line(struct buf *out, const char *text);
/* The same for several lines: '\n' stays. */
void text_add_lines(struct buf *out, const char *text);
/* As one line, and ';' becomes '|': one token of a collapsed stack. */
void text_add_token(struct buf *out, const char *text);

/*
 * Writes the value of a java.lang.String, Latin-1 or UTF-16, as UTF-8 with a NUL: `bytes` * 2 + 1 at most. What is cut
 * in half at its end, a NUL or a lone surrogate becomes '?'.
 */
void text_from_java(char *to, const uint8_t *value, size_t bytes, bool is_utf16);

/* How many letters must be changed, added or left out to make one of the other; SIZE_MAX when one has more than 32. */
size_t text_distance(const char *a, const char *b);

#endif
