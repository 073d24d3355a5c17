/* SPDX-License-Identifier: MIT */
/* `duet diff A B OUT`: what changed from one profile to another, as a flame graph or as collapsed stacks. */
#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"
#include "cmd/selection.h"
#include "cmd/style.h"
#include "writers/shared/grouping.h"
#include "writers/writer.h"

#define FIELD(name) .offset = offsetof(struct diff_options, name)

struct diff_options {
	enum command_help help; /* first: see struct command */
	bool raw;
	const char *format, *by;
	struct selection selection;
	uint32_t depth;
	struct writer_options style;
};

static void format_names(struct buf *out)
{
	for (size_t i = 0; writers[i]; i++)
		if (writers[i]->write_diff)
			buf_printf(out, "%s\n", writers[i]->name);
}

/* clang-format off */
static const struct opt diff_rows[] = {
	OPT_GROUP("What is compared"),
	SELECTION_ROWS(struct diff_options),
	{0, "no-normalize", NULL, "compare weights, not their parts of each profile's total", opt_flag, FIELD(raw),
		.is_short = true},

	OPT_GROUP("Output"),
	{'o', "output", "FORMAT", "format (default: by OUT's extension; of - collapsed)", opt_string, FIELD(format),
		.choices = format_names, .is_short = true},
	{'j', "jstackdepth", "N", "deepest stack: only the frames nearest the leaf (default: all)", opt_u32,
		FIELD(depth)},
	STYLE_ROWS(struct diff_options, by),
	COMMAND_HELP,
	OPT_END,
};
/* clang-format on */

static const struct profile_event *event_of(const struct writer_side *side)
{
	return &side->profile->events.items[side->event];
}

/* False when the profile has no event of this name. NULL: any. */
static bool find_event(struct writer_side *side, const char *name)
{
	for (size_t i = 0; i < side->profile->events.len; i++) {
		side->event = (uint32_t)i;
		if (!name || selection_is_unknown(side->profile) || !strcmp(profile_event_name(side->profile, i), name))
			return true;
	}
	return false;
}

static bool find_common_event(struct writer_diff *two)
{
	const struct profile *a = two->a.profile;

	if (selection_is_unknown(a))
		return find_event(&two->a, NULL) && find_event(&two->b, NULL);
	for (size_t i = 0; i < a->events.len; i++) {
		two->a.event = (uint32_t)i;
		if (find_event(&two->b, profile_event_name(a, i)))
			return true;
	}
	return false;
}

static void list_events(const struct profile *profile, struct buf *out)
{
	for (size_t i = 0; i < profile->events.len; i++)
		buf_printf(out, "%s%s", i ? "," : "", profile_event_name(profile, i));
	if (!profile->events.len)
		buf_add_str(out, "none");
}

static int refuse_events(const struct writer_diff *two, const char *name)
{
	BUF(a);
	BUF(b);

	list_events(two->a.profile, &a);
	list_events(two->b.profile, &b);
	if (name)
		log_error("--event %s: not an event of both; %s has %s, %s has %s", name, two->a.name, a.data,
			  two->b.name, b.data);
	else
		log_error("there is no event that both have: %s has %s, %s has %s", two->a.name, a.data, two->b.name,
			  b.data);
	return -EINVAL;
}

static const char *unit_name(const struct profile_event *event)
{
	return event->unit == PROFILE_NS ? "nanoseconds" : "numbers";
}

static int choose_events(struct writer_diff *two, const char *name, bool total)
{
	bool found = name ? find_event(&two->a, name) && find_event(&two->b, name) : find_common_event(two);
	bool is_guess = selection_is_unknown(two->a.profile) || selection_is_unknown(two->b.profile);

	if (!found)
		return refuse_events(two, name);
	if (event_of(&two->a)->unit == event_of(&two->b)->unit || (is_guess && !total))
		return 0;
	return log_refuse("the weights are %s in %s and %s in %s: they cannot be compared%s",
			  unit_name(event_of(&two->a)), two->a.name, unit_name(event_of(&two->b)), two->b.name,
			  is_guess ? "; without --total samples are" : "");
}

static const struct writer *choose_writer(const char *format, const char *path)
{
	const struct writer *writer;

	if (outputs_check_name(path, format) < 0)
		return NULL;
	if (!format && !strcmp(path, "-"))
		format = "collapsed";
	writer = format ? writer_by_name(format) : writer_by_path(path);
	if (writer && writer->write_diff)
		return writer;
	if (format)
		log_error("-o %s: a difference is written as flamegraph, collapsed or text", format);
	else
		log_error("%s: a difference is written to OUT.html, OUT.collapsed or OUT.txt; -o names the format of "
			  "others",
			  path);
	return NULL;
}

/* A comparison, from the command line to its end. */
struct job {
	struct work work;
	struct diff_options *options;
	const struct writer *writer;
	char **words;
	struct inputs inputs;
};

/* Called after both were read, so that a pipe does not get half an output. */
static int write_diff(const struct job *job, const struct writer_diff *two)
{
	struct writer_passed passed = {0};
	struct writer_options style = job->options->style;
	struct output output;
	int err = outputs_open(&output, &job->work, NULL, two->a.profile->is_private || two->b.profile->is_private);

	if (err < 0)
		return err;
	style.passed = &passed;
	err = outputs_end(&output, &style, job->writer->write_diff(two, &style, output.io.file));
	if (!err && strcmp(job->work.output, "-"))
		log_info("wrote %s", job->work.output);
	return err;
}

/*
 * Reads what the word of this number stands for, and cuts what the options select. --event is left to choose_events(),
 * which knows both. Returns 0, or -errno after reporting the error; then there is nothing to release.
 */
static int read_side(struct profile *profile, const struct job *job, uint32_t word)
{
	struct selection selection = job->options->selection;
	int err = inputs_read(profile, &job->inputs, word);

	selection.event = NULL;
	if (err < 0)
		return err;
	err = selection_cut(profile, &selection);
	if (err < 0)
		profile_release(profile);
	return err;
}

/* By trace and span, as the style says. Returns 0, or -errno after reporting the error. */
static int group_both(struct profile *a, struct profile *b, const struct writer *writer, struct writer_options *style)
{
	int err = grouping_apply(a, writer, style);

	if (!err)
		err = grouping_apply(b, writer, style);
	return err ? log_fail(err, "the samples could not be grouped: %s", strerror(-err)) : 0;
}

static int read_and_compare(void *context)
{
	struct job *job = context;
	struct diff_options *options = job->options;
	struct profile a, b;
	struct writer_diff two = {
		.a = {.profile = &a, .name = job->words[0]},
		.b = {.profile = &b, .name = job->words[1]},
		.normalize = !options->raw,
	};
	int err = read_side(&a, job, 0);

	if (err < 0)
		return err;
	err = read_side(&b, job, 1);
	if (!err) {
		err = group_both(&a, &b, job->writer, &options->style);
		if (!err)
			err = choose_events(&two, options->selection.event, options->style.total);
		if (!err)
			err = write_diff(job, &two);
		profile_release(&b);
	}
	profile_release(&a);
	return err;
}

static int run(void *context, const struct command_words *words)
{
	struct diff_options *options = context;
	const char *output = words->count == 3 ? words->items[2] : "-";
	struct job job = {.options = options, .words = words->items};
	int code = 1;

	if (words->count < 3 && !(words->count == 2 && options->format))
		return log_fail(2, "duet diff takes two profiles and the file to write: duet diff A B OUT.html");
	if (!strcmp(words->items[0], "-") && !strcmp(words->items[1], "-"))
		return log_fail(2, "A and B are both stdin: give a file for one of them");
	job.writer = choose_writer(options->format, output);
	if (!job.writer || style_set(&options->style, options->by) < 0 || selection_check(&options->selection) < 0)
		return 2;
	style_set_depth(&options->style, options->depth);
	job.work = (struct work){
		.inputs = &job.inputs,
		.output = output,
		.group = IO_NO_GROUP,
		.run = read_and_compare,
		.context = &job,
	};
	if (!inputs_expand(&job.inputs, words->items, 2, false))
		code = work_run(&job.work);
	inputs_release(&job.inputs);
	return code;
}

static void init(void *options)
{
	writer_options_default(&((struct diff_options *)options)->style);
}

static void release(void *options)
{
	style_release(&((struct diff_options *)options)->style);
}

const struct command cmd_diff = {
	.name = "diff",
	.summary = "what changed: duet diff before.duet after.duet out.html",
	.usage = "duet diff [OPTIONS] A B OUT.html|OUT.collapsed|OUT.txt\n"
		 "       duet diff [OPTIONS] A B -o FORMAT    writes to stdout; A and B may be patterns: 'a-*.duet'\n",
	.rows = diff_rows,
	.options_bytes = sizeof(struct diff_options),
	.most_words = 3,
	.takes = "A, B and OUT",
	.init = init,
	.release = release,
	.run = run,
};
