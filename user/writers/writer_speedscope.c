/* SPDX-License-Identifier: MIT */
/*
 * The file format of speedscope. Of each event, a profile has all threads, and the next ones a thread each, the busiest
 * first, with its samples in the order of time. The first is what speedscope opens with: there, equal stacks are one
 * sample. The frames are at the end, because all of them are known then.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "writers/json.h"
#include "writers/shared/ordered.h"
#include "writers/shared/path.h"
#include "writers/writer.h"

/* Samples of one thread. */
struct part {
	size_t first, count;
	uint64_t weight;
};

struct speedscope {
	const struct profile *profile;
	struct json json;
	struct ordered ordered;
	struct vec(struct part) parts; /* of one event */
	struct path_maker path;
	struct vec(uint32_t) indices; /* of frames in the file, from 1, by label; 0 = none yet */
	struct vec(uint32_t) frames; /* labels */
	struct buf text;
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

/* "cpu: java 12/34 main", "cpu: all threads" without a thread */
static void put_name(struct speedscope *s, const struct profile_sample *sample, bool has_thread)
{
	const struct profile *profile = s->profile;
	uint32_t index = ordered_thread(&s->ordered, sample);
	const struct profile_thread *thread = &profile->threads.items[index];

	buf_clear(&s->text);
	buf_printf(&s->text, "%s: ", profile_event_name(profile, sample->event));
	if (!has_thread)
		buf_add_str(&s->text, "all threads");
	else if (thread->tid == PROFILE_VIRTUAL)
		buf_printf(&s->text, "%s %u virtual %s", profile_text(profile, thread->process), thread->pid,
			   profile_text(profile, thread->name));
	else
		writer_thread_text(profile, index, &s->text);
	json_member(&s->json, "name", s->text.data);
}

/* Writes the frames of the sample, root first, if the filters choose it. Returns 1, 0 or -ENOMEM. */
static int put_stack(struct speedscope *s, const struct profile_sample *sample)
{
	int wanted = path_make(&s->path, sample->thread, sample->node);

	if (wanted <= 0)
		return wanted;
	json_begin(&s->json, "[");
	for (size_t i = s->path.depth; i-- > 0;) {
		uint32_t frame = frame_of(s, s->path.steps.items[i].label);

		if (frame == UINT32_MAX)
			return -ENOMEM;
		json_number(&s->json, frame);
	}
	json_end(&s->json, "]");
	return 1;
}

/* The samples are of one event; of all threads, each stands for a stack. */
static int put_profile(struct speedscope *s, const struct profile_sample *samples, size_t count, bool has_thread)
{
	static const char *const units[PROFILE_UNIT_MAX] = {"nanoseconds", "none", "bytes"};
	uint64_t total = 0;
	int put = 0;
	BUF(weights);

	json_begin(&s->json, "\n{");
	json_put(&s->json, "\"type\":\"sampled\"");
	put_name(s, samples, has_thread);
	json_put(&s->json, "\"unit\":\"%s\",\"startValue\":0", units[s->profile->events.items[samples->event].unit]);
	json_begin(&s->json, "\"samples\":[");
	for (size_t i = 0; put >= 0 && i < count; i++) {
		put = put_stack(s, &samples[i]);
		if (put <= 0)
			continue;
		buf_printf(&weights, "%s%" PRIu64, weights.len ? "," : "", samples[i].weight);
		total += samples[i].weight;
	}
	json_end(&s->json, "]");
	json_put(&s->json, "\"weights\":[%s],\"endValue\":%" PRIu64, weights.data, total);
	json_end(&s->json, "}");
	if (weights.failed)
		put = -ENOMEM;
	return put < 0 ? put : 0;
}

/* A sample of each stack of these samples, whatever their threads. */
static int put_all_threads(struct speedscope *s, const struct profile_sample *samples, size_t count)
{
	struct vec(struct profile_sample) merged = {0};
	struct map rows = {0};
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		uint64_t row = merged.len;

		if (map_get(&rows, samples[i].node, &row))
			merged.items[row].weight += samples[i].weight;
		else if (map_put(&rows, samples[i].node, row) < 0 || vec_push(&merged, samples[i]) < 0)
			err = -ENOMEM;
	}
	if (!err)
		err = put_profile(s, merged.items, merged.len, false);
	vec_release(&merged);
	map_release(&rows);
	return err;
}

static int busiest_first(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return vec_order(y->weight, x->weight) ?: vec_order(x->first, y->first);
}

/* The samples of one event, in the order of threads. */
static int put_event(struct speedscope *s, const struct profile_sample *samples, size_t count)
{
	int err = 0;

	vec_clear(&s->parts);
	for (size_t i = 0; !err && i < count; i++) {
		if (!i || ordered_thread(&s->ordered, &samples[i]) != ordered_thread(&s->ordered, &samples[i - 1]))
			err = vec_push(&s->parts, (struct part){.first = i});
		if (err)
			return err;
		s->parts.items[s->parts.len - 1].count++;
		s->parts.items[s->parts.len - 1].weight += samples[i].weight;
	}
	if (s->parts.len > 1)
		err = put_all_threads(s, samples, count);
	qsort(s->parts.items, s->parts.len, sizeof(*s->parts.items), busiest_first);
	for (size_t i = 0; !err && i < s->parts.len; i++)
		err = put_profile(s, samples + s->parts.items[i].first, s->parts.items[i].count, true);
	return err;
}

static int put_profiles(struct speedscope *s)
{
	const struct profile_sample *samples = s->ordered.samples.items;
	size_t end;
	int err = 0;

	for (size_t first = 0; !err && first < s->ordered.samples.len; first = end) {
		for (end = first; end < s->ordered.samples.len && samples[end].event == samples[first].event; end++)
			;
		err = put_event(s, samples + first, end - first);
	}
	return err;
}

static void put_frames(struct speedscope *s)
{
	for (size_t i = 0; i < s->frames.len; i++) {
		const struct path_label *label = &s->path.labels->items[s->frames.items[i]];

		json_begin(&s->json, "\n{");
		json_member(&s->json, "name", label->text);
		if (*label->module)
			json_member(&s->json, "file", label->module);
		json_end(&s->json, "}");
	}
}

static int put_all(struct speedscope *s, const struct writer_options *options)
{
	int err;

	json_begin(&s->json, "{");
	json_put(&s->json, "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"duet\"");
	json_member(&s->json, "name", options->title ? options->title : "duet");
	json_begin(&s->json, "\"profiles\":[");
	err = put_profiles(s);
	if (err)
		return err;
	json_end(&s->json, "]");
	json_begin(&s->json, "\n\"shared\":{\"frames\":[");
	put_frames(s);
	json_end(&s->json, "]}}\n");
	return writer_finish(s->json.out);
}

static int speedscope_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct speedscope s = {.profile = profile, .json = {.out = out}, .text = BUF_NONE};
	int err = path_maker_init(&s.path, NULL, profile, options);

	if (!err)
		err = ordered_build(&s.ordered, profile);
	if (!err)
		err = put_all(&s, options);
	ordered_release(&s.ordered);
	path_maker_release(&s.path);
	vec_release(&s.parts);
	vec_release(&s.indices);
	vec_release(&s.frames);
	buf_release(&s.text);
	return err;
}

const struct writer writer_speedscope = {
	.name = "speedscope",
	.lacks = "containers, lines, losses and facts",
	.extensions = "speedscope.json,speedscope",
	.help = "for speedscope: all threads together, and what each did in the order of time",
	.has_all_events = true,
	.merges = true,
	.write = speedscope_write,
};
