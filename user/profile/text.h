/* SPDX-License-Identifier: MIT */
/* Names come from symbol tables, class files and /proc: any byte may be in them. Here they become text. */
#ifndef PROFILE_TEXT_H
#define PROFILE_TEXT_H

#include "base/buf.h"

/*
 * Appends `text` as valid UTF-8 on one line: every byte of a control character,
 * of an ill-formed sequence and of what reorders or breaks lines becomes '?'.
 */
void text_add_line(struct buf *out, const char *text);
/* The same, and ';' becomes '|': one token of a collapsed stack. */
void text_add_token(struct buf *out, const char *text);

#endif
