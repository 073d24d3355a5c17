/* SPDX-License-Identifier: MIT */
/* Writes JSON that is safe inside a <script> element. Values after the first one of a list get a comma before them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* {.out = out}: nothing is written yet. */
struct json {
	FILE *out; /* not owned */
	bool has_value; /* the next value needs a comma */
};

/* Writes what begins one or several values, "\"a\":{": the next value is the first of a list. */
void json_begin(struct json *json, const char *text);
void json_end(struct json *json, const char *text); /* and what ends them: "}" */
/* Writes a value or a member that is JSON already. */
__attribute__((format(printf, 2, 3))) void json_put(struct json *json, const char *format, ...);
/* Writes the array that `begin` begins, of values of a format and an expression of `i`. */
#define JSON_ARRAY(json, begin, count, ...)                                                                            \
	do {                                                                                                           \
		json_begin(json, begin);                                                                               \
		for (size_t i = 0; i < (count); i++)                                                                   \
			json_put(json, __VA_ARGS__);                                                                   \
		json_end(json, "]");                                                                                   \
	} while (0)
void json_number(struct json *json, uint32_t number);
/* Writes a quoted string of clean text (base/text.h). '<' is escaped, so that no text can end the element. */
void json_text(struct json *json, const char *text, size_t len);
/* The same for text from outside, after cleaning it; and as a member with this key. */
void json_foreign(struct json *json, const char *text);
void json_member(struct json *json, const char *key, const char *text);
