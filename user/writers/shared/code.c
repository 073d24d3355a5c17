/* SPDX-License-Identifier: MIT */
#include "writers/shared/code.h"

#include <string.h>

#include "duet_jvm.h"

void code_file(const struct profile *profile, const struct frame *frame, struct buf *out)
{
	const char *module = profile_text(profile, frame->module);

	if (frame->kind == FRAME_NATIVE || (frame->kind == FRAME_JVM && duet_is_libjvm(module)))
		return buf_add_str(out, module);
	buf_printf(out, "[%s]", frame_kind_name(frame->kind));
	if (frame->kind == FRAME_KERNEL && *module)
		buf_printf(out, " %s", module);
}

const char *code_build_id(const struct profile *profile, const char *file)
{
	const char *prefix = "buildid:", *id = "";

	for (size_t i = 0; duet_is_libjvm(file) && i < profile->owners.len; i++) {
		const char *other = profile_text(profile, profile->owners.items[i].libjvm);

		if (strncmp(other, prefix, strlen(prefix)))
			continue;
		other += strlen(prefix);
		if (*id && strcmp(id, other))
			return "";
		id = other;
	}
	return id;
}

void code_name(const struct profile *profile, const struct frame *frame, struct buf *out)
{
	static const struct frame_style full = {.signatures = true, .dotted = true};
	BUF(text);
	char *signature;

	frame_name(&profile->strings, frame, &full, &text);
	signature = frame->signature ? strrchr(text.data, '(') : NULL;
	for (char *c = signature; c && *c; c++)
		if (*c == '|') /* frame_name() keeps frames free of ';' */
			*c = ';';
	buf_add(out, text.data, text.len);
	out->failed |= text.failed;
}

const char *code_unit(enum profile_unit unit)
{
	return unit == PROFILE_NS ? "nanoseconds" : profile_units[unit];
}
