/* SPDX-License-Identifier: MIT */
/*
 * JFR files, version 2, with the names and fields of async-profiler's and the JDK's own events, so that their tools
 * read them. A file is a row of chunks. During a recording, a chunk grows part by part (file.h), until it is large
 * or old. When a file is made from a recording that has ended, each chunk has one part.
 *
 * Readers count jdk.ExecutionSample and know no weight of it. A sample that stands for several is several events. Where
 * number and weight of samples do not follow from the events, duet.Weight before them has both.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/jfr.h"
#include "profile/profile.h"
#include "profile/timeline.h"
#include "writers/jfr/stream.h"
#include "writers/writer.h"

#define PART_BYTES (16u << 20) /* of events or of stacks; then the part is written */
#define EVENTS_MAX (1u << 24) /* more samples than that are written with several to an event */
#define EVENTS_OF_ONE (1u << 18) /* the same of a sample that stands for so many */

/* Writes the events since the last part. A chunk has one at least. */
static void put_part(struct writer_stream *j)
{
	struct jfr_times times = {
		.start_ns = j->profile->start_realtime_ns + j->begin_ns,
		.duration_ns = j->end_ns - j->begin_ns,
		.start_ticks = jfr_ticks(j, j->begin_ns),
		.ticks_per_second = j->ticks_per_second,
	};
	BUF(metadata);
	BUF(pools);
	uint64_t place;

	if (!j->file.bytes && jfr_put_metadata(&metadata, j->profile, j->own, times.start_ticks, &j->pools) < 0)
		j->err = -ENOMEM;
	place = jfr_file_place(&j->file, metadata.len + j->events.len);
	jfr_put_pools(&j->pools, &pools, times.start_ticks, j->file.pools_at ? place - j->file.pools_at : 0);
	if (j->events.failed || j->pools.failed)
		j->err = -ENOMEM;
	if (!j->err)
		j->err = jfr_file_append(&j->file, &metadata, &j->events, &pools, &times);
	buf_clear(&j->events);
}

static void end_chunk(struct writer_stream *j)
{
	put_part(j);
	jfr_file_end_chunk(&j->file);
	jfr_pools_end_chunk(&j->pools);
	j->begin_ns = j->end_ns;
}

/* The open chunk is too large or too old, or what is in memory is. */
static void put_what_is_full(struct writer_stream *j)
{
	size_t pending = j->events.len > j->pools.stacks.len ? j->events.len : j->pools.stacks.len;
	bool has_parts = j->is_growing && j->file.has_parts;

	if ((j->is_growing && (j->file.bytes + j->events.len + j->pools.stacks.len >= j->options.chunk_bytes ||
			       j->end_ns - j->begin_ns >= j->options.chunk_ns)) ||
	    (pending >= PART_BYTES && !has_parts))
		end_chunk(j);
	else if (pending >= PART_BYTES)
		put_part(j);
}

/* Whether -I and -X choose the sample. */
static bool is_wanted(struct writer_stream *j, const struct profile_sample *sample)
{
	uint64_t key = (uint64_t)sample->thread << 32 | sample->node, known;
	int wanted;

	if (!j->has_filters)
		return true;
	if (map_get(&j->wanted, key, &known))
		return known;
	wanted = path_make(&j->pools.path, sample->thread, sample->node);
	if (wanted < 0 || map_put(&j->wanted, key, wanted > 0) < 0)
		j->err = -ENOMEM;
	return wanted > 0;
}

/* At least one event, so that each stack stays visible. They are in memory together. */
static uint64_t events_of(const struct writer_stream *j, const struct profile_sample *sample)
{
	uint64_t events = sample->count / j->per_event;

	return !events ? 1 : events < EVENTS_OF_ONE ? events : EVENTS_OF_ONE;
}

/* What the samples in the next events worked for. */
static void put_context(struct writer_stream *j, const struct profile_sample *sample)
{
	const char *attributes = profile_text(j->profile, sample->attributes);
	char trace[TRACE_ID_DIGITS + 1], span[SPAN_ID_DIGITS + 1];

	if (!trace_is_known(sample) && !sample->attributes)
		return;
	trace_id_text(sample, trace);
	span_id_text(sample, span);
	jfr_begin_event(j, JFR_E_CONTEXT, jfr_ns_of(j, sample));
	jfr_put_number(&j->body, events_of(j, sample));
	jfr_put_text(&j->body, trace);
	jfr_put_text(&j->body, span);
	jfr_put_number(&j->body, sample->attributes ? jfr_text_row(&j->pools, attributes) : 0);
	jfr_end_event(j);
}

/* What follows from `events` events is not written. */
static void put_weight(struct writer_stream *j, const struct profile_sample *sample, uint64_t events, uint64_t weight)
{
	if (events == sample->count && weight == sample->weight)
		return;
	jfr_add_event(j, JFR_E_WEIGHT, jfr_ns_of(j, sample), events, sample->count, sample->weight);
}

static void put_executions(struct writer_stream *j, const struct profile_sample *sample)
{
	const struct profile_event *event = &j->profile->events.items[sample->event];
	uint64_t events = events_of(j, sample);
	uint64_t each = event->interval || event->unit != PROFILE_COUNT ? event->interval : 1;
	bool is_cpu_time = j->forms[sample->event] == CPU_TIME;

	put_weight(j, sample, events, events * each);
	jfr_begin_event(j, is_cpu_time ? JFR_E_CPU_TIME_SAMPLE : JFR_E_EXECUTION_SAMPLE, jfr_ns_of(j, sample));
	if (is_cpu_time) {
		jfr_put_numbers(&j->body, jfr_stack(&j->pools, sample->thread, sample->node),
				jfr_thread(&j->pools, sample->thread), 0 /* it did not fail */, jfr_ticks_long(j, each),
				0 /* it is not biased */);
	} else {
		jfr_put_numbers(&j->body, jfr_thread(&j->pools, sample->thread),
				jfr_stack(&j->pools, sample->thread, sample->node), JFR_STATE_DEFAULT);
	}
	for (uint64_t i = 0; i < events; i++)
		jfr_end_event(j);
}

static enum jfr_thread_state state_of(const struct writer_stream *j, const struct profile_sample *sample)
{
	static const enum jfr_thread_state states[THREAD_STATES] = {
		[THREAD_STATE_UNKNOWN] = JFR_STATE_RUNNABLE,
		[THREAD_DEFAULT] = JFR_STATE_DEFAULT,
		[THREAD_RUNNABLE] = JFR_STATE_RUNNABLE,
		[THREAD_SLEEPING] = JFR_STATE_SLEEPING,
	};

	return states[thread_state_of(j->profile, sample)];
}

/* One for each period, until the time of the sample. */
static void put_wall_executions(struct writer_stream *j, const struct profile_sample *sample)
{
	uint64_t events = events_of(j, sample), end_ns = jfr_ns_of(j, sample), at_ns;

	for (uint64_t i = events; i-- > 0;) {
		at_ns = end_ns - (uint64_t)((unsigned __int128)sample->weight * i / events);
		jfr_add_event(j, JFR_E_EXECUTION_SAMPLE, at_ns < end_ns ? at_ns : end_ns,
			      jfr_thread(&j->pools, sample->thread), jfr_stack(&j->pools, sample->thread, sample->node),
			      state_of(j, sample));
	}
}

static void put_wall(struct writer_stream *j, const struct profile_sample *sample)
{
	if (j->options.jfr.no_batch)
		return put_wall_executions(j, sample);
	jfr_add_event(j, JFR_E_WALL_CLOCK_SAMPLE, jfr_ns_of(j, sample), jfr_thread(&j->pools, sample->thread),
		      jfr_stack(&j->pools, sample->thread, sample->node), state_of(j, sample), sample->count,
		      jfr_ticks_long(j, sample->weight));
}

/* A sample of an event whose weight is a field. The class is a field, too, and not a frame. */
struct weighed {
	uint64_t at_ns, weight, address;
	uint32_t thread, stack, class_id, method, holder;
	bool is_leak, is_park, is_outside;
};

/* async-profiler's event, and that of the JDK, which its views of leaks need. */
static void put_live(struct writer_stream *j, const struct weighed *event)
{
	uint64_t age_ns = event->address < event->at_ns ? event->address : event->at_ns;

	jfr_add_event(j, JFR_E_LIVE_OBJECT, event->at_ns, event->thread, event->stack, event->class_id, event->weight,
		      jfr_ticks(j, event->at_ns - age_ns));
	if (j->pools.is_plain)
		return;
	jfr_add_event(j, JFR_E_OLD_OBJECT_SAMPLE, event->at_ns, 0 /* duration */, event->thread, event->stack,
		      jfr_ticks(j, event->at_ns - age_ns), event->weight, jfr_ticks_long(j, age_ns), j->heap_bytes,
		      jfr_object_of(&j->pools, event->class_id));
}

/* As in async-profiler's files, there is no stack. */
static void put_free(struct writer_stream *j, const struct profile_sample *sample)
{
	jfr_add_event(j, JFR_E_FREE, jfr_ns_of(j, sample), jfr_thread(&j->pools, sample->thread), 0, sample->address);
}

/* Adds an event of what ended at the time of the sample: a wait, a call. */
#define ADD_LASTING(j, type, event, ...)                                                                               \
	jfr_add_event(j, type, (event)->at_ns > (event)->weight ? (event)->at_ns - (event)->weight : 0,                \
		      jfr_ticks_long(j, (event)->weight), (event)->thread, (event)->stack, __VA_ARGS__)

static void put_weighed_event(struct writer_stream *j, enum form form, const struct weighed *event)
{
	enum jfr_type type = event->is_outside ? JFR_E_ALLOCATION_OUTSIDE_TLAB : JFR_E_ALLOCATION_IN_NEW_TLAB;

	if (event->is_park && (form == LOCK || j->waits_park)) {
		ADD_LASTING(j, JFR_E_THREAD_PARK, event, event->class_id, 0 /* timeout */,
			    1ull << 63 /* until: Long.MIN_VALUE, not known */, event->address);
		return;
	}
	switch (form) {
	case ALLOCATION:
		type = JFR_E_ALLOCATION_SAMPLE;
		/* fall through */
	case IN_TLAB:
		jfr_begin_event(j, type, event->at_ns);
		jfr_put_numbers(&j->body, event->thread, event->stack, event->class_id, event->weight);
		if (type == JFR_E_ALLOCATION_IN_NEW_TLAB)
			jfr_put_number(&j->body, event->weight);
		jfr_end_event(j);
		break;
	case LIVE:
		put_live(j, event);
		break;
	case MALLOC:
		/* async-profiler's converter knows leaks by their addresses. The event leak has numbers instead */
		jfr_add_event(j, JFR_E_MALLOC, event->at_ns, event->thread, event->stack,
			      event->is_leak ? ++j->leaks : event->address, event->weight);
		break;
	case LOCK:
		ADD_LASTING(j, JFR_E_MONITOR_ENTER, event, event->class_id, event->holder, event->address);
		break;
	case WAIT: /* the thread that ended the wait, its timeout and whether it timed out are not known */
		ADD_LASTING(j, JFR_E_MONITOR_WAIT, event, event->class_id, 0, 0, 0, event->address);
		break;
	case NATIVE_LOCK:
		ADD_LASTING(j, JFR_E_NATIVE_LOCK, event, event->address);
		break;
	default:
		ADD_LASTING(j, JFR_E_METHOD_TRACE, event, event->method);
	}
}

/* The class is a field. Without one, it is a frame, as of exceptions that others have recorded. */
static void put_exceptions(struct writer_stream *j, const struct profile_sample *sample)
{
	const struct profile_event *event = &j->profile->events.items[sample->event];
	const struct frame *leaf = profile_leaf(j->profile, sample->node);
	uint64_t events = events_of(j, sample), each = event->interval ? event->interval : 1;
	uint32_t node = sample->node, class_id = 0;

	if (leaf && leaf->kind == FRAME_CLASS) {
		node = j->profile->nodes.items[node].parent;
		class_id = jfr_class_of(&j->pools, profile_text(j->profile, leaf->name));
	}
	put_weight(j, sample, events, events * each);
	jfr_begin_event(j, JFR_E_EXCEPTION, jfr_ns_of(j, sample));
	jfr_put_numbers(&j->body, jfr_thread(&j->pools, sample->thread),
			node || !class_id ? jfr_stack(&j->pools, sample->thread, node) : 0);
	jfr_put_text(&j->body, NULL); /* the message is not known */
	jfr_put_number(&j->body, class_id);
	for (uint64_t i = 0; i < events; i++)
		jfr_end_event(j);
}

/* The frame is a text, such as the tag of a span. The empty stack and a frame without a name are null. */
static const char *text_of_leaf(const struct writer_stream *j, uint32_t node)
{
	const struct frame *leaf = profile_leaf(j->profile, node);

	return leaf && leaf->name ? profile_text(j->profile, leaf->name) : NULL;
}

static void put_span(struct writer_stream *j, const struct profile_sample *sample)
{
	const char *tag = text_of_leaf(j, sample->node);

	jfr_begin_lasting(j, JFR_E_SPAN, sample, sample->weight);
	jfr_put_number(&j->body, tag ? jfr_text_row(&j->pools, tag) : 0);
	jfr_end_event(j);
}

static void put_window(struct writer_stream *j, const struct profile_sample *sample)
{
	jfr_begin_lasting(j, JFR_E_WINDOW, sample, sample->weight);
	jfr_end_event(j);
}

/* The leaf is the data, its caller the type. */
static void put_user_event(struct writer_stream *j, const struct profile_sample *sample)
{
	uint32_t caller = sample->node ? j->profile->nodes.items[sample->node].parent : 0;
	const char *type = text_of_leaf(j, caller);

	jfr_begin_event(j, JFR_E_USER_EVENT, jfr_ns_of(j, sample));
	jfr_put_numbers(&j->body, jfr_thread(&j->pools, sample->thread), type ? jfr_user_type(&j->pools, type) : 0);
	jfr_put_text(&j->body, text_of_leaf(j, sample->node));
	jfr_end_event(j);
}

/* The Java method nearest to the leaf is Unsafe.park(), under which locks and queues of java.util.concurrent wait. */
static bool is_park(const struct writer_stream *j, uint32_t node)
{
	const struct intern *strings = &j->profile->strings;
	const struct frame *frame = profile_leaf(j->profile, node);
	size_t class_len;

	for (; frame && !frame_kind_is_java(frame->kind); frame = profile_leaf(j->profile, node))
		node = j->profile->nodes.items[node].parent;
	if (!frame || strcmp(intern_text(strings, frame->name), "park"))
		return false;
	class_len = strlen(intern_text(strings, frame->class_name));
	return class_len > 7 && !strcmp(intern_text(strings, frame->class_name) + class_len - 7, ".Unsafe");
}

static void put_weighed(struct writer_stream *j, const struct profile_sample *sample)
{
	enum form form = j->forms[sample->event];
	uint64_t interval = j->profile->events.items[sample->event].interval;
	uint64_t events = events_of(j, sample), rest = sample->weight;
	uint32_t node = profile_waiter(j->profile, sample->node), holder = jfr_holder(j->profile, sample);
	const struct frame *leaf = profile_leaf(j->profile, node);
	bool has_holder = node != sample->node;
	struct weighed event = {
		.at_ns = jfr_ns_of(j, sample),
		.address = sample->address,
		.thread = jfr_thread(&j->pools, sample->thread),
		.holder = holder == UINT32_MAX ? 0 : jfr_thread(&j->pools, holder),
	};

	if (leaf && leaf->kind == FRAME_CLASS && form != MALLOC && form != NATIVE_LOCK) {
		node = j->profile->nodes.items[node].parent;
		event.class_id = jfr_class_of(&j->pools, profile_text(j->profile, leaf->name));
		event.is_outside = leaf->bci == FRAME_BCI_OUTSIDE;
	}
	event.stack = node || !event.class_id ? jfr_stack(&j->pools, sample->thread, node) : 0;
	event.is_park = (form == LOCK || form == WAIT) && is_park(j, node);
	event.is_leak = form == MALLOC && jfr_is_event(j->profile, sample->event, "leak", PROFILE_BYTES);
	event.method = jfr_leaf_method(&j->pools, node);
	/* a call that stands for others has their weight too, but the event has the call's own duration */
	if (form == TRACE && interval)
		rest /= interval;
	put_weight(j, sample, events, rest);
	if (has_holder) /* the next waits have a stack that goes on with that of the thread which had the lock */
		jfr_add_event(j, JFR_E_HOLDER, jfr_ns_of(j, sample), events,
			      jfr_stack(&j->pools, sample->thread, sample->node));
	for (uint64_t i = 0; i < events; i++) {
		event.weight = rest / (events - i);
		put_weighed_event(j, form, &event);
		rest -= event.weight;
	}
}

static void put_own(struct writer_stream *j, const struct profile_sample *sample)
{
	jfr_add_event(j, (enum jfr_type)(JFR_E_OWN + sample->event), jfr_ns_of(j, sample),
		      jfr_thread(&j->pools, sample->thread), jfr_stack(&j->pools, sample->thread, sample->node),
		      sample->count, sample->weight);
}

static int put_sample(void *context, const struct profile_sample *sample)
{
	static void (*const put[])(struct writer_stream *, const struct profile_sample *) = {
		[EXECUTION] = put_executions,
		[CPU_TIME] = put_executions,
		[WALL] = put_wall,
		[FREE] = put_free,
		[ALLOCATION] = put_weighed,
		[IN_TLAB] = put_weighed,
		[LIVE] = put_weighed,
		[MALLOC] = put_weighed,
		[LOCK] = put_weighed,
		[WAIT] = put_weighed,
		[NATIVE_LOCK] = put_weighed,
		[TRACE] = put_weighed,
		[EXCEPTION] = put_exceptions,
		[SPAN] = put_span,
		[WINDOW] = put_window,
		[USER_EVENT] = put_user_event,
		[OWN] = put_own,
	};
	struct writer_stream *j = context;

	jfr_put_notes(j, sample->time_ns);
	jfr_put_usages(j, sample->time_ns);
	jfr_views_sum(j, sample);
	if (!is_wanted(j, sample) || !jfr_is_within_limit(j, sample, jfr_ns_of(j, sample), events_of(j, sample)))
		return j->err;
	if (jfr_ns_of(j, sample) > j->end_ns)
		j->end_ns = jfr_ns_of(j, sample);
	put_context(j, sample);
	put[j->forms[sample->event]](j, sample);
	jfr_views_put(j, sample);
	put_what_is_full(j);
	return j->err;
}

static int count_samples(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context += sample->count;
	return 0;
}

#define FIRST_TICKS 1000000000 /* at the start of the recording, so that no time is 0 */

/* The ticks continue those of the JDK's chunks, so that times of both can be compared. */
static void set_clock(struct writer_stream *j)
{
	const struct writer_jfr *jfr = &j->options.jfr;
	struct jfr_header first;
	__int128 ticks;

	j->ticks_per_second = jfr->ticks_per_second ? jfr->ticks_per_second : NS_PER_SEC;
	j->start_ticks = jfr->start_ticks ? jfr->start_ticks : FIRST_TICKS;
	if (!jfr->jdk_file || *jfr->jdk_file < 0 || jfr_file_check(*jfr->jdk_file, &first) < 0 ||
	    be64toh(first.ticks_per_second) > 1000 * NS_PER_SEC || be64toh(first.start_ns) > INT64_MAX)
		return;
	j->ticks_per_second = be64toh(first.ticks_per_second);
	ticks = (__int128)j->profile->start_realtime_ns - (__int128)be64toh(first.start_ns);
	ticks = ticks * j->ticks_per_second / (__int128)NS_PER_SEC + be64toh(first.start_ticks);
	j->start_ticks = ticks > 0 && ticks < INT64_MAX ? (uint64_t)ticks : FIRST_TICKS;
}

static void add_jdk_chunks(struct writer_stream *j)
{
	struct jfr_header first;
	int file = j->options.jfr.jdk_file ? *j->options.jfr.jdk_file : -1;

	if (!j->err && file >= 0 && !jfr_file_check(file, &first))
		j->err = jfr_file_add_chunks(&j->file, file);
}

static int stream_init(struct writer_stream *j)
{
	buf_init(&j->events);
	buf_init(&j->body);
	if (j->options.chunk_bytes < WRITER_CHUNK_BYTES_MIN)
		j->options.chunk_bytes = WRITER_CHUNK_BYTES_MIN;
	if (j->options.chunk_ns < WRITER_CHUNK_NS_MIN)
		j->options.chunk_ns = WRITER_CHUNK_NS_MIN;
	j->has_filters = j->options.include.len || j->options.exclude.len;
	j->per_event = j->owners = 1;
	set_clock(j);
	j->forms = calloc(j->profile->events.len + 1, sizeof(*j->forms));
	j->own = calloc(j->profile->events.len + 1, sizeof(*j->own));
	if (!j->forms || !j->own)
		return -ENOMEM;
	jfr_choose_forms(j);
	jfr_views_init(j);
	return jfr_pools_init(&j->pools, j->profile, &j->options);
}

static void stream_release(struct writer_stream *j)
{
	jfr_file_release(&j->file);
	jfr_pools_release(&j->pools);
	map_release(&j->wanted);
	map_release(&j->facts);
	map_release(&j->losses);
	jfr_views_release(&j->views);
	free(j->forms);
	free(j->own);
	buf_release(&j->events);
	buf_release(&j->body);
}

static int put_end(struct writer_stream *j)
{
	const struct profile *profile = j->profile;

	jfr_put_report(j);
	if (profile->end_ns - profile->start_ns > j->end_ns)
		j->end_ns = profile->end_ns - profile->start_ns;
	put_part(j);
	if (j->is_growing) {
		jfr_file_end_chunk(&j->file);
		add_jdk_chunks(j);
	}
	return j->err ? j->err : writer_finish(j->file.out);
}

static int jfr_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_stream j = {.profile = profile, .options = *options};
	uint64_t samples = 0;
	int err = stream_init(&j);

	jfr_file_init(&j.file, out);
	if (!err) {
		add_jdk_chunks(&j);
		err = j.err;
	}
	if (!err)
		err = timeline_each(&profile->samples, count_samples, &samples);
	j.per_event += samples / EVENTS_MAX;
	if (!err) {
		jfr_put_beginning(&j);
		jfr_put_jvms(&j);
		err = timeline_each(&profile->samples, put_sample, &j);
	}
	if (!err)
		err = put_end(&j);
	stream_release(&j);
	return err;
}

static void jfr_stream_close(struct writer_stream *stream)
{
	if (!stream)
		return;
	stream_release(stream);
	free(stream);
}

static struct writer_stream *jfr_stream_open(const struct profile *profile, const struct writer_options *options,
					     FILE *out)
{
	struct writer_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->profile = profile;
	stream->options = *options;
	stream->is_growing = true;
	jfr_file_init(&stream->file, out);
	if (stream_init(stream) < 0) {
		jfr_stream_close(stream);
		return NULL;
	}
	jfr_put_beginning(stream);
	jfr_put_facts(stream);
	return stream;
}

/* The rest of the time, in which nothing may have happened, belongs to the chunk. */
static void end_part(struct writer_stream *j)
{
	uint64_t now_ns = j->profile->end_ns - j->profile->start_ns;

	if (now_ns > j->end_ns)
		j->end_ns = now_ns;
	put_what_is_full(j);
	if (j->file.has_parts && (j->events.len || !j->file.bytes))
		put_part(j);
}

static int jfr_stream_append(struct writer_stream *stream, bool is_end)
{
	const struct timeline *samples = &stream->profile->samples;
	int err = jfr_pools_extend(&stream->pools);

	stream->per_event = 1 + stream->samples / EVENTS_MAX;
	jfr_put_jvms(stream);
	if (!err)
		err = timeline_rest(samples, stream->samples, put_sample, stream);
	stream->samples = samples->len;
	if (err)
		return err;
	jfr_put_notes(stream, UINT64_MAX);
	jfr_put_usages(stream, UINT64_MAX);
	jfr_put_losses(stream);
	if (is_end)
		return put_end(stream);
	end_part(stream);
	return stream->err ? stream->err : writer_finish(stream->file.out);
}

const struct writer writer_jfr = {
	.name = "jfr",
	.extensions = "jfr",
	.help = "Java Flight Recorder's format, for jfr, JDK Mission Control and async-profiler's converter",
	.has_all_events = true,
	.has_notes = true,
	.has_usages = true,
	.write = jfr_write,
	.stream_open = jfr_stream_open,
	.stream_append = jfr_stream_append,
	.stream_close = jfr_stream_close,
};
