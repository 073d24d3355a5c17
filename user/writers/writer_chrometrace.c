/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace events, which Perfetto reads too. For an event in time, a sample stands for the time before it, and
 * frames that continue from one sample to the next are one slice. Samples of other events are instants with their
 * stack.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "profile/timeline.h"
#include "writers/json.h"
#include "writers/shared/ordered.h"
#include "writers/shared/path.h"
#include "writers/writer.h"

#define SLICE_BYTES 96 /* of a slice without its name */
#define CONTEXT_BYTES 80 /* more, if its trace is known */
#define TRACKS_FIRST (1u << 24) /* above all thread ids: tracks that are not threads, or not of the first event */

struct slice {
	uint32_t label;
	uint64_t begin_ns;
};

struct trace {
	const struct profile *profile;
	struct json json;
	struct ordered ordered;
	struct path_maker path;
	struct vec(struct slice) open; /* root first */
	uint64_t end_ns; /* of the open slices */
	const struct profile_sample *last; /* of the open slices, whose trace and span are its */
	const struct profile_sample *sample; /* of the track that is written */
	uint32_t track, tracks;
	struct buf text;
	struct stack_room room;
};

/* Begins an event of the trace, up to its pid and tid. */
static void begin_event(struct trace *t, const char *phase)
{
	json_begin(&t->json, "\n{");
	json_put(&t->json, "\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", phase,
		 t->profile->threads.items[t->sample->thread].pid, t->track);
}

/* A time in microseconds. */
#define TIME "%" PRIu64 ".%03u"
#define TIME_OF(ns) (ns) / 1000, (unsigned)((ns) % 1000)

static void put_name(struct trace *t, const char *what, const char *name)
{
	begin_event(t, "M");
	json_put(&t->json, "\"name\":\"%s\"", what);
	json_begin(&t->json, "\"args\":{");
	json_member(&t->json, "name", name);
	json_end(&t->json, "}}");
}

/* Names the track of the thread and event of t->sample. */
static void begin_track(struct trace *t)
{
	const struct profile_thread *thread = &t->profile->threads.items[ordered_thread(&t->ordered, t->sample)];
	bool is_own = thread->tid != PROFILE_VIRTUAL && !t->sample->event;

	t->track = is_own ? thread->tid : TRACKS_FIRST + t->tracks++;
	put_name(t, "process_name", profile_text(t->profile, thread->process));
	buf_clear(&t->text);
	buf_add_str(&t->text, profile_text(t->profile, thread->name));
	if (!is_own)
		buf_printf(&t->text, " (%s)", profile_event_name(t->profile, t->sample->event));
	put_name(t, "thread_name", t->text.data);
	t->end_ns = 0;
}

/* Writes the ids of the trace and the span, as far as they are known, as members of an object. */
static void put_context(struct trace *t, const struct profile_sample *sample)
{
	char trace[TRACE_ID_DIGITS + 1], span[SPAN_ID_DIGITS + 1];

	trace_id_text(sample, trace);
	span_id_text(sample, span);
	json_put(&t->json, "\"trace\":\"%s\",\"span\":\"%s\"", trace, span);
}

/* Writes the slices from `depth` on. An outer slice comes before an inner one of the same length. */
static void close_slices(struct trace *t, size_t depth)
{
	for (size_t i = depth; i < t->open.len; i++) {
		uint64_t begin_ns = t->open.items[i].begin_ns;

		begin_event(t, "X");
		json_put(&t->json, "\"ts\":" TIME ",\"dur\":" TIME, TIME_OF(begin_ns), TIME_OF(t->end_ns - begin_ns));
		json_member(&t->json, "cat", profile_event_name(t->profile, t->sample->event));
		json_member(&t->json, "name", t->path.labels->items[t->open.items[i].label].text);
		if (trace_is_known(t->last)) {
			json_begin(&t->json, "\"args\":{");
			put_context(t, t->last);
			json_end(&t->json, "}");
		}
		json_end(&t->json, "}");
	}
	if (depth < t->open.len)
		t->open.len = depth;
}

/* Returns how many of the open slices continue in the stack of t->path. */
static size_t common_depth(const struct trace *t)
{
	size_t depth = 0;

	while (depth < t->open.len && depth < t->path.depth &&
	       t->open.items[depth].label == t->path.steps.items[t->path.depth - 1 - depth].label)
		depth++;
	return depth;
}

/* Opens slices for the frames that have none, as far as there is room. */
static int open_slices(struct trace *t, uint64_t begin_ns)
{
	uint64_t most = stack_room_next(&t->room), bytes = 0;
	uint64_t each = SLICE_BYTES + (trace_is_known(t->last) ? CONTEXT_BYTES : 0);
	int err = 0;

	for (size_t i = t->open.len; !err && i < t->path.depth; i++) {
		uint32_t label = t->path.steps.items[t->path.depth - 1 - i].label;

		bytes += strlen(t->path.labels->items[label].text) + each;
		if (bytes > most && (i || !stack_room_has_leaf(&t->room))) {
			label = path_mark(&t->path, PATH_TRUNCATED);
			i = t->path.depth;
		}
		err = label ? vec_push(&t->open, (struct slice){label, begin_ns}) : -ENOMEM;
	}
	stack_room_took(&t->room, bytes);
	return err;
}

/*
 * A short time that belongs to no sample is added to the later one: clocks tick unevenly. Slices end where another
 * trace or span begins.
 */
static int put_slices(struct trace *t, uint64_t time_ns, const struct profile_sample *sample)
{
	uint64_t weight = sample->weight, begin = time_ns > weight ? time_ns - weight : 0;
	int err = 0;

	if (begin > t->end_ns + weight / 2)
		close_slices(t, 0);
	else
		begin = t->end_ns;
	if (time_ns <= begin)
		return 0;
	close_slices(t, t->open.len && trace_is_same(t->last, sample) ? common_depth(t) : 0);
	t->last = sample;
	err = open_slices(t, begin);
	t->end_ns = time_ns;
	return err;
}

static int put_instant(struct trace *t, uint64_t time_ns, const struct profile_sample *sample)
{
	uint64_t most = stack_room_next(&t->room), bytes = 0;
	size_t depth = 0;

	while (depth < t->path.depth && (bytes < most || (!depth && stack_room_has_leaf(&t->room))))
		bytes += strlen(path_label(&t->path, depth++)->text) + 1;
	stack_room_took(&t->room, bytes);
	begin_event(t, "i");
	json_put(&t->json, "\"ts\":" TIME, TIME_OF(time_ns));
	json_put(&t->json, "\"s\":\"t\"");
	json_member(&t->json, "name", profile_event_name(t->profile, sample->event));
	json_begin(&t->json, "\"args\":{");
	json_put(&t->json, "\"weight\":%" PRIu64, sample->weight);
	buf_clear(&t->text);
	if (depth < t->path.depth)
		buf_add_str(&t->text, PATH_TRUNCATED ";");
	for (size_t i = depth; i-- > 0;) {
		buf_add_str(&t->text, path_label(&t->path, i)->text);
		buf_add_str(&t->text, i ? ";" : "");
	}
	json_member(&t->json, "stack", t->text.data);
	if (trace_is_known(sample))
		put_context(t, sample);
	json_end(&t->json, "}}");
	return t->text.failed ? -ENOMEM : 0;
}

static int put_sample(struct trace *t, const struct profile_sample *sample)
{
	uint64_t start = t->profile->start_ns, time = sample->time_ns > start ? sample->time_ns - start : 0;
	int wanted = path_make(&t->path, sample->thread, sample->node);

	if (wanted <= 0)
		return wanted;
	if (t->profile->events.items[sample->event].unit != PROFILE_NS)
		return put_instant(t, time, sample);
	/* merged samples have no order, so they are written one after the other */
	return put_slices(t, t->ordered.is_merged ? t->end_ns + sample->weight : time, sample);
}

static int put_samples(struct trace *t)
{
	int err = 0;

	for (size_t i = 0; !err && i < t->ordered.samples.len; i++) {
		const struct profile_sample *sample = &t->ordered.samples.items[i];

		if (!i || sample->event != t->sample->event ||
		    ordered_thread(&t->ordered, sample) != ordered_thread(&t->ordered, t->sample)) {
			close_slices(t, 0);
			t->sample = sample;
			begin_track(t);
		}
		err = put_sample(t, sample);
	}
	close_slices(t, 0);
	return err;
}

static int put_all(struct trace *t)
{
	int err;

	json_begin(&t->json, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
	err = put_samples(t);
	json_end(&t->json, "]}\n");
	return err ? err : writer_finish(t->json.out);
}

static int chrometrace_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct trace t = {
		.profile = profile,
		.json = {.out = out},
		.text = BUF_NONE,
		.room = stack_room_new(profile->most_text),
	};
	int err = path_maker_init(&t.path, NULL, profile, options);

	if (!err)
		err = ordered_build(&t.ordered, profile);
	if (!err)
		err = put_all(&t);
	ordered_release(&t.ordered);
	path_maker_release(&t.path);
	vec_release(&t.open);
	buf_release(&t.text);
	return err;
}

const struct writer writer_chrometrace = {
	.name = "chrometrace",
	.lacks = "containers, lines, losses and facts",
	.extensions = "trace.json,trace",
	.help = "for Perfetto and chrome://tracing: what each thread did, in the order of time",
	.has_all_events = true,
	.merges = true,
	.write = chrometrace_write,
};
