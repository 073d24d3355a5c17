/* SPDX-License-Identifier: MIT */
#include "cmd/outputs.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cmd/inputs.h"
#include "profile/profile.h"
#include "writers/shared/ordered.h"
#include "writers/shared/path.h"

#define FORMATS_MAX 16
#define CONTINUOUS_FORMATS "duet"
#define EXTENSION_SHORT 3 /* letters; words of so few are near to many others */

struct formats {
	const struct writer *items[FORMATS_MAX];
	size_t len;
};

/* What people draw stacks as. A browser makes it of the page. */
static bool is_picture(const char *extension)
{
	static const char *const pictures[] = {"svg", "png", "jpg", "jpeg", "gif", "webp", "pdf"};

	for (size_t i = 0; i < sizeof(pictures) / sizeof(*pictures); i++)
		if (!strcasecmp(extension, pictures[i]))
			return true;
	return false;
}

/* True if `typed` begins or ends the extension, which has several parts: "json" of "otlp.json". */
static bool is_part(const char *extension, const char *typed)
{
	size_t whole = strlen(extension), len = strlen(typed);

	return len && whole > len + 1 &&
	       ((extension[len] == '.' && !strncasecmp(extension, typed, len)) ||
		(extension[whole - len - 1] == '.' && !strcasecmp(extension + whole - len, typed)));
}

/* Appends the names of files that `typed` may have meant, which is the end of `path` and of no format. */
static void add_meant(const char *path, const char *typed, struct buf *out)
{
	int stem = (int)(typed - path);
	struct text_guess guess = {.typed = typed};

	for (size_t i = 0; writers[i]; i++) {
		const char *list = writers[i]->extensions;

		for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
			char name[32];

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(list, ","), list);
			if (is_part(name, typed))
				buf_printf(out, "%s%.*s%s", out->len ? " or " : "", stem, path, name);
			else if (strlen(typed) > EXTENSION_SHORT && writers[i] != writer_by_path(path))
				text_guess(&guess, name);
		}
	}
	if (!out->len && guess.word[0])
		buf_printf(out, "%.*s%s", stem, path, guess.word);
}

int outputs_check_name(const char *path, bool has_format)
{
	const char *dot = strrchr(basename(path), '.');
	BUF(meant);

	if (!dot)
		return 0;
	if (is_picture(dot + 1))
		return log_refuse(
			"%s: duet writes no pictures: name the file %.*s.html, a page that can save itself as SVG "
			"or PNG",
			path, (int)(dot - path), path);
	if (!has_format && !path[writer_stem(path)])
		add_meant(path, dot + 1, &meant);
	if (!meant.len)
		return 0;
	return log_refuse("%s: no format has this ending: name the file %s, or the format with -o", path, meant.data);
}

static void refuse_format(const char *word, size_t len)
{
	char name[64];
	struct text_guess guess = {.typed = name};
	BUF(help);

	snprintf(name, sizeof(name), "%.*s", (int)len, word);
	for (size_t i = 0; writers[i]; i++)
		text_guess(&guess, writers[i]->name);
	if (is_picture(name))
		buf_add_str(&help, ": flamegraph is a page that can save itself as SVG or PNG");
	else
		text_add_guess(&guess, "", "`duet list` shows the formats", &help);
	log_error("unknown format '%.*s'%s", (int)len, word, help.data);
}

const struct writer *outputs_find_writer(const char *word, struct writer_options *style)
{
	const struct writer *writer = writer_by_word(word, style);
	const char *equals = strchr(word, '=');
	char name[32] = "";

	if (writer)
		return writer;
	snprintf(name, sizeof(name), "%.*s", (int)(equals ? equals - word : 0), word);
	if (equals && (writer = writer_by_name(name)))
		log_error(writer->count_at ? "-o %s: a number above 0 is accepted after %s="
					   : "-o %s: the format %s takes no number",
			  word, writer->name);
	else
		refuse_format(word, strcspn(word, "="));
	return NULL;
}

void outputs_report_lacks(const struct writer *writer, const struct profile *profile, uint64_t cut)
{
	if (writer->lacks)
		log_info("the format %s leaves out %s", writer->name, writer->lacks);
	if (writer->merges && profile->samples.len > ORDERED_MAX)
		log_info("samples of a thread with equal stacks are merged: %llu are more than the format %s can show",
			 (unsigned long long)profile->samples.len, writer->name);
	if (cut)
		log_warn("%llu stacks are cut at " PATH_TRUNCATED ": the file would be too large; duet, jfr and pprof "
			 "keep more",
			 (unsigned long long)cut);
}

/* Appends why the filters have left nothing; nothing if they have left something. */
static void add_unmatched(const struct writer_options *style, struct buf *out)
{
	const struct writer_passed *passed = style->passed;

	if (passed && passed->is_spanless)
		buf_add_str(out, "no sample has a span, a trace and attributes that --span, --trace-id and --attr "
				 "match");
	else if (!passed || !passed->stacks || passed->kept)
		return;
	else if (style->include.len)
		buf_printf(out, "no stack has a frame that matches -I '%s'%s%s: ", style->include.items[0],
			   style->include.len > 1 ? " or another -I" : "",
			   style->exclude.len ? " and none that matches -X" : "");
	else
		buf_printf(out, "every stack has a frame that matches -X '%s'%s: ", style->exclude.items[0],
			   style->exclude.len > 1 ? " or another -X" : "");
	if (!passed->is_spanless)
		buf_add_str(out, style->regex ? "an expression matches whole names, as -o collapsed shows them"
					      : "a pattern matches whole names, as -o collapsed shows them, with * at "
						"either end any text");
}

static int report_unwritten(const char *path, int err)
{
	if (err < 0 && !work_report_memory(err))
		log_error("%s could not be written: %s%s", strcmp(path, "-") ? path : "stdout", strerror(-err),
			  io_advice(err));
	return err;
}

/* ---- the work's outputs ---- */

/* Those of the parent. */
static struct vec(struct opened {
	struct io_output io;
	char *path;
	bool is_whole;
}) opened;

static void add_path(const struct work *work, const char *event, struct buf *path)
{
	if (event)
		writer_event_file(work->output, event, path);
	else
		buf_add_str(path, work->output);
}

/* `number`: it has the event's name; values[0]: it is private */
int outputs_answer(const struct work *work, const struct work_question *question)
{
	const struct io_access access = {.is_private = question->values[0], .group = work->group};
	struct opened one = {0};
	BUF(path);
	int err;

	if (!work->output || opened.len == PROFILE_EVENTS_MAX)
		return -EPERM;
	add_path(work, question->number ? question->text : NULL, &path);
	err = path.failed ? -ENOMEM : io_output_open(&one.io, path.data, &access);
	if (err)
		return err;
	one.path = buf_detach(&path);
	err = vec_push(&opened, one);
	if (!err)
		return io_output_copy(&one.io);
	io_output_discard(&one.io);
	free(one.path);
	return err;
}

/* Of the last that was opened. */
int outputs_answer_end(const struct work *work, const struct work_question *question)
{
	struct opened *last = opened.len ? &opened.items[opened.len - 1] : NULL;
	int err = last && last->io.file ? io_output_close(&last->io) : -EPERM;

	if (!err)
		last->is_whole = true;
	return err;
}

int outputs_finish(bool keep)
{
	int result = 0, err;

	for (size_t i = 0; i < opened.len; i++) {
		struct opened *one = &opened.items[i];

		err = keep && one->is_whole ? report_unwritten(one->path, io_output_commit(&one->io)) : 0;
		result = result ? result : err;
		io_output_discard(&one->io);
		free(one->path);
	}
	vec_release(&opened);
	return result;
}

int outputs_open(struct output *ret, const struct work *work, const char *event, bool is_private)
{
	struct work_question question = work_question(WORK_OUTPUT, event != NULL);
	int err;

	*ret = (struct output){.name = BUF_NONE};
	add_path(work, event, &ret->name);
	strncat(question.text, event ? event : "", sizeof(question.text) - 1);
	question.values[0] = is_private;
	err = report_unwritten(ret->name.data, io_output_take(&ret->io, work_ask(&question)));
	if (err)
		buf_release(&ret->name);
	return err;
}

int outputs_end(struct output *output, const struct writer_options *style, int err)
{
	const struct work_question question = work_question(WORK_OUTPUT_END, 0);
	BUF(why);

	if (!err && style)
		add_unmatched(style, &why);
	err = io_output_end(&output->io, why.len ? -ESRCH : err);
	if (!err)
		err = work_ask(&question);
	if (err == -ESRCH && why.len)
		log_error("nothing is left to write: %s", why.data);
	else
		report_unwritten(output->name.data, err);
	buf_release(&output->name);
	return err;
}

static bool has_format(const struct formats *formats, const struct writer *writer)
{
	for (size_t i = 0; i < formats->len; i++)
		if (formats->items[i] == writer)
			return true;
	return false;
}

static int add_format(struct formats *formats, const char *name, size_t len, struct writer_options *style)
{
	char word[32];
	const struct writer *writer;

	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	writer = strlen(word) == len ? outputs_find_writer(word, style) : NULL;
	if (strlen(word) != len)
		refuse_format(name, len);
	if (!writer)
		return -EINVAL;
	if (has_format(formats, writer) || formats->len == FORMATS_MAX)
		return log_refuse("-o names the format '%s' twice", word);
	formats->items[formats->len++] = writer;
	return 0;
}

static int parse_formats(struct formats *formats, const char *list, struct writer_options *style)
{
	int err = 0;

	for (; !err && list; list = *list ? list + 1 : NULL) {
		size_t len = strcspn(list, ",");

		err = add_format(formats, list, len, style);
		list += len;
	}
	return err;
}

/* Replaces %p (pid), %t (time), %n (number of the recording, always 1) and %%. NULL when out of memory. */
static char *expand_file(const struct options *options, const char *file)
{
	time_t now = time(NULL);
	char stamp[32] = "";
	struct tm local;
	BUF(path);

	if (localtime_r(&now, &local))
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	for (const char *c = file; *c; c++) {
		if (*c != '%' || !c[1] || !strchr("ptn%", c[1])) {
			buf_add_char(&path, *c);
			continue;
		}
		c++;
		if (*c == 'p')
			buf_printf(&path, "%d", options->pids.len ? options->pids.items[0] : (int)getpid());
		else if (*c == 't')
			buf_add_str(&path, stamp);
		else
			buf_add_char(&path, *c == 'n' ? '1' : '%');
	}
	return buf_detach(&path);
}

/* Takes ownership of `file`; NULL means stdout, or a folder. */
static int add_output(struct options *options, const struct writer *writer, char *file)
{
	if (!file && !options->window_ns && options->events.len > 1 && !writer->has_all_events)
		return log_refuse("the %s format has a file for each event: give -f FILE", writer->name);
	if (!vec_push(&options->outputs, (struct session_output){.file = file, .writer = writer}))
		return 0;
	free(file);
	return -ENOMEM;
}

/* Uses `writer` for all files; if it is NULL, uses the format of each file name. */
static int add_files(struct options *options, const struct writer *writer)
{
	const struct opt_strings *files = &options->given.files;
	int err = 0;

	for (size_t i = 0; !err && i < files->len; i++) {
		char *file = expand_file(options, files->items[i]);

		err = file ? add_output(options, writer ? writer : writer_by_path(file), file) : -ENOMEM;
	}
	if (!files->len)
		err = add_output(options, writer ? writer : writer_by_name("text"), NULL);
	return err;
}

/* For "out" or "out.html" and the formats col and flamegraph, the files are out.col and out.html. */
static int add_named(struct options *options, const struct writer *writer, const char *file)
{
	size_t stem = writer_stem(file), len;
	const char *extension = writer_extension(writer, &len);
	char *expanded;
	BUF(path);

	buf_printf(&path, "%.*s.%.*s", (int)stem, file, (int)len, extension);
	expanded = expand_file(options, path.data);
	return expanded ? add_output(options, writer, expanded) : -ENOMEM;
}

static int add_several(struct options *options, const struct formats *formats)
{
	const struct opt_strings *files = &options->given.files;
	int err = 0;

	if (files->len != 1 && files->len != formats->len)
		return log_refuse(
			"%zu formats and %zu files: give one -f, whose extension each format replaces, or one for "
			"each",
			formats->len, files->len);
	for (size_t i = 0; !err && i < formats->len; i++) {
		char *file = files->len == 1 ? NULL : expand_file(options, files->items[i]);

		if (files->len == 1)
			err = add_named(options, formats->items[i], files->items[0]);
		else
			err = file ? add_output(options, formats->items[i], file) : -ENOMEM;
	}
	return err;
}

static int add_continuous(struct options *options, const struct formats *formats)
{
	const struct opt_strings *files = &options->given.files;
	int err = 0;

	if (files->len > 1)
		return log_refuse("--continuous writes into one folder: give -f once");
	if (files->len && files->items[0][writer_stem(files->items[0])] && !folder_is(files->items[0]))
		return log_refuse(
			"-f %s: --continuous writes a file for each window into a folder: name the folder, and the "
			"format with -o",
			files->items[0]);
	if (files->len)
		options->folder.folder = files->items[0];
	else if (!options->folder.folder)
		options->folder.folder = ".";
	for (size_t i = 0; !err && i < formats->len; i++)
		err = add_output(options, formats->items[i], NULL);
	return err;
}

int outputs_set(struct options *options)
{
	const struct opt_strings *files = &options->given.files;
	const char *list = options->given.format;
	struct formats formats = {0};
	int err = parse_formats(&formats, list || !options->window_ns ? list : CONTINUOUS_FORMATS, &options->style);

	for (size_t i = 0; !err && i < files->len; i++)
		err = outputs_check_name(files->items[i], list || options->window_ns);
	if (err < 0)
		return err;
	if (options->window_ns)
		err = add_continuous(options, &formats);
	else if (formats.len > 1)
		err = add_several(options, &formats);
	else
		err = add_files(options, formats.items[0]);
	if (err == -ENOMEM)
		log_error("out of memory");
	return err;
}

void outputs_release(struct options *options)
{
	for (size_t i = 0; i < options->outputs.len; i++)
		free(options->outputs.items[i].file);
	vec_release(&options->outputs);
}

int outputs_find_group(const char *name, gid_t *ret_gid)
{
	FILE *file = fopen("/etc/group", "re");
	const struct group *group = NULL;

	while (file && (group = fgetgrent(file)) && strcmp(group->gr_name, name) != 0)
		;
	if (group)
		*ret_gid = group->gr_gid;
	else
		log_error("--group: no group '%s' in /etc/group", name);
	if (file)
		fclose(file);
	return group ? 0 : -EINVAL;
}
