/* SPDX-License-Identifier: MIT */
/* Which methods an event is about: "CLASS.METHOD" or "CLASS.METHOD(SIGNATURE)", as the user wrote it. */
#ifndef METHOD_TARGETS_H
#define METHOD_TARGETS_H

#include <stdbool.h>

#include "duet_agent.h"
#include "method/classfile.h"

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

#endif
