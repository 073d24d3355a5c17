/* SPDX-License-Identifier: MIT */
#include "cmd/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "profile/merge.h"
#include "readers/reader.h"
#include "windows/window_files.h"

static int read_source(struct reader_source *source, struct profile *profile, struct buf *why)
{
	int err = profile_init(profile);

	if (err < 0)
		return buf_explain(why, err, "out of memory");
	err = reader_read(source, profile, why);
	if (err < 0)
		profile_release(profile);
	else if (source->warning.len)
		log_warn("%s: %s", source->name, source->warning.data);
	return err;
}

int inputs_read(struct profile *profile, const char *path)
{
	struct reader_source source;
	BUF(why);
	int err = reader_open(&source, path, &why);

	if (!err) {
		err = read_source(&source, profile, &why);
		reader_close(&source);
	}
	return err < 0 ? log_fail(err, "%s: %s", strcmp(path, "-") ? path : "stdin", why.data) : err;
}

static int add_input(struct profile *profile, const char *path)
{
	struct profile one;
	BUF(why);
	int err = inputs_read(&one, path);

	if (err < 0)
		return err;
	err = profile_merge(profile, &one, path, &why);
	if (err < 0)
		log_error("%s: %s", path, why.data);
	profile_release(&one);
	return err;
}

int inputs_read_all(struct profile *profile, char **paths, size_t count)
{
	int err;

	if (count == 1)
		return inputs_read(profile, paths[0]);
	err = profile_init(profile);
	if (err < 0)
		return log_fail(err, "out of memory");
	for (size_t i = 0; !err && i < count; i++)
		err = add_input(profile, paths[i]);
	if (err < 0)
		profile_release(profile);
	return err;
}

static int add_copy(struct inputs *inputs, const char *path)
{
	char *copy = strdup(path);

	if (copy && !vec_push(inputs, copy))
		return 0;
	free(copy);
	return log_fail(-ENOMEM, "out of memory");
}

static int add_matches(struct inputs *inputs, const char *pattern)
{
	glob_t found;
	int code = glob(pattern, 0, NULL, &found), err = 0;

	for (size_t i = 0; !code && !err && i < found.gl_pathc; i++)
		err = add_copy(inputs, found.gl_pathv[i]);
	if (!code)
		globfree(&found);
	if (code == GLOB_NOMATCH)
		log_error("%s: no file matches this pattern", pattern);
	else if (code)
		log_error("%s: cannot be searched for: %s", pattern,
			  code == GLOB_NOSPACE ? "out of memory" : "read error");
	return code ? -ENOENT : err;
}

/* An existing file's name is no pattern, whatever characters it has. */
int inputs_expand(struct inputs *inputs, char **words, size_t count)
{
	size_t stdins = 0;
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		bool is_pattern = strpbrk(words[i], "*?[") && access(words[i], F_OK);

		stdins += !strcmp(words[i], "-");
		err = is_pattern ? add_matches(inputs, words[i]) : add_copy(inputs, words[i]);
	}
	if (err || stdins <= 1)
		return err;
	return log_refuse("stdin can be read once: - is given %zu times", stdins);
}

int inputs_expand_folders(struct inputs *inputs, struct moment *from, struct moment *to)
{
	struct inputs words = *inputs;
	int err = 0;

	*inputs = (struct inputs){0};
	for (size_t i = 0; !err && i < words.len; i++)
		err = folder_is(words.items[i]) ? folder_expand(inputs, words.items[i], from, to)
						: add_copy(inputs, words.items[i]);
	inputs_release(&words);
	return err;
}

void inputs_release(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->len; i++)
		free(inputs->items[i]);
	vec_release(inputs);
}

int inputs_read_words(struct profile *profile, char **words, size_t count)
{
	struct inputs inputs = {0};
	int err = inputs_expand(&inputs, words, count);

	if (!err)
		err = inputs_read_all(profile, inputs.items, inputs.len);
	inputs_release(&inputs);
	return err;
}

bool folder_is(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int compare(const void *a, const void *b)
{
	const struct window_file *x = a, *y = b;

	return strverscmp(x->key, y->key);
}

static bool is_of(const struct window_file *file, const char *extension)
{
	const char *dot = strrchr(file->name, '.');

	return dot && !strcmp(dot + 1, extension);
}

/* Keeps the windows of the first format that there is, in the order of their ends. */
static void keep_format(struct window_list *list)
{
	const char *extension = "jfr";
	size_t kept = 0;

	for (size_t i = 0; i < list->len; i++)
		if (is_of(&list->items[i], "duet"))
			extension = "duet";
	for (size_t i = 0; i < list->len; i++)
		if (is_of(&list->items[i], extension))
			list->items[kept++] = list->items[i];
	list->len = kept;
	if (kept)
		qsort(list->items, kept, sizeof(*list->items), compare);
}

static int read_list(const char *folder, struct window_list *list)
{
	IO_FD(dir) = window_folder_open(folder, O_RDONLY);
	int err = dir < 0 ? dir : window_list_read(dir, list);

	if (err < 0)
		return log_fail(err, "%s: cannot be read: %s", folder, strerror(-err));
	keep_format(list);
	if (list->len)
		return 0;
	return log_fail(-ENOENT, "%s: no window in the format duet or jfr: other formats have no times", folder);
}

struct span {
	uint64_t start_ns, end_ns;
};

/* Names have ends alone, and these to a second: when a window began is in the file. */
static struct span span_of(const char *folder, const struct window_file *file)
{
	struct span span = {file->end_ns, file->end_ns + NS_PER_SEC};
	char *path = NULL;
	struct profile profile;

	if (asprintf(&path, "%s/%s", folder, file->name) >= 0 && !inputs_read(&profile, path)) {
		span = (struct span){profile.start_ns, profile.end_ns};
		profile_release(&profile);
	}
	free(path);
	return span;
}

/* Makes dates of the times that the windows are cut at. */
static void resolve(const struct span *all, struct moment *from, struct moment *to)
{
	if (from->kind == MOMENT_OF_DAY)
		*from = (struct moment){MOMENT_DATE, moment_last_of_day(from, all->end_ns)};
	else if (from->kind != MOMENT_NONE)
		*from = (struct moment){MOMENT_DATE, moment_ns(from, all->start_ns, all->end_ns, 0)};
	if (to->kind == MOMENT_OF_DAY && from->kind != MOMENT_NONE)
		*to = (struct moment){MOMENT_DATE, moment_next_of_day(to, from->ns)};
	else if (to->kind == MOMENT_OF_DAY)
		*to = (struct moment){MOMENT_DATE, moment_last_of_day(to, all->end_ns)};
	else if (to->kind != MOMENT_NONE)
		*to = (struct moment){MOMENT_DATE, moment_ns(to, all->start_ns, all->end_ns, 0)};
}

static void print_time(char text[32], uint64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_SEC);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &tm))
		strcpy(text, "?");
}

static int refuse(const char *folder, const struct span *all)
{
	char first[32], last[32];

	print_time(first, all->start_ns);
	print_time(last, all->end_ns);
	return log_fail(-ENOENT, "%s: no window of this time: it has windows from %s to %s, UTC", folder, first, last);
}

/* The end of the window before this one, before which this one did not begin. Several may have one end. */
static uint64_t end_before(const struct window_list *list, size_t i)
{
	for (size_t before = i; before--;)
		if (list->items[before].end_ns < list->items[i].end_ns)
			return list->items[before].end_ns;
	return 0;
}

/* No window ends before the second in its name. The first that ends after the time may have begun after a gap. */
static bool overlaps(const char *folder, const struct window_list *list, size_t i, const struct span *wanted)
{
	const struct window_file *file = &list->items[i];

	if (file->end_ns + NS_PER_SEC <= wanted->start_ns || end_before(list, i) >= wanted->end_ns)
		return false;
	return file->end_ns < wanted->end_ns || span_of(folder, file).start_ns < wanted->end_ns;
}

static int add_windows(struct inputs *inputs, const char *folder, const struct window_list *list,
		       const struct span *wanted)
{
	int err = 0;

	for (size_t i = 0; !err && i < list->len; i++) {
		char *path;

		if (!overlaps(folder, list, i, wanted))
			continue;
		if (asprintf(&path, "%s/%s", folder, list->items[i].name) < 0)
			return -ENOMEM;
		err = vec_push(inputs, path);
		if (err)
			free(path);
	}
	return err;
}

int folder_expand(struct inputs *inputs, const char *folder, struct moment *from, struct moment *to)
{
	struct window_list list = {0};
	struct span all, wanted;
	size_t before = inputs->len;
	int err = read_list(folder, &list);

	if (err < 0)
		goto out;
	all.start_ns = span_of(folder, &list.items[0]).start_ns;
	all.end_ns = span_of(folder, &list.items[list.len - 1]).end_ns;
	resolve(&all, from, to);
	wanted = (struct span){from->kind ? from->ns : 0, to->kind ? to->ns : UINT64_MAX};
	err = add_windows(inputs, folder, &list, &wanted);
	if (err < 0)
		log_error("out of memory");
	else if (inputs->len == before)
		err = refuse(folder, &all);
out:
	vec_release(&list);
	return err;
}
