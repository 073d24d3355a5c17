/* SPDX-License-Identifier: MIT */
#include "event/methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"

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
static int check_target(const char *text, struct buf *why)
{
	size_t names = strcspn(text, "(");
	const char *dot = memrchr(text, '.', names);

	if (strlen(text) + 2 > DUET_MAX_TARGET_BYTES)
		buf_printf(why, "'%.60s…' is too long: %d bytes are accepted", text, DUET_MAX_TARGET_BYTES - 2);
	else if (!dot || !is_part(text, (size_t)(dot - text)) || !is_part(dot + 1, names - (size_t)(dot + 1 - text)))
		buf_printf(why, "'%s' is not of the form " FORM ", with '*' at the end of a name only", text);
	else if (text[names] && !is_signature(text + names))
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
	return event->agent == DUET_AGENT_EVENT_METHOD || event->agent == DUET_AGENT_EVENT_TRACE;
}

static int make_target(struct event *event, const char *text, size_t len, struct buf *why)
{
	event->default_interval = 1;
	event->most_interval = 1000000000;
	event->program = DUET_PROGRAM_NONE;
	event->place.name = strndup(text, len);
	return event->place.name ? check_target(event->place.name, why) : -ENOMEM;
}

int event_make_method(struct event *event, const char *text, struct buf *why)
{
	if (!names_method(text))
		return -ENOENT;
	event->agent = DUET_AGENT_EVENT_METHOD;
	return make_target(event, text, strlen(text), why);
}

/* 0: every call. */
static int read_threshold(uint64_t *ret_ns, const char *text, struct buf *why)
{
	if (strcmp(text, "0") != 0)
		return opt_interval(ret_ns, text, why);
	*ret_ns = 0;
	return 0;
}

int event_make_trace(struct event *event, const char *text, struct buf *why)
{
	size_t len = strcspn(text, ":");

	if (!memchr(text, '.', len)) /* a tracepoint by its number, or of the group "trace" */
		return -ENOENT;
	event->agent = DUET_AGENT_EVENT_TRACE;
	event->unit = EVENT_NS;
	event->counts_calls = true;
	if (text[len] && read_threshold(&event->place.offset, text + len + 1, why) < 0)
		return -EINVAL;
	return make_target(event, text, len, why);
}
