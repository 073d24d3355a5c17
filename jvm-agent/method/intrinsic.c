/* SPDX-License-Identifier: MIT */
#include "method/intrinsic.h"

#include <string.h>

/* Passes an annotation's elements. After one that is neither a number nor a string, the rest is not read. */
static void pass_elements(struct class_reader *from)
{
	uint16_t count = class_read_u2(from);

	for (; count && !from->failed; count--) {
		class_read_bytes(from, 2); /* name */
		if (!memchr("BCDFIJSZs", class_read_u1(from), sizeof("BCDFIJSZs") - 1))
			from->failed = true;
		class_read_bytes(from, 2); /* value */
	}
}

static bool has_annotation(const struct class_file *class, struct class_reader from)
{
	bool has = false;

	for (uint16_t count = class_read_u2(&from); count && !from.failed && !has; count--) {
		struct class_text type = class_utf8(class, class_read_u2(&from));

		has = class_text_is(type, "Ljdk/internal/vm/annotation/IntrinsicCandidate;") || /* JDK 16 */
		      class_text_is(type, "Ljdk/internal/HotSpotIntrinsicCandidate;"); /* JDK 9 */
		pass_elements(&from);
	}
	return has;
}

bool intrinsic_is_annotated(const struct class_file *class, struct class_reader attributes, uint16_t count)
{
	bool is_annotated = false;

	for (; count && !attributes.failed && !is_annotated; count--) {
		struct class_text name = class_utf8(class, class_read_u2(&attributes));
		struct class_reader part = class_read_part(&attributes, class_read_u4(&attributes));

		is_annotated = class_text_is(name, "RuntimeVisibleAnnotations") && has_annotation(class, part);
	}
	return is_annotated;
}
