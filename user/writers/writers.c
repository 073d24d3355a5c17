/* SPDX-License-Identifier: MIT */
#include "writers/writer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EVENT_PART_MAX 60 /* bytes */

#define ROW(name) &writer_##name,
const struct writer *const writers[] = {WRITERS(ROW) NULL};

/* Returns true if the list with commas contains the word. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (list) {
		if (strncasecmp(list, word, len) == 0 && (list[len] == ',' || list[len] == '\0'))
			return true;
		list = strchr(list, ',');
		if (list)
			list++;
	}
	return false;
}

/* An extension is accepted as the name of its format, too: -o html. */
const struct writer *writer_by_name(const char *name)
{
	for (size_t i = 0; writers[i]; i++)
		if (strcmp(writers[i]->name, name) == 0 || list_has(writers[i]->extensions, name))
			return writers[i];
	return NULL;
}

const struct writer *writer_by_word(const char *word, struct writer_options *options)
{
	const char *equals = strchr(word, '=');
	const struct writer *writer = writer_by_name(word);
	unsigned long count;
	char name[32], *end;

	if (writer || !equals)
		return writer;
	snprintf(name, sizeof(name), "%.*s", (int)(equals - word), word);
	writer = writer_by_name(name);
	count = strtoul(equals + 1, &end, 10);
	if (!writer || !writer->count_at || !isdigit((unsigned char)equals[1]) || *end || !count || count > UINT32_MAX)
		return NULL;
	*(uint32_t *)((char *)options + writer->count_at) = (uint32_t)count;
	return writer;
}

const char *writer_extension(const struct writer *writer, size_t *ret_len)
{
	const char *list = writer->extensions ? writer->extensions : writer->name;

	*ret_len = strcspn(list, ",");
	return list;
}

/* The writer that the end of the file name chooses, after *ret_stem bytes and a dot; NULL if there is none. */
static const struct writer *writer_of_name(const char *path, size_t *ret_stem)
{
	/* The first dot that gives an extension counts, so that x.pb.gz is found before x.gz. */
	for (const char *dot = strchr(basename(path), '.'); dot; dot = strchr(dot + 1, '.'))
		for (size_t i = 0; writers[i]; i++)
			if (list_has(writers[i]->extensions, dot + 1)) {
				*ret_stem = (size_t)(dot - path);
				return writers[i];
			}
	return NULL;
}

const struct writer *writer_by_path(const char *path)
{
	size_t stem;
	const struct writer *writer = writer_of_name(path, &stem);

	return writer ? writer : &writer_text;
}

size_t writer_stem(const char *path)
{
	size_t stem = strlen(path);

	(void)writer_of_name(path, &stem);
	return stem;
}

const char *writer_event(const struct profile *profile, const struct writer_options *options)
{
	return options->event < profile->events.len ? profile_event_name(profile, options->event) : "";
}

const char *writer_unit(const struct profile *profile, const struct writer_options *options)
{
	bool is_there = options->event < profile->events.len;
	enum profile_unit unit = is_there ? profile->events.items[options->event].unit : PROFILE_NS;

	return unit == PROFILE_COUNT ? writer_event(profile, options) : profile_units[unit];
}

bool writer_shows_processes(const struct profile *profile, const struct writer_options *options)
{
	if (options->by[0] != WRITER_BY_NONE || profile->processes == PROFILE_NEVER)
		return false;
	for (size_t i = 1; i < profile->threads.len; i++)
		if (profile->threads.items[i].pid != profile->threads.items[0].pid)
			return true;
	return profile->processes == PROFILE_ALWAYS;
}

void writer_thread_text(const struct profile *profile, uint32_t thread, struct buf *out)
{
	const struct profile_thread *row = &profile->threads.items[thread];

	buf_printf(out, "%s %u", profile_text(profile, row->process), row->pid);
	if (row->tid != PROFILE_VIRTUAL)
		buf_printf(out, "/%u", row->tid);
	buf_printf(out, " %s", profile_text(profile, row->name));
}

void writer_event_part(const char *event, struct buf *ret)
{
	size_t len = strlen(event);

	for (size_t i = len > EVENT_PART_MAX ? len - EVENT_PART_MAX : 0; i < len; i++)
		buf_add_char(ret, isalnum((unsigned char)event[i]) || strchr(":-", event[i]) ? event[i] : '_');
}

void writer_event_file(const char *file, const char *event, struct buf *ret)
{
	size_t stem = writer_stem(file);
	const char *dot = strrchr(basename(file), '.');

	if (dot && !file[stem])
		stem = (size_t)(dot - file);
	buf_printf(ret, "%.*s.", (int)stem, file);
	writer_event_part(event, ret);
	buf_add_str(ret, file + stem);
}

void writer_options_default(struct writer_options *options)
{
	*options = (struct writer_options){
		.traces = 100,
		.flat = 200,
		.col_version = 2,
		.chunk_bytes = WRITER_CHUNK_BYTES,
		.chunk_ns = WRITER_CHUNK_NS,
	};
}

void writer_rewind(FILE *out, int64_t position)
{
	__fpurge(out);
	clearerr(out);
	if (position >= 0)
		(void)fseeko(out, position, SEEK_SET);
}

int writer_finish(FILE *out)
{
	bool failed = ferror(out);

	errno = 0;
	if (fflush(out) != EOF && !failed)
		return 0;
	return errno ? -errno : -EIO;
}

#define ATTRIBUTE "attr:"

static enum writer_group group_named(const char *name, size_t len)
{
	static const char *const names[] = {
		[WRITER_BY_CONTAINER] = "container",
		[WRITER_BY_PROCESS] = "process",
		[WRITER_BY_THREAD] = "thread",
		[WRITER_BY_SERVICE] = "service",
		[WRITER_BY_TRACE] = "trace",
		[WRITER_BY_SPAN] = "span",
	};

	if (len > strlen(ATTRIBUTE) && !memcmp(name, ATTRIBUTE, strlen(ATTRIBUTE)))
		return WRITER_BY_ATTRIBUTE;
	for (enum writer_group group = WRITER_BY_CONTAINER; group < WRITER_BY_ATTRIBUTE; group++)
		if (strlen(names[group]) == len && !memcmp(names[group], name, len))
			return group;
	return WRITER_BY_NONE;
}

int writer_groups_parse(struct writer_options *options, const char *list)
{
	enum writer_group groups[WRITER_GROUPS] = {WRITER_BY_NONE};
	const char *words[WRITER_GROUPS] = {NULL};

	for (size_t i = 0;; i++, list++) {
		size_t len = strcspn(list, ",");
		enum writer_group group = group_named(list, len);

		if (i == WRITER_GROUPS || group == WRITER_BY_NONE)
			return -EINVAL;
		for (size_t j = 0; j < i; j++)
			if (!strncmp(words[j], list, len) && strcspn(words[j], ",") == len)
				return -EINVAL;
		groups[i] = group;
		words[i] = list;
		list += len;
		if (!*list)
			break;
	}
	memcpy(options->by, groups, sizeof(groups));
	for (size_t i = 0; i < WRITER_GROUPS; i++)
		options->by_keys[i] = groups[i] == WRITER_BY_ATTRIBUTE ? words[i] + strlen(ATTRIBUTE) : NULL;
	return 0;
}
