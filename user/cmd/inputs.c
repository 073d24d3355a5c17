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
#include "cmd/work.h"
#include "profile/merge.h"
#include "readers/reader.h"
#include "windows/window_files.h"

static const char *name_of(const struct input *input)
{
	return strcmp(input->path, "-") ? input->path : "stdin";
}

/* ---- reading ---- */

int inputs_answer(const struct work *work, const struct work_question *question)
{
	return question->number < work->inputs->len ? reader_open_file(work->inputs->items[question->number].path)
						    : -EPERM;
}

/* Returns a descriptor or -errno. */
static int open_input(const struct input *input)
{
	const struct work_question question = work_question(WORK_INPUT, input->number);

	return work_is_boxed() ? work_ask(&question) : reader_open_file(input->path);
}

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

static int read_input(struct profile *profile, const struct input *input)
{
	struct reader_source source;
	BUF(why);
	int err = reader_begin(&source, name_of(input), open_input(input), &why);

	if (!err) {
		err = read_source(&source, profile, &why);
		reader_close(&source);
	}
	return err >= 0 || work_report_memory(err) ? err : log_fail(err, "%s: %s", name_of(input), why.data);
}

static int add_input(struct profile *profile, const struct input *input)
{
	struct profile one;
	BUF(why);
	int err = read_input(&one, input);

	if (err < 0)
		return err;
	err = profile_merge(profile, &one, input->path, &why);
	if (err < 0 && !work_report_memory(err))
		log_error("%s: %s", input->path, why.data);
	profile_release(&one);
	return err;
}

static int read_several(struct profile *profile, const struct input *items, size_t count)
{
	int err;

	if (count == 1)
		return read_input(profile, items);
	err = profile_init(profile);
	if (err < 0)
		return log_fail(err, "out of memory");
	for (size_t i = 0; !err && i < count; i++)
		err = add_input(profile, &items[i]);
	if (err < 0)
		profile_release(profile);
	return err;
}

int inputs_read_all(struct profile *profile, const struct inputs *inputs)
{
	return read_several(profile, inputs->items, inputs->len);
}

int inputs_read(struct profile *profile, const struct inputs *inputs, uint32_t word)
{
	size_t first = 0, end;

	while (first < inputs->len && inputs->items[first].word != word)
		first++;
	for (end = first; end < inputs->len && inputs->items[end].word == word;)
		end++;
	return read_several(profile, inputs->items + first, end - first);
}

/* ---- names ---- */

/* Takes ownership of input.path. */
static int add(struct inputs *inputs, struct input input)
{
	input.number = (uint32_t)inputs->len;
	input.word = inputs->words;
	if (input.path && !vec_push(inputs, input))
		return 0;
	free(input.path);
	return log_fail(-ENOMEM, "out of memory");
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

static int add_windows(struct inputs *inputs, const char *folder)
{
	struct window_list list = {0};
	int err = read_list(folder, &list);

	inputs->folders++;
	for (size_t i = 0; !err && i < list.len; i++) {
		struct input input = {.folder = inputs->folders, .end_ns = list.items[i].end_ns};

		if (asprintf(&input.path, "%s/%s", folder, list.items[i].name) < 0)
			input.path = NULL;
		err = add(inputs, input);
	}
	vec_release(&list);
	return err;
}

static int add_path(struct inputs *inputs, const char *path, bool with_folders)
{
	return with_folders && folder_is(path) ? add_windows(inputs, path)
					       : add(inputs, (struct input){.path = strdup(path)});
}

static int add_matches(struct inputs *inputs, const char *pattern, bool with_folders)
{
	glob_t found;
	int code = glob(pattern, 0, NULL, &found), err = 0;

	for (size_t i = 0; !code && !err && i < found.gl_pathc; i++)
		err = add_path(inputs, found.gl_pathv[i], with_folders);
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
int inputs_expand(struct inputs *inputs, char **words, size_t count, bool with_folders)
{
	size_t stdins = 0;
	int err = 0;

	for (size_t i = 0; !err && i < count; i++, inputs->words++) {
		bool is_pattern = strpbrk(words[i], "*?[") && access(words[i], F_OK);

		stdins += !strcmp(words[i], "-");
		err = is_pattern ? add_matches(inputs, words[i], with_folders)
				 : add_path(inputs, words[i], with_folders);
	}
	if (err || stdins <= 1)
		return err;
	return log_refuse("stdin can be read once: - is given %zu times", stdins);
}

void inputs_release(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->len; i++)
		free(inputs->items[i].path);
	vec_release(inputs);
}

/* ---- windows of a time ---- */

struct span {
	uint64_t start_ns, end_ns;
};

/* Names have ends alone, and these to a second: when a window began is in the file. */
static struct span span_of(const struct input *input)
{
	struct span span = {input->end_ns, input->end_ns + NS_PER_SEC};
	struct profile profile;

	if (!read_input(&profile, input)) {
		span = (struct span){profile.start_ns, profile.end_ns};
		profile_release(&profile);
	}
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

static int refuse(const struct input *first, const struct span *all)
{
	char from[32], to[32];

	print_time(from, all->start_ns);
	print_time(to, all->end_ns);
	return log_fail(-ENOENT, "%.*s: no window of this time: it has windows from %s to %s, UTC",
			(int)(strrchr(first->path, '/') - first->path), first->path, from, to);
}

/* The end of the window before this one, before which this one did not begin. Several may have one end. */
static uint64_t end_before(const struct input *windows, size_t i)
{
	for (size_t before = i; before--;)
		if (windows[before].end_ns < windows[i].end_ns)
			return windows[before].end_ns;
	return 0;
}

/* No window ends before the second in its name. The first that ends after the time may have begun after a gap. */
static bool overlaps(const struct input *windows, size_t i, const struct span *wanted)
{
	if (windows[i].end_ns + NS_PER_SEC <= wanted->start_ns || end_before(windows, i) >= wanted->end_ns)
		return false;
	return windows[i].end_ns < wanted->end_ns || span_of(&windows[i]).start_ns < wanted->end_ns;
}

/* Of the windows of a folder, appends those of the time. */
static int choose(const struct input *windows, size_t count, struct inputs *chosen, struct moment *from,
		  struct moment *to)
{
	const struct span all = {span_of(&windows[0]).start_ns, span_of(&windows[count - 1]).end_ns};
	struct span wanted;
	size_t before = chosen->len;
	int err = 0;

	resolve(&all, from, to);
	wanted = (struct span){from->kind ? from->ns : 0, to->kind ? to->ns : UINT64_MAX};
	for (size_t i = 0; !err && i < count; i++)
		if (overlaps(windows, i, &wanted))
			err = vec_push(chosen, windows[i]);
	if (err < 0)
		return log_fail(err, "out of memory");
	return chosen->len == before ? refuse(&windows[0], &all) : 0;
}

int inputs_choose(const struct inputs *inputs, struct moment *from, struct moment *to, struct inputs *ret)
{
	const struct input *items = inputs->items;
	size_t count;
	int err = 0;

	for (size_t i = 0; !err && i < inputs->len; i += count) {
		count = 1;
		while (items[i].folder && i + count < inputs->len && items[i + count].folder == items[i].folder)
			count++;
		err = items[i].folder ? choose(&items[i], count, ret, from, to) : vec_push(ret, items[i]);
	}
	return err;
}
