/* SPDX-License-Identifier: MIT */
#include "method/targets.h"

#include <errno.h>
#include <string.h>

/* Removes a '*' at the end of a part, where it is allowed only. */
static int take_star(char *part, bool *ret_is_any)
{
	size_t len = strlen(part);
	char *star = strchr(part, '*');

	*ret_is_any = star && star == part + len - 1;
	if (*ret_is_any)
		*star = '\0';
	return (star && !*ret_is_any) || !len ? -EINVAL : 0;
}

int target_parse(struct method_target *ret, const char *text)
{
	size_t len = strlen(text), names = strcspn(text, "(");
	char *method;

	memset(ret, 0, sizeof(*ret));
	if (len + 2 > sizeof(ret->text)) /* a NUL more between method and signature */
		return -EINVAL;
	memcpy(ret->text, text, names);
	method = strrchr(ret->text, '.');
	if (!method)
		return -EINVAL;
	*method++ = '\0';
	for (char *at = ret->text; *at; at++)
		if (*at == '.')
			*at = '/';
	ret->method = (uint16_t)(method - ret->text);
	ret->signature = (uint16_t)(names + 1);
	memcpy(ret->text + ret->signature, text + names, len - names);
	ret->has_signature = text[names];
	ret->has_result = ret->has_signature && text[len - 1] != ')';
	if (ret->has_signature && !strchr(text + names, ')'))
		return -EINVAL;
	return take_star(ret->text, &ret->is_any_class) | take_star(method, &ret->is_any_method);
}

static bool begins_with(struct class_text text, const char *part, bool is_any)
{
	size_t len = strlen(part);

	return (is_any ? text.len >= len : text.len == len) && !memcmp(text.at, part, len);
}

bool target_has_class(const struct method_target *target, struct class_text name)
{
	return begins_with(name, target->text, target->is_any_class);
}

bool target_has_method(const struct method_target *target, struct class_text name, struct class_text descriptor)
{
	return begins_with(name, target->text + target->method, target->is_any_method) &&
	       (!target->has_signature ||
		begins_with(descriptor, target->text + target->signature, !target->has_result));
}
