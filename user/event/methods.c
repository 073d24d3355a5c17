/* SPDX-License-Identifier: MIT */
#include "event/methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORM "CLASS.METHOD[(SIGNATURE)]"

/* Returns true if a part is a name, with a '*' at its end only. */
static bool is_part(const char *at, size_t len)
{
	const char *star = memchr(at, '*', len);

	return len && (!star || star == at + len - 1);
}

/* Passes one type of a descriptor (JVM specification, 4.3.2). Returns false if there is none. */
static bool pass_type(const char **at)
{
	*at += strspn(*at, "[");
	if (**at == 'L')
		*at += strcspn(*at, ";)");
	else if (!**at || !strchr("BCDFIJSZ", **at))
		return false;
	return *(*at)++ != ')' && (*at)[-1];
}

/* "(I[Ljava/lang/String;)V"; the type of the result may be missing. */
static bool is_signature(const char *at)
{
	for (at++; *at && *at != ')';)
		if (!pass_type(&at))
			return false;
	if (*at++ != ')')
		return false;
	if (*at == 'V')
		at++;
	else if (*at && !pass_type(&at))
		return false;
	return !*at;
}

/* Returns 0, or -EINVAL with one sentence in `why`. */
static int check_target(const char *text, size_t len, struct buf *why)
{
	size_t names = strcspn(text, "(");
	const char *dot = memrchr(text, '.', names < len ? names : len);

	names = names < len ? names : len;
	if (len + 2 > DUET_MAX_TARGET_BYTES)
		buf_printf(why, "'%.60s…' is too long: %d bytes are accepted", text, DUET_MAX_TARGET_BYTES - 2);
	else if (!dot || !is_part(text, (size_t)(dot - text)) || !is_part(dot + 1, names - (size_t)(dot + 1 - text)))
		buf_printf(why, "'%.*s' is not of the form " FORM ", with '*' at the end of a name only", (int)len,
			   text);
	else if (names < len && !is_signature(text + names))
		buf_printf(why, "'%s' is no signature of a method, such as (ILjava/lang/String;)V", text + names);
	else
		return 0;
	return -EINVAL;
}

/* A text with a dot and without a colon; a slash is in a signature only. */
static bool names_method(const char *text)
{
	size_t names = strcspn(text, "(");

	return memchr(text, '.', names) && !memchr(text, '/', names) && !strchr(text, ':');
}

bool event_is_of_methods(const struct event *event)
{
	return event->agent == DUET_AGENT_EVENT_METHOD;
}

int event_make_method(struct event *event, const char *text, struct buf *why)
{
	int err;

	if (!names_method(text))
		return -ENOENT;
	err = check_target(text, strlen(text), why);
	if (err)
		return err;
	event->default_interval = 1;
	event->most_interval = 1000000000;
	event->program = DUET_PROGRAM_NONE;
	event->agent = DUET_AGENT_EVENT_METHOD;
	event->place.name = strdup(text);
	return event->place.name ? 0 : -ENOMEM;
}
