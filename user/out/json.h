/* SPDX-License-Identifier: MIT */
/* JSON as it may stand inside a <script> element. */
#ifndef OUT_JSON_H
#define OUT_JSON_H

#include <stddef.h>
#include <stdio.h>

/* A quoted string of clean text (base/text.h); '<' is escaped, so that no text can end the element. */
void json_text(FILE *out, const char *text, size_t len);
/* The same for text from outside, which is cleaned first. */
void json_foreign(FILE *out, const char *text);

#endif
