/* SPDX-License-Identifier: MIT */
/* `duet convert`: writes recordings, or parts of them, in another format. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/moment.h"
#include "cmd/outputs.h"
#include "cmd/style.h"
#include "out/writer.h"
#include "profile/merge.h"

struct convert_options {
	bool help; /* first: see struct command */
	const char *format, *event, *by, *group;
	struct moment from, to;
	uint32_t depth;
	struct writer_options style;
};

#define FIELD(name) .offset = offsetof(struct convert_options, name)

/* clang-format off */
static const struct opt rows[] = {
	OPT_GROUP("What"),
	{0, "from", "TIME", "only samples from this time on: 10s (after the start), -10s (before the end), or UTC",
		opt_moment, FIELD(from)},
	{0, "to", "TIME", "only samples before this time: 20s, 10:00:00, 2026-11-22T10:00:00", opt_moment, FIELD(to)},
	{'e', "event", "EVENT", "only samples of this event", opt_string, FIELD(event)},

	OPT_GROUP("Output"),
	{'o', "output", "FORMAT", "format (default: by OUT's extension, else text)", opt_string, FIELD(format),
		.choices = style_format_names},
	{0, "group", "GROUP", "group that may read the output, where the recording is for its owner alone", opt_string,
		FIELD(group)},
	{'j', "jstackdepth", "N", "deepest stack", opt_u32, FIELD(depth)},
	STYLE_ROWS(struct convert_options),
	COMMAND_HELP,
	OPT_END,
};
/* clang-format on */

/* ---- the selected part ---- */

/* *ret_event is UINT32_MAX if no name is given. Returns 0, or -EINVAL after reporting the error. */
static int find_event(const struct profile *profile, const char *name, uint32_t *ret_event)
{
	struct buf known;

	*ret_event = UINT32_MAX;
	buf_init(&known);
	for (uint32_t i = 0; name && i < profile->events.len; i++) {
		const char *text = intern_text(&profile->strings, profile->events.items[i].name);

		if (!strcmp(text, name))
			*ret_event = i;
		buf_printf(&known, "%s%s", i ? ", " : "", text);
	}
	if (name && *ret_event == UINT32_MAX)
		log_error("--event %s: the recording has %s", name, known.len ? known.data : "no event");
	buf_release(&known);
	return name && *ret_event == UINT32_MAX ? -EINVAL : 0;
}

/* The other facts describe the whole recording. */
static void tell_part(struct profile *part, const struct profile *whole)
{
	profile_add_fact(part, "part", "%.3f s to %.3f s of the recording",
			 (double)(part->start_ns - whole->start_ns) / 1e9,
			 (double)(part->end_ns - whole->start_ns) / 1e9);
}

/* Replaces `profile` by the part that the options select. Returns 0, or -errno after reporting the error. */
static int cut(struct profile *profile, const struct convert_options *options)
{
	bool is_all_time = options->from.kind == MOMENT_NONE && options->to.kind == MOMENT_NONE;
	struct profile_part part = {
		.from_ns = moment_ns(&options->from, profile->start_ns, profile->end_ns, 0),
		.until_ns = moment_ns(&options->to, profile->start_ns, profile->end_ns, UINT64_MAX),
	};
	struct profile chosen;
	struct buf why;
	int err = find_event(profile, options->event, &part.event);

	if (err || (is_all_time && !options->event))
		return err;
	if (part.from_ns >= part.until_ns) {
		log_error("--from is not before --to");
		return -EINVAL;
	}
	buf_init(&why);
	err = profile_init(&chosen);
	if (!err)
		err = profile_cut(&chosen, profile, &part, &why);
	if (!err && !is_all_time)
		tell_part(&chosen, profile);
	if (err < 0)
		log_error("%s", why.len ? why.data : strerror(-err));
	buf_release(&why);
	profile_release(err ? &chosen : profile);
	if (!err)
		*profile = chosen;
	return err;
}

/* ---- the output ---- */

struct target {
	const char *path; /* "-" is stdout */
	const struct writer *writer;
	gid_t group; /* IO_NO_GROUP for none */
};

/*
 * Returns true for a .duet file: `duet convert *.duet`, with the output forgotten, must not overwrite the last
 * recording.
 */
static bool is_recording(const char *path)
{
	return !strcmp(writer_by_path(path)->name, "duet") && !access(path, F_OK);
}

static int find_target(const struct convert_options *options, const char *path, struct writer_options *style,
		       struct target *ret)
{
	*ret = (struct target){
		.path = path,
		.writer = options->format ? outputs_find_writer(options->format, style)
					  : writer_by_path(path),
		.group = IO_NO_GROUP,
	};
	if (!ret->writer)
		return -EINVAL;
	if (!options->format && is_recording(path)) {
		log_error("%s exists and would be replaced: name another output last, or add -o duet", path);
		return -EINVAL;
	}
	return options->group ? outputs_find_group(options->group, &ret->group) : 0;
}

static int write_file(const struct profile *profile, const struct writer_options *style, const struct target *target,
		      const char *path)
{
	const struct io_access access = {.is_private = profile->is_private, .group = target->group};
	struct io_output output;
	int err = io_output_open(&output, path, &access);

	if (!err)
		err = io_output_end(&output, target->writer->write(profile, style, output.file));
	if (err < 0)
		log_error("%s could not be written: %s", strcmp(path, "-") ? path : "stdout", strerror(-err));
	return err;
}

/* One file, or one for each event. */
static int write_events(const struct profile *profile, const struct writer_options *style, const struct target *target)
{
	size_t count = target->writer->has_all_events || !profile->events.len ? 1 : profile->events.len;
	struct writer_options ours = *style;
	int err = 0;

	if (count > 1 && !strcmp(target->path, "-")) {
		log_error("the %s format needs a file for each event: give --event, or a file name",
			  target->writer->name);
		return -EINVAL;
	}
	for (uint32_t i = 0; !err && i < count; i++) {
		struct buf path;

		buf_init(&path);
		ours.event = i;
		if (i)
			writer_event_file(target->path, writer_event(profile, &ours), &path);
		else
			buf_add_str(&path, target->path);
		err = path.failed ? -ENOMEM : write_file(profile, &ours, target, path.data);
		buf_release(&path);
	}
	return err;
}

/* ---- the command ---- */

static void init(void *options)
{
	writer_options_default(&((struct convert_options *)options)->style);
}

static void release(void *options)
{
	style_release(&((struct convert_options *)options)->style);
}

static int convert(const struct convert_options *options, struct writer_options *style, char **inputs, size_t count,
		   const struct target *target)
{
	struct profile profile;
	int err = inputs_read_all(&profile, inputs, count);

	if (err < 0)
		return err;
	if (target->group != IO_NO_GROUP && !profile.is_private)
		log_warn("--group has no effect: the recording is of the user's own processes, and the umask decides");
	/* taken from the whole profile: a part may have a single process */
	style->processes = writer_shows_processes(&profile, style);
	err = cut(&profile, options);
	if (!err && !profile.samples.len)
		log_warn("no samples were selected");
	if (!err)
		err = write_events(&profile, style, target);
	if (!err)
		outputs_tell_lacks(target->writer);
	profile_release(&profile);
	return err;
}

static int run(void *context, const struct command_words *words)
{
	struct convert_options *options = context;
	struct writer_options style = options->style;
	struct target target;

	if (words->count < 2) {
		log_error("usage: duet convert IN… OUT (- is stdin or stdout)");
		return 2;
	}
	style_set_depth(&style, options->depth);
	if (style_set(&style, options->by) < 0 ||
	    find_target(options, words->items[words->count - 1], &style, &target) < 0)
		return 2;
	return convert(options, &style, words->items, (size_t)words->count - 1, &target) < 0 ? 1 : 0;
}

const struct command cmd_convert = {
	.name = "convert",
	.summary = "write recordings in another format: duet convert a.duet a.html",
	.usage = "duet convert [OPTIONS] IN… OUT    several inputs are merged; - is stdin or stdout\n",
	.rows = rows,
	.options_bytes = sizeof(struct convert_options),
	.most_words = INT_MAX,
	.init = init,
	.release = release,
	.run = run,
};
