/* SPDX-License-Identifier: MIT */
/*
 * The format OTLP: one protobuf message, see profile/otlp.proto. Each process is a resource, and has one profile for
 * each event. All profiles share the tables of stacks, frames and texts. Threads are attributes of samples. They are
 * not frames of the stacks, but -I and -X can choose by them.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/attributes.h"
#include "profile/timeline.h"
#include "writers/otlp/messages.h"
#include "writers/shared/code.h"
#include "writers/shared/ordered.h"
#include "writers/shared/path.h"
#include "writers/shared/spans.h"
#include "writers/writer.h"

#define SAMPLE_ATTRIBUTES 6 /* of duet's own, and their names: */
#define SAMPLE_KEYS \
	"cpu.logical_number thread.id thread.name process.pid process.executable.name " \
	OTLP_SPAN " " OTLP_SAMPLES " " OTLP_VIRTUAL
#define LABELS_MAX 8 /* frames before a stack's root that are no code */

struct indices vec(int32_t);

/*
 * The numbers in maps and interns are indices in the tables of the file; 0 is the empty element. An empty string is
 * element 0 of the interns, too; the other tables must not return it.
 */
struct otlp {
	const struct profile *profile;
	const struct writer_options *options;
	struct ordered ordered; /* by process, event, thread, stack and time */
	struct path_maker path;
	struct spans spans;
	struct otlp_dictionary dictionary;
	/* tables other than strings, by the text of their elements */
	struct intern strings, mappings, functions, attributes, links;
	struct map kept_attributes; /* hash of the places of key and text, and number -> index */
	struct map chains; /* number of the caller's chain << 32 | location -> number of the chain */
	struct map stacks; /* number of a chain -> index of the stack */
	uint32_t *frame_locations; /* by index of the frame; 0 = none yet */
	struct map mark_locations; /* by label */
	uint32_t location_count;
	struct vec(int32_t) stack;
	struct map own; /* attributes of a sample -> the place in … */
	struct vec(int32_t) own_attributes; /* … this, of their number and their indices */
	struct buf text;
	bool is_json;
	struct json json;
	size_t resources; /* written so far */
	int err;
};

/* Texts of messages must be UTF-8, so texts from outside are cleaned. */
static int32_t string_of(struct otlp *o, const char *text)
{
	size_t known = o->strings.strings.len;
	BUF(clean);
	uint32_t id;

	text_add_line(&clean, text);
	id = intern_str(&o->strings, clean.data);
	if (clean.failed || (!id && clean.len))
		o->err = -ENOMEM;
	else if (id >= known)
		add_bytes(&o->dictionary.tables[TABLE_STRINGS], TABLE_STRINGS, clean.data, clean.len);
	return (int32_t)id;
}

/* Returns the index of the element with the text o->text. *ret_is_new: the caller adds it to the dictionary. */
static int32_t index_of(struct otlp *o, struct intern *table, bool *ret_is_new)
{
	size_t known = table->strings.len;
	uint32_t id = o->text.failed ? 0 : intern_bytes(table, o->text.data, o->text.len);

	if (!id)
		o->err = -ENOMEM;
	*ret_is_new = id >= known;
	return (int32_t)id;
}

/* Texts stay where they are: many samples have one, and it may be long. */
static int32_t attribute_of(struct otlp *o, const char *key, const char *text, int64_t number)
{
	Otlp__KeyValueAndUnit attribute = OTLP__KEY_VALUE_AND_UNIT__INIT;
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
	const uint64_t about[] = {(uintptr_t)key, (uintptr_t)text, (uint64_t)number};
	uint64_t place = hash_bytes(about, sizeof(about), 0), known;
	BUF(clean);
	bool is_new;
	int32_t index;

	if (text && map_get(&o->kept_attributes, place, &known))
		return (int32_t)known;
	text_add_line(&clean, text ? text : "");
	buf_clear(&o->text);
	buf_printf(&o->text, "%s %lld %s", key, (long long)number, clean.data);
	index = index_of(o, &o->attributes, &is_new);
	otlp_set_value(&value, text ? clean.data : NULL, (uint64_t)number);
	attribute.key_strindex = string_of(o, key);
	attribute.value = &value;
	if (is_new)
		add_message(&o->dictionary.tables[TABLE_ATTRIBUTES], TABLE_ATTRIBUTES, &attribute.base);
	o->dictionary.tables[TABLE_ATTRIBUTES].failed |= clean.failed;
	if (text && map_put(&o->kept_attributes, place, (uint32_t)index) < 0)
		o->err = -ENOMEM;
	return index;
}

static int32_t mapping_of(struct otlp *o, const struct frame *frame)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT;
	const char *build_id;
	int32_t index, attribute;
	bool is_new;
	BUF(file);

	code_file(o->profile, frame, &file);
	if (!file.len)
		return 0;
	buf_clear(&o->text);
	text_add_line(&o->text, file.data);
	o->text.failed |= file.failed;
	index = index_of(o, &o->mappings, &is_new);
	if (!is_new)
		return index;
	build_id = code_build_id(o->profile, file.data);
	mapping.filename_strindex = string_of(o, o->text.data);
	attribute = *build_id ? attribute_of(o, "process.executable.build_id.gnu", build_id, 0) : 0;
	mapping.n_attribute_indices = attribute != 0;
	mapping.attribute_indices = &attribute;
	add_message(&o->dictionary.tables[TABLE_MAPPINGS], TABLE_MAPPINGS, &mapping.base);
	return index;
}

/* A function stands for all frames with the same texts. The step has no frame if it is a mark of the writer. */
static int32_t function_of(struct otlp *o, const struct path_step *step)
{
	bool has_file = step->frame && frame_kind_is_java(step->frame->kind);
	const char *file = has_file ? profile_text(o->profile, step->frame->module) : "";
	const struct path_label *label = &o->path.labels->items[step->label];
	Otlp__Function function = OTLP__FUNCTION__INIT;
	size_t name, end;
	int32_t index;
	bool is_new;

	buf_clear(&o->text);
	if (step->frame)
		code_name(o->profile, step->frame, &o->text);
	buf_printf(&o->text, "\n%s\n", file);
	name = o->text.len;
	/* the kind of code is an attribute, so its suffix is in the name only if the user asked for it */
	buf_add(&o->text, label->text, o->options->style.annotate ? strlen(label->text) : label->name_len);
	index = index_of(o, &o->functions, &is_new);
	if (!is_new)
		return index;
	function.name_strindex = string_of(o, o->text.data + name);
	function.filename_strindex = string_of(o, file);
	end = strcspn(o->text.data, "\n");
	o->text.data[end] = '\0';
	function.system_name_strindex = string_of(o, end ? o->text.data : o->text.data + name);
	add_message(&o->dictionary.tables[TABLE_FUNCTIONS], TABLE_FUNCTIONS, &function.base);
	return index;
}

static uint32_t add_location(struct otlp *o, const struct path_step *step)
{
	const char *type = otlp_frame_type(step->frame);
	Otlp__Location location = OTLP__LOCATION__INIT;
	Otlp__Line line = OTLP__LINE__INIT, *lines = &line;
	int32_t attribute = type ? attribute_of(o, "profile.frame.type", type, 0) : 0;

	line.function_index = function_of(o, step);
	line.line = step->frame && step->frame->line > 0 ? step->frame->line : 0;
	location.mapping_index = step->frame ? mapping_of(o, step->frame) : 0;
	location.n_lines = 1;
	location.lines = &lines;
	location.n_attribute_indices = type != NULL;
	location.attribute_indices = &attribute;
	add_message(&o->dictionary.tables[TABLE_LOCATIONS], TABLE_LOCATIONS, &location.base);
	return ++o->location_count;
}

static uint32_t location_of(struct otlp *o, const struct path_step *step)
{
	uint32_t *known = step->frame ? &o->frame_locations[step->frame - o->profile->frames.items] : NULL;
	uint64_t index;

	if (known && *known)
		return *known;
	if (!known && map_get(&o->mark_locations, step->label, &index))
		return (uint32_t)index;
	index = add_location(o, step);
	if (known)
		*known = (uint32_t)index;
	else if (map_put(&o->mark_locations, step->label, index) < 0)
		o->err = -ENOMEM;
	return (uint32_t)index;
}

/*
 * The stack of o->path. The frames from the root to each one are a chain, and have a number. Stacks share their chains,
 * so that deep ones take no more memory here than the profile does.
 */
static int32_t stack_of(struct otlp *o)
{
	Otlp__Stack stack = OTLP__STACK__INIT;
	uint64_t chain = 0, index = o->stacks.len + 1;

	if (vec_reserve(&o->stack, o->path.depth) < 0) {
		o->err = -ENOMEM;
		return 0;
	}
	for (size_t i = o->path.depth; i-- > 0;) {
		uint32_t location = location_of(o, &o->path.steps.items[i]);
		uint64_t key = chain << 32 | location;

		o->stack.items[i] = (int32_t)location;
		chain = o->chains.len + 1;
		if (!map_get(&o->chains, key, &chain) && map_put(&o->chains, key, chain) < 0)
			o->err = -ENOMEM;
	}
	if (!chain || map_get(&o->stacks, chain, &index))
		return chain ? (int32_t)index : 0;
	stack.n_location_indices = o->path.depth;
	stack.location_indices = o->stack.items;
	add_message(&o->dictionary.tables[TABLE_STACKS], TABLE_STACKS, &stack.base);
	if (map_put(&o->stacks, chain, index) < 0)
		o->err = -ENOMEM;
	return (int32_t)index;
}

static int32_t link_of(struct otlp *o, const struct profile_sample *sample)
{
	uint64_t ids[] = {htobe64(sample->trace_high), htobe64(sample->trace_low), htobe64(sample->span)};
	Otlp__Link link = OTLP__LINK__INIT;
	int32_t index;
	bool is_new;

	if (!trace_is_known(sample))
		return 0;
	buf_clear(&o->text);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		buf_printf(&o->text, "%llx ", (unsigned long long)ids[i]);
	index = index_of(o, &o->links, &is_new);
	link.trace_id = (ProtobufCBinaryData){2 * sizeof(ids[0]), (uint8_t *)ids};
	link.span_id = (ProtobufCBinaryData){sizeof(ids[0]), (uint8_t *)&ids[2]};
	if (is_new)
		add_message(&o->dictionary.tables[TABLE_LINKS], TABLE_LINKS, &link.base);
	return index;
}

/* The CPU that --record-cpu has put before the stack, or -1. */
static int64_t cpu_of(const struct otlp *o)
{
	size_t depth = o->path.depth;
	unsigned int cpu;

	for (size_t i = 0; i < depth && i < LABELS_MAX; i++) {
		const struct frame *frame = o->path.steps.items[depth - 1 - i].frame;

		if (frame && frame->kind == FRAME_CPU &&
		    sscanf(profile_text(o->profile, frame->name), "[CPU-%u]", &cpu) == 1)
			return cpu;
	}
	return -1;
}

/* A text that stays. */
static const char *kept_text(struct otlp *o, const char *text, size_t len)
{
	BUF(copy);

	buf_add(&copy, text, len);
	return intern_text(&o->strings, (uint32_t)string_of(o, copy.data));
}

/* Returns where o->own_attributes has those that the program gave the sample. */
static uint64_t own_attributes(struct otlp *o, const struct profile_sample *sample)
{
	const char *at = profile_text(o->profile, sample->attributes);
	struct attribute own;
	uint64_t place;

	if (map_get(&o->own, sample->attributes, &place))
		return place;
	place = o->own_attributes.len;
	if (map_put(&o->own, sample->attributes, place) < 0 || vec_push(&o->own_attributes, 0) < 0)
		o->err = -ENOMEM;
	for (int i = 0; !o->err && i < ATTRIBUTES_MAX && attributes_next(&at, &own); i++) {
		const char *key = kept_text(o, own.key, own.key_len);

		if (!own.key_len || !own.value_len || text_is_word(key, SAMPLE_KEYS))
			continue;
		if (vec_push(&o->own_attributes, attribute_of(o, key, kept_text(o, own.value, own.value_len), 0)) < 0)
			o->err = -ENOMEM;
		else
			o->own_attributes.items[place]++;
	}
	return place;
}

/* Appends the indices of the sample's attributes. Returns their number. */
static size_t sample_attributes(struct otlp *o, const struct profile_sample *sample, struct indices *to)
{
	const struct profile_thread *thread = &o->profile->threads.items[sample->thread];
	bool is_virtual = thread->tid == PROFILE_VIRTUAL;
	uint64_t id = is_virtual ? profile_virtual_id(o->profile, sample->thread) : thread->tid;
	const char *tag = spans_tag(&o->spans, sample);
	int64_t cpu = cpu_of(o);
	uint64_t own = own_attributes(o, sample);
	size_t own_count = o->err ? 0 : (size_t)o->own_attributes.items[own], count = 0;
	int32_t *ret;

	if (o->err || vec_reserve(to, to->len + own_count + SAMPLE_ATTRIBUTES) < 0) {
		o->err = -ENOMEM;
		return 0;
	}
	ret = to->items + to->len;

	if (cpu >= 0)
		ret[count++] = attribute_of(o, "cpu.logical_number", NULL, cpu);
	if (tag && *tag)
		ret[count++] = attribute_of(o, OTLP_SPAN, tag, 0);
	if (id)
		ret[count++] = attribute_of(o, "thread.id", NULL, (int64_t)id);
	if (sample->count != 1)
		ret[count++] = attribute_of(o, OTLP_SAMPLES, NULL, sample->count);
	if (is_virtual)
		ret[count++] = attribute_of(o, OTLP_VIRTUAL, NULL, 1);
	if (thread->name)
		ret[count++] = attribute_of(o, "thread.name", profile_text(o->profile, thread->name), 0);
	memcpy(ret + count, o->own_attributes.items + own + 1, own_count * sizeof(*ret));
	to->len += count + own_count;
	return count + own_count;
}

/* One value instead of one for each sample. */
static void sum_values(const struct writer_options *options, const struct profile_sample *samples, size_t count,
		       Otlp__Sample *ret)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += options->total ? samples[i].weight : samples[i].count;
	ret->values[0] = (int64_t)(sum < INT64_MAX ? sum : INT64_MAX);
	ret->n_values = 1;
	ret->n_timestamps_unix_nano = 0;
}

/* Fills a sample with those of one thread and stack. Returns false if the filters do not choose it. */
static bool fill_sample(struct otlp *o, const struct profile_sample *samples, size_t count, Otlp__Sample *ret,
			int64_t *values, uint64_t *times, struct indices *attributes)
{
	int wanted = path_make(&o->path, samples->thread, samples->node);

	if (wanted < 0)
		o->err = wanted;
	if (wanted <= 0)
		return false;
	otlp__sample__init(ret);
	ret->stack_index = stack_of(o);
	ret->n_attribute_indices = sample_attributes(o, samples, attributes);
	ret->link_index = link_of(o, samples);
	ret->n_values = count;
	ret->values = values;
	ret->n_timestamps_unix_nano = o->ordered.is_merged ? 0 : count;
	ret->timestamps_unix_nano = times;
	for (size_t i = 0; i < count; i++) {
		values[i] = samples[i].weight < INT64_MAX ? (int64_t)samples[i].weight : INT64_MAX;
		times[i] = o->profile->start_realtime_ns + (samples[i].time_ns - o->profile->start_ns);
	}
	if (o->options->source)
		sum_values(o->options, samples, count, ret);
	return true;
}

/*
 * One message has them: they are of one thread, stack and span, and each stands for one sample. Without times, there is
 * one value.
 */
static bool are_together(const struct otlp *o, const struct profile_sample *a, const struct profile_sample *b)
{
	return !o->ordered.is_merged && a->count == 1 && b->count == 1 && a->thread == b->thread &&
	       a->node == b->node && trace_is_same(a, b) && spans_tag(&o->spans, a) == spans_tag(&o->spans, b);
}

/* What the values of a profile are, and its period. */
struct types {
	Otlp__ValueType samples, period;
};

static void set_types(struct otlp *o, const struct profile_event *event, struct types *ret)
{
	static const char *const short_units[PROFILE_UNIT_MAX] = {"ns", "calls", "bytes"};
	const char *source = o->options->source;
	const char *name = source ? source : profile_text(o->profile, event->name);
	const char *unit = source ? short_units[event->unit] : code_unit(event->unit);

	otlp__value_type__init(&ret->samples);
	ret->samples.type_strindex = string_of(o, name);
	ret->samples.unit_strindex = string_of(o, unit);
	ret->period = ret->samples;
	if (source && !o->options->total)
		ret->samples.unit_strindex = string_of(o, "count");
}

static void describe_profile(struct otlp *o, uint32_t event, Otlp__Profile *ret, struct types *types)
{
	const struct profile_event *row = &o->profile->events.items[event];

	set_types(o, row, types);
	ret->sample_type = &types->samples;
	ret->period_type = &types->period;
	ret->period = (int64_t)row->interval;
	ret->time_unix_nano = o->profile->start_realtime_ns;
	ret->duration_nano = o->profile->end_ns - o->profile->start_ns;
}

/* All times of samples are in the time of their profile, which ends after the last. */
static void cover_times(const struct otlp *o, const struct profile_sample *samples, size_t count, Otlp__Profile *ret)
{
	uint64_t start = o->profile->start_ns, end = o->profile->end_ns;

	for (size_t i = 0; !o->ordered.is_merged && i < count; i++) {
		start = samples[i].time_ns < start ? samples[i].time_ns : start;
		end = samples[i].time_ns >= end ? samples[i].time_ns + 1 : end;
	}
	ret->time_unix_nano -= o->profile->start_ns - start;
	ret->duration_nano = end - start;
}

/* Room for the messages of one profile of a number of samples. */
struct room {
	Otlp__Sample *samples, **pointers;
	struct indices attributes; /* of all samples */
	int64_t *values;
	uint64_t *times;
};

static bool room_open(struct room *room, size_t count)
{
	room->samples = calloc(count, sizeof(*room->samples));
	room->pointers = calloc(count, sizeof(*room->pointers));
	room->attributes = (struct indices){0};
	room->values = calloc(count, sizeof(*room->values));
	room->times = calloc(count, sizeof(*room->times));
	return room->samples && room->pointers && room->values && room->times;
}

static void room_close(struct room *room)
{
	free(room->samples);
	free(room->pointers);
	vec_release(&room->attributes);
	free(room->values);
	free(room->times);
}

static void add_profile(struct otlp *o, struct buf *scope, const struct profile_sample *samples, size_t count)
{
	Otlp__Profile profile = OTLP__PROFILE__INIT;
	struct types types;
	uint8_t id[16];
	struct room room;
	size_t next;

	if (!room_open(&room, count))
		o->err = -ENOMEM;
	profile.samples = room.pointers;
	for (size_t first = 0; !o->err && first < count; first = next) {
		size_t at = profile.n_samples;

		for (next = first + 1; next < count && are_together(o, &samples[first], &samples[next]);)
			next++;
		if (!fill_sample(o, samples + first, next - first, &room.samples[at], room.values + first,
				 room.times + first, &room.attributes))
			continue;
		room.pointers[at] = &room.samples[at];
		profile.n_samples++;
	}
	for (size_t i = 0, at = 0; !o->err && i < profile.n_samples; at += room.samples[i++].n_attribute_indices)
		room.samples[i].attribute_indices = room.attributes.items + at;
	if (!o->err && profile.n_samples) {
		describe_profile(o, samples->event, &profile, &types);
		cover_times(o, samples, count, &profile);
		otlp_profile_id(o->profile, samples, id);
		profile.profile_id = (ProtobufCBinaryData){16, id};
		add_message(scope, SCOPE_PROFILES, &profile.base);
	}
	room_close(&room);
}

static void add_scope(const struct otlp *o, struct buf *to)
{
	const char *version = profile_text(o->profile, o->profile->host.version);
	Otlp__Scope scope = OTLP__SCOPE__INIT;

	scope.name = (char *)"duet";
	scope.version = (char *)version;
	add_message(to, SCOPE_SCOPE, &scope.base);
}

/* In JSON, resources are an array, and the dictionary ends the file. */
static void put_json(struct otlp *o, const struct buf *resource)
{
	ProtobufCMessage *message = protobuf_c_message_unpack(&otlp__resource_profiles__descriptor, NULL, resource->len,
							      (const uint8_t *)resource->data);

	if (!message) {
		o->err = -ENOMEM;
		return;
	}
	if (!o->resources++)
		json_begin(&o->json, "{\"resourceProfiles\":[");
	protobuf_json(&o->json, message);
	protobuf_c_message_free_unpacked(message, NULL);
}

static void put_dictionary(struct otlp *o, FILE *out)
{
	if (!o->is_json) {
		o->err = otlp_dictionary_write(&o->dictionary, DATA_DICTIONARY, out);
		return;
	}
	if (o->resources)
		json_end(&o->json, "]");
	json_begin(&o->json, o->resources ? "\"dictionary\":" : "{\"dictionary\":");
	o->err = otlp_dictionary_write_json(&o->dictionary, &o->json);
	json_end(&o->json, "}\n");
}

static void put_resource(struct otlp *o, FILE *out, struct buf *resource, const struct buf *scope)
{
	add_bytes(resource, RESOURCE_SCOPES, scope->data, scope->len);
	if (scope->failed || resource->failed)
		o->err = -ENOMEM;
	if (o->err)
		return;
	if (o->is_json)
		return put_json(o, resource);
	write_head(out, DATA_RESOURCES, resource->len);
	fwrite(resource->data, 1, resource->len, out);
}

/* The samples are of one process. */
static void put_process(struct otlp *o, const struct profile_sample *samples, size_t count, FILE *out)
{
	BUF(scope);
	BUF(resource);
	size_t next, empty;

	add_scope(o, &scope);
	empty = scope.len;
	for (size_t first = 0; !o->err && first < count; first = next) {
		for (next = first + 1; next < count && samples[next].event == samples[first].event;)
			next++;
		add_profile(o, &scope, samples + first, next - first);
	}
	otlp_add_resource(&resource, RESOURCE_RESOURCE, o->profile, &o->profile->threads.items[samples->thread]);
	if (scope.len > empty || scope.failed)
		put_resource(o, out, &resource, &scope);
}

/* Callers of async-profiler find a profile also when nothing was sampled yet. */
static void put_empty(struct otlp *o, FILE *out)
{
	Otlp__Profile profile = OTLP__PROFILE__INIT;
	BUF(scope);
	BUF(resource);
	struct types types;

	add_scope(o, &scope);
	describe_profile(o, 0, &profile, &types);
	add_message(&scope, SCOPE_PROFILES, &profile.base);
	put_resource(o, out, &resource, &scope);
}

static void put_processes(struct otlp *o, FILE *out)
{
	struct profile_sample *samples = o->ordered.samples.items;
	size_t count = o->ordered.samples.len, next;

	if (count)
		qsort_r(samples, count, sizeof(*samples), otlp_order, (void *)o->profile);
	for (size_t first = 0; !o->err && first < count; first = next) {
		for (next = first + 1; next < count && otlp_same_process(o->profile, &samples[first], &samples[next]);)
			next++;
		put_process(o, samples + first, next - first, out);
	}
	if (!count && !o->err && o->options->source && o->profile->events.len)
		put_empty(o, out);
}

static int otlp_init(struct otlp *o, const struct profile *profile, const struct writer_options *options)
{
	int err;

	otlp_dictionary_init(&o->dictionary);
	buf_init(&o->text);
	o->profile = profile;
	o->options = options;
	o->frame_locations = calloc(profile->frames.len + 1, sizeof(*o->frame_locations));
	if (!o->frame_locations || intern_init(&o->strings) < 0 || intern_init(&o->mappings) < 0 ||
	    intern_init(&o->functions) < 0 || intern_init(&o->attributes) < 0 || intern_init(&o->links) < 0)
		return -ENOMEM;
	err = spans_open(&o->spans, profile);
	return err ? err : path_maker_init(&o->path, NULL, profile, options);
}

static void otlp_release(struct otlp *o)
{
	otlp_dictionary_release(&o->dictionary);
	buf_release(&o->text);
	intern_release(&o->strings);
	intern_release(&o->mappings);
	intern_release(&o->functions);
	intern_release(&o->attributes);
	map_release(&o->kept_attributes);
	map_release(&o->own);
	vec_release(&o->own_attributes);
	map_release(&o->chains);
	map_release(&o->stacks);
	intern_release(&o->links);
	path_maker_release(&o->path);
	spans_release(&o->spans);
	ordered_release(&o->ordered);
	free(o->frame_locations);
	map_release(&o->mark_locations);
	vec_release(&o->stack);
}

static int write_form(const struct profile *profile, const struct writer_options *options, bool is_json, FILE *out)
{
	struct writer_options ours = *options;
	struct otlp *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return -ENOMEM;
	o->is_json = is_json;
	o->json.out = out;
	ours.style.dotted |= !ours.source;
	err = otlp_init(o, profile, &ours);
	if (!err)
		err = ordered_build(&o->ordered, profile);
	if (!err) {
		put_processes(o, out);
		if (!o->err)
			put_dictionary(o, out);
		err = o->err;
	}
	otlp_release(o);
	free(o);
	return err ? err : writer_finish(out);
}

static int otlp_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	return write_form(profile, options, false, out);
}

static int otlp_json_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	return write_form(profile, options, true, out);
}

const struct writer writer_otlp = {
	.name = "otlp",
	.extensions = "otlp",
	.help = "profiles of OpenTelemetry (OTLP, v1development)",
	.lacks = "bytecode indexes, losses and facts",
	.has_all_events = true,
	.merges = true,
	.write = otlp_write,
};

const struct writer writer_otlp_json = {
	.name = "otlp-json",
	.extensions = "otlp.json",
	.help = "the same as JSON",
	.lacks = "bytecode indexes, losses and facts",
	.has_all_events = true,
	.merges = true,
	.write = otlp_json_write,
};
