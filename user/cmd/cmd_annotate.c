/* SPDX-License-Identifier: MIT */
/* `duet annotate CLASS|FUNCTION FILE`: samples by source line, by index of the bytecode, by instruction. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/disassembly.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"
#include "cmd/selection.h"
#include "readers/source_files.h"
#include "writers/text/annotation.h"

struct annotate_options {
	enum command_help help; /* first: see struct command */
	bool total, html;
	const char *output;
	struct opt_strings sources, codes;
	struct selection selection;
};

#define FIELD(name) .offset = offsetof(struct annotate_options, name)

/* clang-format off */
static const struct opt rows[] = {
	OPT_GROUP("What"),
	SELECTION_ROWS(struct annotate_options),
	{0, "total", NULL, "shares of the weights instead of the numbers of samples", opt_flag, FIELD(total)},

	OPT_GROUP("Output"),
	{0, "source", "DIR|JAR", "folders and jars with the source text, such as a JDK's lib/src.zip; repeatable",
		opt_strings, FIELD(sources)},
	{0, "code", "FILE", "executables and libraries whose instructions are shown, by objdump; repeatable",
		opt_strings, FIELD(codes)},
	{'f', "file", "FILE", "output file (default: stdout); HTML if it ends in .html", opt_string, FIELD(output)},
	{0, "html", NULL, "HTML, whatever the name of the file", opt_flag, FIELD(html)},
	COMMAND_HELP,
	OPT_END,
};
/* clang-format on */

/* The file that was asked for last. */
struct sources {
	size_t places;
	struct source_text current;
};

static int index_lines(struct source_text *source)
{
	int err = vec_push(source, 0);

	for (size_t i = 0; !err && i + 1 < source->text.len; i++)
		if (source->text.data[i] == '\n')
			err = vec_push(source, i + 1);
	return err;
}

/* In the place of this number. */
int source_answer(const struct work *work, const struct work_question *question)
{
	return work->sources && question->number < work->sources->len
		       ? source_files_open(work->sources->items[question->number], question->text)
		       : -EPERM;
}

static int find_in(uint32_t place, const char *package, const char *file, struct buf *text)
{
	struct work_question question = work_question(WORK_SOURCE, place), jar = question;
	int fd, err;

	snprintf(question.text, sizeof(question.text), "%s%s%s", package, *package ? "/" : "", file);
	fd = work_ask(&question);
	buf_clear(text);
	if (fd >= 0)
		err = source_files_read(fd, NULL, text);
	else if (fd != -ENOTDIR || (fd = work_ask(&jar)) < 0)
		return fd;
	else
		err = source_files_read(fd, question.text, text);
	close(fd);
	return err;
}

static const struct source_text *find_source(void *context, const char *package, const char *file)
{
	struct sources *sources = context;
	int err = -ENOENT;

	vec_clear(&sources->current);
	for (uint32_t i = 0; err && i < sources->places; i++)
		err = find_in(i, package, file, &sources->current.text);
	if (!err)
		err = index_lines(&sources->current);
	if (err && *file)
		log_info("%s%s%s: no source text: %s", package, *package ? "/" : "", file,
			 err == -ENOENT ? "not in what --source names" : strerror(-err));
	return err ? NULL : &sources->current;
}

static bool is_html(const struct annotate_options *options)
{
	size_t len = options->output ? strlen(options->output) : 0;

	return options->html || (len > 5 && !strcmp(options->output + len - 5, ".html"));
}

/* An annotation, from the command line to its end. */
struct job {
	struct work work;
	const struct annotate_options *options;
	const char *target;
	struct inputs inputs;
};

static int write_annotation(const struct job *job, const struct annotation *annotation,
			    const struct writer_options *style)
{
	const struct annotate_options *options = job->options;
	struct sources sources = {.places = options->sources.len, .current.text = BUF_NONE};
	struct annotation_view view = {
		.annotation = annotation,
		.options = style,
		.source = options->sources.len ? find_source : NULL,
		.source_context = &sources,
	};
	struct output output;
	int err = outputs_open(&output, &job->work, NULL, annotation->profile->is_private);

	if (err < 0)
		return err;
	err = is_html(options) ? annotation_write_html(&view, output.io.file)
			       : annotation_write_text(&view, output.io.file);
	err = outputs_end(&output, NULL, err);
	buf_release(&sources.current.text);
	vec_release(&sources.current);
	return err;
}

static int write_job(const struct job *job, const struct profile *profile)
{
	struct disassembly disassembly = {.files = &job->options->codes};
	struct annotation annotation = {.code = disassembly_find, .code_context = &disassembly};
	struct writer_options style;
	int err;

	writer_options_default(&style);
	style.total = job->options->total;
	err = annotation_build(&annotation, profile, job->target, &style);
	if (err == -ENOENT)
		log_error("%s: no class, method or function of this name is in the samples", job->target);
	else if (err < 0 && !work_report_memory(err))
		log_error("%s", strerror(-err));
	if (!err) {
		err = write_annotation(job, &annotation, &style);
		annotation_release(&annotation);
	}
	disassembly_release(&disassembly);
	return err;
}

static int annotate(void *context)
{
	const struct job *job = context;
	struct profile profile;
	int err = inputs_read_all(&profile, &job->inputs);

	if (err < 0)
		return err;
	err = selection_cut(&profile, &job->options->selection);
	if (!err)
		err = write_job(job, &profile);
	profile_release(&profile);
	return err;
}

static int run(void *context, const struct command_words *words)
{
	struct annotate_options *options = context;
	struct job job = {.options = options, .target = words->items[0]};
	int code = 1;

	if (words->count < 2)
		return log_fail(2, "duet annotate takes a name and recordings: "
				   "duet annotate com.acme.Main a.duet (- is stdin)");
	if (selection_check(&options->selection) < 0)
		return 2;
	job.work = (struct work){
		.inputs = &job.inputs,
		.output = options->output ? options->output : "-",
		.group = IO_NO_GROUP,
		.sources = &options->sources,
		.codes = &options->codes,
		.run = annotate,
		.context = &job,
	};
	if (!inputs_expand(&job.inputs, words->items + 1, (size_t)words->count - 1, false))
		code = work_run(&job.work);
	inputs_release(&job.inputs);
	return code;
}

static void release(void *options)
{
	free(((struct annotate_options *)options)->sources.items);
	free(((struct annotate_options *)options)->codes.items);
}

const struct command cmd_annotate = {
	.name = "annotate",
	.summary = "samples by source line: duet annotate com.acme.Main a.duet",
	.usage = "duet annotate [OPTIONS] CLASS|CLASS.METHOD|FUNCTION FILE…    - is stdin\n",
	.rows = rows,
	.options_bytes = sizeof(struct annotate_options),
	.most_words = 1 << 20,
	.release = release,
	.run = run,
};
