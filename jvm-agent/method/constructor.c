/* SPDX-License-Identifier: MIT */
#include "method/constructor.h"

#include <errno.h>
#include <string.h>

#include "method/bytecode.h"

static bool same_text(struct class_text one, struct class_text other)
{
	return one.len == other.len && !memcmp(one.at, other.at, one.len);
}

/* Returns true for a call of a constructor, and in *ret_of its class. */
static bool calls_constructor(const struct class_file *class, const uint8_t *at, struct class_text *ret_of)
{
	struct class_text name;

	return *at == OP_INVOKESPECIAL && class_method_ref(class, class_u2_at(at + 1), ret_of, &name) &&
	       class_text_is(name, "<init>");
}

/* Returns true for the name of this class or its superclass. Names may be long: compare few of them. */
static bool is_own(const struct class_file *class, struct class_text name)
{
	return same_text(name, class->this_name) || same_text(name, class->super_name);
}

/* Each `new` has a call of its constructor, inner ones first. The call that has no `new` is super() or this(). */
static int find_call(const struct class_file *class, const uint8_t *code, uint32_t len)
{
	uint32_t made = 0;
	struct class_text of;

	for (uint32_t bci = 0, bytes; bci < len; bci += bytes) {
		bytes = bytecode_length(code, len, bci);
		if (!bytes)
			return -ENOENT;
		if (code[bci] == OP_NEW)
			made++;
		if (!calls_constructor(class, code + bci, &of))
			continue;
		if (!made)
			return is_own(class, of) ? (int)(bci + bytes) : -ENOENT;
		made--;
	}
	return -ENOENT;
}

struct crossing {
	uint32_t begin;
	bool is_crossed;
};

static void see_target(void *context, uint32_t bci, int64_t target)
{
	struct crossing *crossing = context;

	crossing->is_crossed |= (bci < crossing->begin) != (target < crossing->begin);
}

int constructor_begin(const struct class_file *class, const uint8_t *code, uint32_t len)
{
	int begin = class->super_name.len ? find_call(class, code, len) : 0;
	struct crossing crossing = {.begin = begin > 0 ? (uint32_t)begin : 0};

	for (uint32_t bci = 0; begin > 0 && bci < len; bci += bytecode_length(code, len, bci))
		bytecode_targets(code, bci, see_target, &crossing);
	return crossing.is_crossed ? -ENOENT : begin;
}
