/* SPDX-License-Identifier: MIT */
/* Names of classes and methods: those that an event asks for, and sets of names. */
#pragma once

#include "duet_agent.h"
#include "method/classfile.h"

#define NAMES_MAX 1048576

/* A set. Begins as {0}. */
struct class_names {
	char **slots; /* owned, like the names in it; NULL is empty */
	uint32_t size; /* a power of 2, or 0 */
	uint32_t count;
};

/* Adds a copy of the name if it is new. Returns 0, -ENOMEM, or -ENOSPC when there are NAMES_MAX. */
int names_add(struct class_names *names, const char *name, size_t len);
bool names_has(const struct class_names *names, const char *name, size_t len);
void names_free(struct class_names *names); /* empties it */

/* Which methods an event is about: "CLASS.METHOD" or "CLASS.METHOD(SIGNATURE)", as the user wrote it. */
struct method_target {
	char text[DUET_MAX_TARGET_BYTES]; /* parts, each with NUL; slashes in the class's name */
	uint16_t method, signature; /* where these parts begin; the class's name is the first */
	bool is_any_class, is_any_method; /* a '*' has ended the part: only the beginning must be the same */
	bool has_signature, has_result; /* without the type of the result, any will do */
};

/* Returns 0, or -EINVAL if the text has not this form. */
int target_parse(struct method_target *ret, const char *text);
bool target_has_class(const struct method_target *target, struct class_text name); /* with slashes */
bool target_has_method(const struct method_target *target, struct class_text name, struct class_text descriptor);
