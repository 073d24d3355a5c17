/* SPDX-License-Identifier: MIT */
/* `duet convert`: writes recordings, or parts of them, in another format. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"
#include "cmd/selection.h"
#include "cmd/style.h"
#include "writers/shared/grouping.h"
#include "writers/writer.h"

struct convert_options {
	enum command_help help; /* first: see struct command */
	const char *format, *by, *group;
	struct selection selection;
	uint32_t depth;
	struct writer_options style;
};

#define FIELD(name) .offset = offsetof(struct convert_options, name)

/* clang-format off */
static const struct opt rows[] = {
	OPT_GROUP("What"),
	SELECTION_ROWS(struct convert_options),

	OPT_GROUP("Output"),
	{'o', "output", "FORMAT", "format (default: by OUT's extension, else text)", opt_string, FIELD(format),
		.choices = style_format_names, .is_short = true},
	{0, "group", "GROUP", "group that may read the output, where the recording is for its owner alone", opt_string,
		FIELD(group)},
	{'j', "jstackdepth", "N", "deepest stack", opt_u32, FIELD(depth)},
	STYLE_ROWS(struct convert_options, by),
	COMMAND_HELP,
	OPT_END,
};
/* clang-format on */

struct target {
	const char *path; /* "-" is stdout */
	const struct writer *writer;
	gid_t group; /* IO_NO_GROUP for none */
};

static bool is_of(const char *path, const char *format)
{
	return !strcmp(writer_by_path(path)->name, format);
}

/*
 * Returns true for an existing recording that is probably an input: `duet convert *.duet`, with the output forgotten,
 * must not overwrite the last one. A .jfr file is one if all others are, too.
 */
static bool is_input(const struct convert_options *options, const struct command_words *words)
{
	const char *path = words->items[words->count - 1];
	bool is_input = is_of(path, "duet") || is_of(path, "jfr");

	for (int i = 0; is_input && is_of(path, "jfr") && i < words->count - 1; i++)
		is_input = is_of(words->items[i], "jfr");
	return is_input && !(options->format && is_of(path, options->format)) && strcmp(path, "-") != 0 &&
	       !access(path, F_OK);
}

static int find_target(const struct convert_options *options, const char *path, struct writer_options *style,
		       struct target *ret)
{
	*ret = (struct target){
		.path = path,
		.writer = options->format ? outputs_find_writer(options->format, style) : writer_by_path(path),
		.group = IO_NO_GROUP,
	};
	if (!ret->writer || outputs_check_name(path, options->format) < 0)
		return -EINVAL;
	return options->group ? outputs_find_group(options->group, &ret->group) : 0;
}

/* A conversion, from the command line to its end. */
struct job {
	struct work work;
	struct convert_options *options;
	struct writer_options style;
	struct target target;
	struct inputs inputs;
};

/* `event`: named in the output's name; NULL: it is not. `is_last`: the filters had all events. */
static int write_file(const struct job *job, const struct profile *profile, const struct writer_options *style,
		      const char *event, bool is_last)
{
	struct output output;
	int err = outputs_open(&output, &job->work, event, profile->is_private);

	if (err < 0)
		return err;
	err = grouping_write(job->target.writer, profile, style, output.io.file);
	return outputs_end(&output, is_last ? style : NULL, err);
}

/* One file, or one for each event. A pipe gets the first event, so that it works for every recording. */
static int write_events(const struct job *job, const struct profile *profile)
{
	size_t count = job->target.writer->has_all_events || !profile->events.len ? 1 : profile->events.len;
	struct writer_options ours = job->style;
	int err = 0;

	if (count > 1 && !strcmp(job->target.path, "-")) {
		ours.event = 0;
		log_warn("stdout has only %s, the first of %zu events: --event chooses another, a file name all",
			 writer_event(profile, &ours), count);
		count = 1;
	}
	for (uint32_t i = 0; !err && i < count; i++) {
		ours.event = i;
		err = write_file(job, profile, &ours, i ? writer_event(profile, &ours) : NULL, i + 1 == count);
	}
	return err;
}

static void init(void *options)
{
	writer_options_default(&((struct convert_options *)options)->style);
}

static void init_lenient(void *options)
{
	init(options);
	((struct convert_options *)options)->selection.may_be_empty = true;
}

static void release(void *options)
{
	style_release(&((struct convert_options *)options)->style);
}

static int cut_and_write(struct job *job, struct profile *profile)
{
	struct writer_passed passed = {0};
	uint64_t cut = 0;
	int err;

	if (job->target.group != IO_NO_GROUP && !profile->is_private)
		log_warn("--group has no effect: the recording is of the user's own processes, and the umask decides");
	/* taken from the whole profile: a part may have a single process */
	job->style.processes = writer_shows_processes(profile, &job->style);
	err = selection_cut(profile, &job->options->selection);
	if (!err && !profile->samples.len)
		log_warn("no samples were selected");
	job->style.cut = &cut;
	job->style.passed = &passed;
	if (!err)
		err = write_events(job, profile);
	if (!err)
		outputs_report_lacks(job->target.writer, profile, cut);
	return err;
}

static int convert(void *context)
{
	struct job *job = context;
	struct selection *selection = &job->options->selection;
	struct inputs chosen = {0};
	struct profile profile;
	int err = inputs_choose(&job->inputs, &selection->from, &selection->to, &chosen);

	if (!err)
		err = inputs_read_all(&profile, &chosen);
	vec_release(&chosen);
	if (err < 0)
		return err;
	err = cut_and_write(job, &profile);
	profile_release(&profile);
	return err;
}

/*
 * Returns the number of inputs: all words but the last, which is the output. One word and a format are an input and
 * stdout. Returns -EINVAL after reporting the error.
 */
static int count_inputs(const struct convert_options *options, const struct command_words *words)
{
	if (words->count == 1 && options->format)
		return 1;
	if (words->count < 2)
		return log_refuse("usage: duet convert IN… OUT, or duet convert IN -o FORMAT (- is stdin or stdout)");
	if (!is_input(options, words))
		return words->count - 1;
	return log_refuse("%s exists and would be replaced: name another output last, or add -o %s",
			  words->items[words->count - 1], writer_by_path(words->items[words->count - 1])->name);
}

static int run_words(struct convert_options *options, const struct command_words *words, int count)
{
	struct job job = {.options = options, .style = options->style};
	int code = 1;

	style_set_depth(&job.style, options->depth);
	if (style_set(&job.style, options->by) < 0 || selection_check(&options->selection) < 0 ||
	    find_target(options, count < words->count ? words->items[count] : "-", &job.style, &job.target) < 0)
		return 2;
	job.work = (struct work){
		.inputs = &job.inputs,
		.output = job.target.path,
		.group = job.target.group,
		.repeats = job.target.writer->merges,
		.run = convert,
		.context = &job,
	};
	if (!inputs_expand(&job.inputs, words->items, (size_t)count, true))
		code = work_run(&job.work);
	inputs_release(&job.inputs);
	return code;
}

static int run(void *context, const struct command_words *words)
{
	int count = count_inputs(context, words);

	return count < 0 ? 2 : run_words(context, words, count);
}

#define CONVERT(how) \
	{ \
		.name = "convert", \
		.summary = "write recordings in another format: duet convert a.duet a.html", \
		.usage = usage, \
		.rows = rows, \
		.options_bytes = sizeof(struct convert_options), \
		.most_words = INT_MAX, \
		.init = (how), \
		.release = release, \
		.run = run, \
	}

static const char usage[] =
	"duet convert [OPTIONS] IN… OUT    several inputs, or patterns such as '*.jfr', are merged\n"
	"       duet convert [OPTIONS] --from 14:05 --to 14:20 FOLDER OUT    of a folder of windows\n"
	"       duet convert [OPTIONS] IN -o FORMAT    writes to stdout; - is stdin or stdout\n";

const struct command cmd_convert = CONVERT(init);
const struct command cmd_jfrconv = CONVERT(init_lenient);
