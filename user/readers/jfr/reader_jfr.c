/* SPDX-License-Identifier: MIT */
/*
 * JFR files of duet, async-profiler and the JDK (11 and later). A file is a sequence of chunks, each with its own
 * types, constant pools and events. A chunk is held in memory and read twice: for constant pools and settings, then for
 * samples. Events that neither are samples nor describe the recording are skipped.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "profile/profile.h"
#include "profile/timeline.h"
#include "readers/jfr/about.h"
#include "readers/jfr/samples.h"
#include "readers/reader.h"

#define NONE UINT32_MAX
#define CHUNK_MAX ((uint64_t)1 << 30)
#define TIME_MAX ((uint64_t)INT64_MAX)

/* Types that are not samples. */
enum other { SETTING, LOSS, FACT, WEIGHT, CONTEXT, HOLDER, OTHERS };

enum { SETTING_ID, SETTING_NAME, SETTING_VALUE };
enum { LOSS_AMOUNT, LOSS_REASON };
enum { FACT_KEY, FACT_VALUE };
enum { WEIGHT_EVENTS, WEIGHT_SAMPLES, WEIGHT_WEIGHT };
enum { CONTEXT_EVENTS, CONTEXT_TRACE, CONTEXT_SPAN, CONTEXT_ATTRIBUTES };
enum { HOLDER_EVENTS, HOLDER_STACK };

static const struct jfr_wanted wanted[OTHERS] = {
	[SETTING] = {"jdk.ActiveSetting", {"id", "name", "value"}},
	[LOSS] = {"jdk.DataLoss", {"amount", "reason"}},
	[FACT] = {JFR_TYPE_FACT, {"key", "value"}},
	[WEIGHT] = {JFR_TYPE_WEIGHT, {"events", "samples", "weight"}},
	[CONTEXT] = {JFR_TYPE_CONTEXT, {"events", "traceId", "spanId", "attributes"}},
	[HOLDER] = {JFR_TYPE_HOLDER, {"events", "stack"}},
};

struct jfr {
	struct profile *profile;
	struct buf *why;
	struct buf chunk;
	struct jfr_header header;
	uint64_t start_ns, start_ticks, ticks_per_second;
	struct jfr_types types;
	struct jfr_constants constants;
	struct jfr_kinds kinds;
	struct jfr_about about;
	const struct jfr_type *others[OTHERS];
	uint64_t weighed; /* number of events that the last duet.Weight is for and that have not come yet */
	uint64_t samples, weight; /* its values; `is_new`: they are not added yet */
	bool is_new;
	uint64_t reported; /* the same of the last duet.Context */
	struct profile_sample context; /* trace, span and attributes of that duet.Context */
	uint64_t held; /* the same of the last duet.Holder */
	uint32_t held_node; /* stack of that duet.Holder */
	struct map losses; /* text -> index */
	bool is_begun; /* a chunk was read */
};

/* ---- events ---- */

struct event {
	size_t at;
	uint64_t type;
	struct jfr_cursor fields;
};

static int refuse_event(const struct jfr *j, size_t at)
{
	return buf_explain(j->why, -EINVAL, "the event at byte %zu of a chunk is damaged", at);
}

/* The next event. Returns 1, 0 at the end of the chunk, or -EINVAL. */
static int next_event(const struct jfr *j, size_t *at, struct event *ret)
{
	struct jfr_cursor cursor = {.bytes = (const unsigned char *)j->chunk.data, .at = *at, .end = j->chunk.len};
	uint64_t size;

	if (*at >= j->chunk.len)
		return 0;
	size = jfr_number(&cursor);
	ret->type = jfr_number(&cursor);
	if (cursor.failed || size > j->chunk.len - *at || size < cursor.at - *at)
		return refuse_event(j, *at);
	ret->at = *at;
	ret->fields = cursor;
	ret->fields.end = *at + (size_t)size;
	*at += (size_t)size;
	return 1;
}

static int each_event(struct jfr *j, int (*visit)(struct jfr *j, const struct event *event))
{
	struct event event;
	size_t at = sizeof(struct jfr_header);
	int got, err = 0;

	while (!err && (got = next_event(j, &at, &event)) != 0)
		err = got < 0 ? got : visit(j, &event);
	return err;
}

static int read_fields(struct jfr *j, const struct event *event, const struct jfr_type *type,
		       struct jfr_value values[JFR_SLOTS])
{
	struct jfr_cursor cursor = event->fields;

	return jfr_read(&j->types, type, &cursor, values, JFR_SLOTS) ? 0 : refuse_event(j, event->at);
}

/* ---- times ---- */

static uint64_t ns_of_ticks(const struct jfr *j, uint64_t ticks)
{
	unsigned __int128 ns = (unsigned __int128)ticks * NS_PER_SEC / j->ticks_per_second;

	return ns < TIME_MAX ? (uint64_t)ns : TIME_MAX;
}

static uint64_t time_of(const struct jfr *j, uint64_t ticks)
{
	return j->start_ns + (ticks > j->start_ticks ? ns_of_ticks(j, ticks - j->start_ticks) : 0);
}

/* ---- other events ---- */

static void add_setting(struct jfr *j, const struct jfr_value values[JFR_SLOTS], uint32_t name_id, uint32_t value_id)
{
	const char *name = profile_text(j->profile, name_id), *value = profile_text(j->profile, value_id);
	const struct jfr_type *type = jfr_type_by_id(&j->types, values[SETTING_ID].number);
	bool is_samples = type && type->use >= 0;

	if (!strcmp(name, JFR_SETTING_PROCESSES))
		j->profile->processes = strcmp(value, "always") ? PROFILE_NEVER : PROFILE_ALWAYS;
	else if (!strcmp(name, JFR_SETTING_USAGES))
		j->profile->host.usages_ns = strtoul(value, NULL, 10) * NS_PER_SEC;
	else if (is_samples || !strcmp(name, JFR_SETTING_EVENT))
		jfr_kinds_set(&j->kinds, is_samples ? &j->kinds.items.items[type->use] : NULL, name, value_id);
}

static uint32_t text_of(struct jfr *j, const struct jfr_value *value)
{
	return jfr_constants_string(&j->constants, &value->text);
}

/* A recording reports what it has lost several times, each time what came in addition. */
static void add_loss(struct jfr *j, uint64_t count, uint32_t text)
{
	struct profile *profile = j->profile;
	uint64_t index = profile->losses.len;

	if (!text)
		text = intern_str(&profile->strings, "bytes of the flight recorder");
	if (map_get(&j->losses, text, &index))
		profile->losses.items[index].count += count;
	else if (count && index < PROFILE_FACTS_MAX && !map_put(&j->losses, text, index))
		(void)vec_push(&profile->losses, (struct profile_loss){.count = count, .text = text});
}

static void add_fact(struct jfr *j, uint32_t key, uint32_t value)
{
	if (j->profile->facts.len < PROFILE_FACTS_MAX)
		(void)vec_push(&j->profile->facts, (struct profile_fact){.key = key, .value = value});
}

static void add_other(struct jfr *j, enum other other, const struct jfr_value values[JFR_SLOTS])
{
	switch (other) {
	case SETTING:
		add_setting(j, values, text_of(j, &values[SETTING_NAME]), text_of(j, &values[SETTING_VALUE]));
		break;
	case LOSS:
		add_loss(j, values[LOSS_AMOUNT].number, text_of(j, &values[LOSS_REASON]));
		break;
	case FACT:
		add_fact(j, text_of(j, &values[FACT_KEY]), text_of(j, &values[FACT_VALUE]));
		break;
	default:
		break;
	}
}

static int read_pools(struct jfr *j, const struct event *event)
{
	return event->type == JFR_POOLS ? jfr_constants_add(&j->constants, event->fields) : 0;
}

static int read_about(struct jfr *j, const struct event *event, const struct jfr_type *type)
{
	struct jfr_cursor cursor = event->fields;
	struct jfr_value values[JFR_SLOTS_WIDE];
	int about = jfr_about_find(&j->about, type);

	if (about < 0)
		return 0;
	if (!jfr_read(&j->types, type, &cursor, values, JFR_SLOTS_WIDE))
		return refuse_event(j, event->at);
	return jfr_about_add(&j->about, about, values, time_of(j, values[0].number));
}

/* Notes that there are samples of this type. */
static int meet(struct jfr *j, const struct event *event, const struct jfr_type *type)
{
	struct jfr_kind *kind = &j->kinds.items.items[type->use];
	struct jfr_value values[JFR_SLOTS] = {0};
	int err = kind->is_other && kind->event == NONE ? read_fields(j, event, type, values) : 0;

	jfr_kind_note(kind, values);
	return err;
}

static int read_other(struct jfr *j, const struct event *event)
{
	const struct jfr_type *type = jfr_type_by_id(&j->types, event->type);
	struct jfr_value values[JFR_SLOTS];
	int err = 0;

	if (type && type->use >= 0)
		return meet(j, event, type);
	err = read_about(j, event, type);
	for (enum other other = 0; type && !err && other < WEIGHT; other++) {
		if (j->others[other] != type)
			continue;
		err = read_fields(j, event, type, values);
		if (!err)
			add_other(j, other, values);
	}
	return err;
}

/* ---- samples ---- */

/* The time of a wait, a call or a span is its end. A length that no clock can have is ignored. */
static uint64_t time_of_sample(const struct jfr *j, const struct jfr_kind *kind,
			       const struct jfr_value values[JFR_SLOTS])
{
	uint64_t start_ns = time_of(j, values[JFR_TIME].number);
	uint64_t length_ns = kind->is_duration ? ns_of_ticks(j, values[JFR_WEIGHT].number) : 0;

	return start_ns < TIME_MAX && length_ns < TIME_MAX - start_ns ? start_ns + length_ns : start_ns;
}

/* Sets number and weight from the sample's fields. */
static void weigh(const struct jfr *j, const struct jfr_kind *kind, const struct jfr_value values[JFR_SLOTS],
		  uint64_t *ret_samples, uint64_t *ret_weight)
{
	*ret_samples = kind->has_samples ? values[JFR_SAMPLES].number : 1;
	if (kind->has_weight)
		*ret_weight = kind->is_ticks ? ns_of_ticks(j, values[JFR_WEIGHT].number) : values[JFR_WEIGHT].number;
	else
		*ret_weight = kind->unit == PROFILE_COUNT && !kind->interval ? 1 : kind->interval;
}

static int find_stack(struct jfr *j, const struct jfr_kind *kind, const struct jfr_value values[JFR_SLOTS],
		      uint32_t *ret_node)
{
	uint32_t frame = NONE;
	int err;

	if (kind->is_of_user)
		return jfr_constants_user_event(&j->constants, values[JFR_CLASS].number, &values[JFR_TAG].text,
						ret_node);
	if (kind->has_tag)
		return jfr_constants_span(&j->constants, values[JFR_TAG].number, ret_node);
	err = jfr_constants_stack(&j->constants, values[JFR_STACK].number, ret_node);
	if (!err && values[JFR_CLASS].number && kind->is_object)
		err = jfr_constants_object(&j->constants, values[JFR_CLASS].number, &frame);
	else if (!err && values[JFR_CLASS].number)
		err = jfr_constants_class(&j->constants, values[JFR_CLASS].number, kind->is_outside, &frame);
	if (!err && frame != NONE)
		*ret_node = profile_child(j->profile, *ret_node, frame);
	return err;
}

static enum thread_state state_of(struct jfr *j, uint64_t key)
{
	static const char *const names[THREAD_STATES] = {
		[THREAD_STATE_UNKNOWN] = "",
		[THREAD_DEFAULT] = "STATE_DEFAULT",
		[THREAD_RUNNABLE] = "STATE_RUNNABLE",
		[THREAD_SLEEPING] = "STATE_SLEEPING",
	};
	const char *name =
		intern_text(&j->profile->strings, jfr_constants_name(&j->constants, JFR_POOL_THREAD_STATE, key));

	for (enum thread_state state = THREAD_DEFAULT; state < THREAD_STATES; state++)
		if (!strcmp(names[state], name))
			return state;
	return THREAD_STATE_UNKNOWN;
}

/* Sets the state. What async-profiler has taken by the wall clock, beside samples of CPU time, is one of wall. */
static void set_state(struct jfr *j, struct jfr_kind *kind, struct profile_sample *sample)
{
	sample->address = state_of(j, sample->address);
	if (!kind->wall_interval || sample->address <= THREAD_DEFAULT)
		return;
	if (kind->wall == NONE)
		kind->wall = profile_event(j->profile, "wall", PROFILE_NS, kind->wall_interval);
	sample->event = kind->wall;
}

static uint64_t age_of(struct jfr *j, uint64_t time_ns, uint64_t birth_ticks)
{
	uint64_t birth_ns = birth_ticks ? time_of(j, birth_ticks) : time_ns;

	return birth_ns < time_ns ? time_ns - birth_ns : 0;
}

static int add_sample(struct jfr *j, struct jfr_kind *kind, const struct jfr_value values[JFR_SLOTS])
{
	struct profile_sample sample = {
		.event = kind->event,
		.time_ns = time_of_sample(j, kind, values),
		.address = values[JFR_ADDRESS].number,
	};
	uint64_t samples;
	int err;

	if (j->reported) {
		sample.trace_high = j->context.trace_high;
		sample.trace_low = j->context.trace_low;
		sample.span = j->context.span;
		sample.attributes = j->context.attributes;
		j->reported--;
	}
	err = find_stack(j, kind, values, &sample.node);
	if (j->held) {
		sample.node = j->held_node;
		j->held--;
	}
	if (!err)
		err = jfr_constants_thread(&j->constants, values[JFR_SAMPLED].number, &sample.thread);
	if (err)
		return err;
	weigh(j, kind, values, &samples, &sample.weight);
	if (kind->has_state)
		set_state(j, kind, &sample);
	if (kind->has_birth)
		sample.address = age_of(j, sample.time_ns, values[JFR_ADDRESS].number);
	if (sample.event != kind->event)
		sample.weight = kind->wall_interval;
	if (j->weighed) {
		samples = j->is_new ? j->samples : 0;
		sample.weight = j->weight;
		j->is_new = false;
		j->weighed--;
	}
	return reader_add(j->profile, sample, samples);
}

static void set_weight(struct jfr *j, const struct jfr_value values[JFR_SLOTS])
{
	j->weighed = values[WEIGHT_EVENTS].number;
	j->samples = values[WEIGHT_SAMPLES].number;
	j->weight = values[WEIGHT_WEIGHT].number;
	j->is_new = true;
}

/* What are no ids is left out. */
static void set_context(struct jfr *j, const struct jfr_value values[JFR_SLOTS])
{
	const struct jfr_text *trace = &values[CONTEXT_TRACE].text, *span = &values[CONTEXT_SPAN].text;

	j->reported = values[CONTEXT_EVENTS].number;
	j->context = (struct profile_sample){0};
	(void)trace_id_parse(&j->context, (const char *)trace->bytes, trace->len);
	(void)span_id_parse(&j->context, (const char *)span->bytes, span->len);
	j->context.attributes =
		jfr_constants_name(&j->constants, JFR_POOL_STRING, values[CONTEXT_ATTRIBUTES].number);
}

static int read_sample(struct jfr *j, const struct event *event)
{
	const struct jfr_type *type = jfr_type_by_id(&j->types, event->type);
	struct jfr_value values[JFR_SLOTS];
	struct jfr_kind *kind;
	int err;

	if (!type ||
	    (type->use < 0 && type != j->others[WEIGHT] && type != j->others[CONTEXT] && type != j->others[HOLDER]))
		return 0;
	err = read_fields(j, event, type, values);
	if (err)
		return err;
	if (type == j->others[WEIGHT])
		set_weight(j, values);
	else if (type == j->others[CONTEXT])
		set_context(j, values);
	else if (type == j->others[HOLDER]) {
		j->held = values[HOLDER_EVENTS].number;
		return jfr_constants_stack(&j->constants, values[HOLDER_STACK].number, &j->held_node);
	}
	kind = type->use >= 0 ? &j->kinds.items.items[type->use] : NULL;
	return kind && kind->is_met ? add_sample(j, kind, values) : 0;
}

/* ---- chunks ---- */

static int begin_types(struct jfr *j)
{
	const unsigned char *bytes = (const unsigned char *)j->chunk.data;
	struct jfr_cursor metadata = {.bytes = bytes, .at = be64toh(j->header.metadata_at), .end = j->chunk.len};
	int err = jfr_types_read(&j->types, metadata, j->why);

	if (err)
		return err;
	for (size_t i = 0; i < OTHERS; i++)
		j->others[i] = jfr_type_wanted(&j->types, &wanted[i]);
	jfr_constants_begin(&j->constants, bytes, j->chunk.len);
	jfr_about_begin(&j->about);
	err = jfr_kinds_begin(&j->kinds, &j->types);
	if (err == -E2BIG)
		buf_printf(j->why, "it has more than %d types of samples", PROFILE_EVENTS_MAX);
	return err;
}

static void set_times(struct jfr *j)
{
	uint64_t length = be64toh(j->header.duration_ns), end;

	j->start_ns = be64toh(j->header.start_ns);
	j->start_ns = j->start_ns < TIME_MAX / 4 ? j->start_ns : TIME_MAX / 4;
	j->start_ticks = be64toh(j->header.start_ticks);
	j->ticks_per_second = be64toh(j->header.ticks_per_second);
	end = j->start_ns + (length < TIME_MAX / 4 ? length : TIME_MAX / 4);
	if (!j->is_begun || j->start_ns < j->profile->start_ns)
		j->profile->start_ns = j->profile->start_realtime_ns = j->start_ns;
	if (end > j->profile->end_ns)
		j->profile->end_ns = end;
	j->is_begun = true;
}

static int read_chunk(struct jfr *j)
{
	int err;

	set_times(j);
	if (!j->ticks_per_second || !(be32toh(j->header.features) & JFR_COMPRESSED))
		return buf_explain(j->why, -EINVAL, "%s",
				  j->ticks_per_second ? "its integers are not compressed, which duet does not read"
						      : "a chunk has no ticks");
	j->weighed = 0;
	err = begin_types(j);
	if (!err)
		err = each_event(j, read_pools);
	if (!err)
		err = each_event(j, read_other);
	jfr_about_end(&j->about);
	if (!err)
		err = jfr_kinds_add_events(&j->kinds);
	return err ? err : each_event(j, read_sample);
}

static bool is_jfr(const struct jfr_header *header)
{
	return !memcmp(header->magic, JFR_MAGIC, sizeof(header->magic));
}

/* A chunk that is still being written has no offsets yet. */
static bool is_complete(const struct jfr_header *header)
{
	uint64_t bytes = be64toh(header->bytes);

	return bytes > sizeof(*header) && be64toh(header->metadata_at) >= sizeof(*header) &&
	       be64toh(header->metadata_at) < bytes && be64toh(header->pools_at);
}

/* Reads the header of the next chunk. Returns 1, 0 at the end of the file or of its complete chunks, or -errno. */
static int next_chunk(struct jfr *j, struct reader_source *source)
{
	ssize_t got = reader_bytes(source, &j->header, sizeof(j->header));
	int err;

	if (got <= 0)
		return (int)got;
	if ((size_t)got == sizeof(j->header) && (!is_jfr(&j->header) || be16toh(j->header.major) != JFR_MAJOR))
		return buf_explain(j->why, -EINVAL,
				   is_jfr(&j->header) ? "JFR of version %d: duet reads version 2, of JDK 11 and later"
						      : "there is no chunk where one must begin",
				   be16toh(j->header.major));
	if ((size_t)got < sizeof(j->header) || !is_complete(&j->header)) {
		buf_add_str(&source->warning, "the last chunk was not finished, and is left out");
		return 0;
	}
	if (be64toh(j->header.bytes) > CHUNK_MAX)
		return buf_explain(j->why, -EFBIG, "a chunk has more than %llu MB",
				   (unsigned long long)CHUNK_MAX >> 20);
	buf_clear(&j->chunk);
	buf_add(&j->chunk, &j->header, sizeof(j->header));
	err = reader_append(source, (size_t)be64toh(j->header.bytes) - sizeof(j->header), &j->chunk);
	if (!err)
		buf_add_str(&source->warning, "the file ends in a chunk, which is left out");
	return err;
}

static int jfr_read_file(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct jfr j = {.profile = profile, .why = why, .chunk = BUF_NONE, .kinds = {.profile = profile}};
	int got = 0, err = 0;

	jfr_constants_init(&j.constants, profile, &j.types, why);
	j.about = (struct jfr_about){.profile = profile, .constants = &j.constants};
	err = jfr_types_init(&j.types);
	while (!err && (got = next_chunk(&j, source)) > 0)
		err = read_chunk(&j);
	if (!err)
		err = got;
	jfr_kinds_end(&j.kinds);
	if (!err && !j.is_begun)
		err = buf_explain(why, -EINVAL, "the recording was not finished: it has no complete chunk");
	jfr_about_release(&j.about);
	jfr_constants_release(&j.constants);
	jfr_types_release(&j.types);
	jfr_kinds_release(&j.kinds);
	map_release(&j.losses);
	buf_release(&j.chunk);
	return err;
}

static bool jfr_claims(const unsigned char *start, size_t len)
{
	return len >= 4 && !memcmp(start, JFR_MAGIC, 4);
}

const struct reader reader_jfr = {
	.name = "jfr",
	.help = "of duet, async-profiler and JDK 11 and later",
	.claims = jfr_claims,
	.read = jfr_read_file,
};
