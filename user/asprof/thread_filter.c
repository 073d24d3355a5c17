/* SPDX-License-Identifier: MIT */
#include "asprof/thread_filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct filtering {
	const struct profile *profile;
	const char *text;
	struct timeline kept;
};

/* Reads "N" or "N-M" and what separates it from the next one. Returns the text behind it, or NULL. */
static const char *read_range(const char *text, unsigned long *ret_first, unsigned long *ret_last)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	*ret_first = *ret_last = strtoul(text, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return NULL;
		*ret_last = strtoul(end + 1, &end, 10);
	}
	if (*end && *end != ';')
		return NULL;
	return *end ? end + 1 : end;
}

bool thread_filter_is_valid(const char *text)
{
	unsigned long first, last;

	while (text && *text)
		text = read_range(text, &first, &last);
	return text != NULL;
}

static bool has_thread(const char *text, uint32_t tid)
{
	unsigned long first, last;

	while (text && *text) {
		text = read_range(text, &first, &last);
		if (text && tid >= first && tid <= last)
			return true;
	}
	return false;
}

static bool is_wall(const struct profile *profile, uint32_t event)
{
	return !strcmp(intern_text(&profile->strings, profile->events.items[event].name), "wall");
}

static int keep(void *context, const struct profile_sample *sample)
{
	struct filtering *filtering = context;
	const struct profile *profile = filtering->profile;

	if (is_wall(profile, sample->event) &&
	    !has_thread(filtering->text, profile->threads.items[sample->thread].tid))
		return 0;
	return timeline_add(&filtering->kept, sample);
}

int thread_filter_apply(struct profile *profile, const char *text)
{
	struct filtering filtering = {.profile = profile, .text = text};
	int err;

	timeline_init(&filtering.kept);
	err = timeline_each(&profile->samples, keep, &filtering);
	if (err) {
		timeline_release(&filtering.kept);
		return err;
	}
	timeline_release(&profile->samples);
	profile->samples = filtering.kept;
	return 0;
}
