/* SPDX-License-Identifier: MIT */
/* Numbers, strings and events as bytes of a JFR file. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

void jfr_put_number(struct buf *out, uint64_t number);
/* Appends each of the numbers. Their order of evaluation is not defined. */
#define jfr_put_numbers(out, ...)                    \
	jfr_put_array(out, (const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
void jfr_put_array(struct buf *out, const uint64_t *numbers, size_t count);
void jfr_put_float(struct buf *out, float number);
void jfr_put_text(struct buf *out, const char *text); /* cleaned and cut if it is very long; NULL is Java's null */
/* Appends an event. `body` is its type and its fields. */
void jfr_put_event(struct buf *out, const struct buf *body);
