/* SPDX-License-Identifier: MIT */
/*
 * Leaves secrets out of command lines, properties and variables: "[redacted]" stands in their place. The table of what
 * is a secret is in redact.c; duet(1), REDACTION, says it to people. What is redacted once stays the same if it is
 * redacted again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Of the whole process: true until this is called. Call before there are threads and children. */
void redact_set(bool is_on);
bool redact_is_on(void);

/* Appends arguments, each of which has a NUL after it, with spaces between them. The last one may lack its NUL. */
void redact_arguments(const char *arguments, size_t len, struct buf *out);
/* Appends a text whose words have blanks between them: a command line of which no more is known. */
void redact_text(const char *text, size_t len, struct buf *out);
/* Appends the value that a property or variable of this name has. */
void redact_value(const char *name, size_t name_len, const char *value, struct buf *out);
