/* SPDX-License-Identifier: MIT */
/*
 * The file format of speedscope. Each thread of each event is a profile of its own, with its samples in the order of
 * time. The frames are at the end, because all of them are known then.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "out/json.h"
#include "out/ordered.h"
#include "out/path.h"
#include "out/writers.h"

struct speedscope {
	const struct profile *profile;
	FILE *out;
	struct ordered ordered;
	struct path_labels labels;
	struct path_maker path;
	struct vec(uint32_t) indices; /* of frames in the file, from 1, by label; 0 = none yet */
	struct vec(uint32_t) frames; /* labels */
	struct buf text;
	bool has_profile;
};

/* Returns the index of the label's frame; UINT32_MAX when out of memory. */
static uint32_t frame_of(struct speedscope *s, uint32_t label)
{
	while (s->indices.len <= label)
		if (vec_push(&s->indices, 0) < 0)
			return UINT32_MAX;
	if (!s->indices.items[label]) {
		if (vec_push(&s->frames, label) < 0)
			return UINT32_MAX;
		s->indices.items[label] = (uint32_t)s->frames.len;
	}
	return s->indices.items[label] - 1;
}

static const char *unit_of(const struct profile *profile, uint32_t event)
{
	static const char *const units[PROFILE_UNIT_MAX] = {"nanoseconds", "none", "bytes"};

	return units[profile->events.items[event].unit];
}

/* "cpu: java 12/34 main" */
static void put_name(struct speedscope *s, const struct profile_sample *sample)
{
	const struct profile *profile = s->profile;
	const struct profile_thread *thread = &profile->threads.items[sample->thread];

	buf_clear(&s->text);
	buf_printf(&s->text, "%s: %s ", intern_text(&profile->strings, profile->events.items[sample->event].name),
		   intern_text(&profile->strings, thread->process));
	if (thread->tid == PROFILE_VIRTUAL)
		buf_printf(&s->text, "%u virtual ", thread->pid);
	else if (thread->tid)
		buf_printf(&s->text, "%u/%u ", thread->pid, thread->tid);
	buf_add_str(&s->text, intern_text(&profile->strings, thread->name));
	json_foreign(s->out, s->text.data);
}

/* Writes the frames of the sample, root first, if the filters choose it. Returns 1, 0 or -ENOMEM. */
static int put_stack(struct speedscope *s, const struct profile_sample *sample, bool is_first)
{
	int wanted = path_make(&s->path, sample->thread, sample->node);

	if (wanted <= 0)
		return wanted;
	fputs(is_first ? "[" : ",[", s->out);
	for (size_t i = s->path.depth; i-- > 0;) {
		uint32_t frame = frame_of(s, s->path.steps.items[i].label);

		if (frame == UINT32_MAX)
			return -ENOMEM;
		fprintf(s->out, "%u%s", frame, i ? "," : "");
	}
	fputs("]", s->out);
	return 1;
}

/* The samples [first, end) are of one thread and event. */
static int put_profile(struct speedscope *s, size_t first, size_t end)
{
	const struct profile_sample *samples = s->ordered.samples.items;
	uint64_t total = 0;
	int put = 0;
	struct buf weights;

	fputs(s->has_profile ? ",\n{" : "\n{", s->out);
	s->has_profile = true;
	fputs("\"type\":\"sampled\",\"name\":", s->out);
	put_name(s, &samples[first]);
	fprintf(s->out, ",\"unit\":\"%s\",\"startValue\":0,\"samples\":[", unit_of(s->profile, samples[first].event));
	buf_init(&weights);
	for (size_t i = first; put >= 0 && i < end; i++) {
		put = put_stack(s, &samples[i], !weights.len);
		if (put <= 0)
			continue;
		buf_printf(&weights, "%s%" PRIu64, weights.len ? "," : "", samples[i].weight);
		total += samples[i].weight;
	}
	fprintf(s->out, "],\"weights\":[%s],\"endValue\":%" PRIu64 "}", weights.data, total);
	if (weights.failed)
		put = -ENOMEM;
	buf_release(&weights);
	return put < 0 ? put : 0;
}

static int put_profiles(struct speedscope *s)
{
	const struct profile_sample *samples = s->ordered.samples.items;
	size_t end;
	int err = 0;

	for (size_t first = 0; !err && first < s->ordered.samples.len; first = end) {
		for (end = first; end < s->ordered.samples.len && samples[end].event == samples[first].event &&
				  samples[end].thread == samples[first].thread;
		     end++)
			;
		err = put_profile(s, first, end);
	}
	return err;
}

static void put_frames(struct speedscope *s)
{
	for (size_t i = 0; i < s->frames.len; i++) {
		const struct path_label *label = &s->labels.items[s->frames.items[i]];

		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", s->out);
		json_foreign(s->out, label->text);
		if (*label->module) {
			fputs(",\"file\":", s->out);
			json_foreign(s->out, label->module);
		}
		fputs("}", s->out);
	}
}

static int put_all(struct speedscope *s, const struct writer_options *options)
{
	int err;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",", s->out);
	fputs("\"exporter\":\"duet\",\"name\":", s->out);
	json_foreign(s->out, options->title ? options->title : "duet");
	fputs(",\"profiles\":[", s->out);
	err = put_profiles(s);
	if (err)
		return err;
	fputs("],\n\"shared\":{\"frames\":[", s->out);
	put_frames(s);
	fputs("]}}\n", s->out);
	return writer_finish(s->out);
}

static int speedscope_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct speedscope s = {.profile = profile, .out = out};
	struct writer_options ours = *options;
	int err = path_labels_init(&s.labels);

	ours.reverse = false;
	buf_init(&s.text);
	if (!err)
		err = path_maker_init(&s.path, &s.labels, profile, &ours);
	if (!err)
		err = ordered_build(&s.ordered, profile);
	if (!err)
		err = put_all(&s, &ours);
	ordered_release(&s.ordered);
	path_maker_release(&s.path);
	path_labels_release(&s.labels);
	vec_release(&s.indices);
	vec_release(&s.frames);
	buf_release(&s.text);
	return err;
}

const struct writer writer_speedscope = {
	.name = "speedscope",
	.lacks = "containers, lines, losses and facts",
	.extensions = "speedscope.json,speedscope",
	.help = "for speedscope: what each thread did, in the order of time",
	.has_all_events = true,
	.merges = true,
	.write = speedscope_write,
};
