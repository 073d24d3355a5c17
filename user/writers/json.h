/* SPDX-License-Identifier: MIT */
/* Writes JSON that is safe inside a <script> element. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Writes a quoted string of clean text (base/text.h). '<' is escaped, so that no text can end the element. */
void json_text(FILE *out, const char *text, size_t len);
/* The same for text from outside, after cleaning it. */
void json_foreign(FILE *out, const char *text);
