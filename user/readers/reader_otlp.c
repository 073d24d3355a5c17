/* SPDX-License-Identifier: MIT */
/*
 * OTLP profiles of duet, the OpenTelemetry Collector and others, binary or JSON, compressed or not. The dictionary has
 * the tables of a pprof file, and is read into the same ones. It may be anywhere in the file: it is read first. Then
 * each resource is a process, and each of its profiles one event. Fields that are not in profile/otlp.proto are
 * skipped.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "otlp.pb-c.h"
#include "profile/attributes.h"
#include "profile/pprof.h"
#include "readers/otlp_json.h"
#include "readers/pprof_tables.h"
#include "readers/reader.h"

#define MESSAGE_MAX ((size_t)64 << 20) /* of a sample with its times; of others, see pprof_unpack() */
#define TIME_MAX ((uint64_t)INT64_MAX)
#define NONE UINT32_MAX

enum { PROFILE_TYPE = 1, PROFILE_SAMPLES = 2, PROFILE_TIME = 3, PROFILE_DURATION = 4, PROFILE_PERIOD = 6 };

struct otlp_attribute {
	int32_t key, string; /* strings; `string` is the text if it is not 0 */
	struct pprof_text text;
	uint32_t id; /* of the text, in the profile; NONE: not known yet */
	int64_t number;
};

struct stack {
	struct wire_field message;
	uint32_t node; /* NONE: not made yet */
};

struct otlp {
	struct pprof_file tables; /* tables.file is the contents */
	struct vec(struct otlp_attribute) attributes;
	struct vec(struct stack) stacks;
	struct vec(struct profile_sample) links; /* trace and span alone */
	struct vec(uint64_t) locations; /* of one stack */
	int64_t kernel, java; /* strings with the names of mappings that pprof has for this code */
	struct profile_owner owner; /* of the resource */
	uint32_t process; /* its name */
	struct pprof_value value; /* of the profile */
	uint64_t time_ns;
	uint64_t start_ns, end_ns; /* of all profiles; 0 = none yet */
};

typedef int (*visitor)(struct otlp *o, const struct wire_field *field);

/* Visits the fields of a message until the visitor returns an error. */
static int each(struct otlp *o, const unsigned char *bytes, size_t len, visitor visit)
{
	struct wire wire = {.bytes = bytes, .len = len};
	struct wire_field field;
	int got, err = 0;

	while (!err && (got = wire_next(&wire, &field)) > 0)
		err = visit(o, &field);
	if (!err && got < 0)
		err = -EINVAL;
	if (err == -EINVAL)
		return pprof_refuse(&o->tables, "the message before byte %zu of the contents is damaged",
				    (size_t)(bytes + wire.at - o->tables.file.bytes));
	return err;
}

static int each_of(struct otlp *o, const struct wire_field *field, visitor visit)
{
	return field->type == WIRE_BYTES ? each(o, field->bytes, field->len, visit) : -EINVAL;
}

/* ---- dictionary ---- */

static int add_string(struct otlp *o, const struct wire_field *field)
{
	if (field->number != TABLE_STRINGS)
		return 0;
	if (field->type != WIRE_BYTES)
		return -EINVAL;
	return pprof_add_string(&o->tables, (struct pprof_text){field->bytes, field->len});
}

/* Where the value's text is in the contents: messages are dropped after they were read. */
static void find_value(const struct wire_field *field, struct otlp_attribute *ret)
{
	struct wire pair = {.bytes = field->bytes, .len = field->len}, value;
	struct wire_field part, inner;

	while (wire_next(&pair, &part) > 0) {
		if (part.number == 1 && part.type == WIRE_VARINT)
			ret->key = (int32_t)part.value;
		if (part.number != 2 || part.type != WIRE_BYTES)
			continue;
		value = (struct wire){.bytes = part.bytes, .len = part.len};
		while (wire_next(&value, &inner) > 0) {
			if (inner.number == 1 && inner.type == WIRE_BYTES)
				ret->text = (struct pprof_text){inner.bytes, inner.len};
			if (inner.number == 3 && inner.type == WIRE_VARINT)
				ret->number = (int64_t)inner.value;
			if (inner.number == 8 && inner.type == WIRE_VARINT)
				ret->string = (int32_t)inner.value;
		}
	}
}

static int add_attribute(struct otlp *o, const struct wire_field *field)
{
	struct otlp_attribute attribute = {.id = NONE};

	if (field->type != WIRE_BYTES || pprof_has_room(&o->tables, o->attributes.len))
		return -EINVAL;
	find_value(field, &attribute);
	if (!pprof_has_strings(&o->tables, (int64_t[]){attribute.key, attribute.string}, 2))
		return pprof_refuse(&o->tables, "an attribute refers to a string that the file does not have");
	if (attribute.string)
		attribute.text = pprof_text(&o->tables, attribute.string);
	return vec_push(&o->attributes, attribute);
}

static int add_mapping(struct otlp *o, const struct wire_field *field)
{
	PPROF_OWNED Otlp__Mapping *mapping = pprof_unpack(&o->tables, field, &otlp__mapping__descriptor);
	Pprof__Mapping row = PPROF__MAPPING__INIT;

	if (!mapping)
		return -EINVAL;
	row.id = o->tables.mappings.len, row.file = mapping->filename_strindex;
	row.start = mapping->memory_start, row.end = mapping->memory_limit, row.file_offset = mapping->file_offset;
	return pprof_add_mapping(&o->tables, &row);
}

static int add_function(struct otlp *o, const struct wire_field *field)
{
	PPROF_OWNED Otlp__Function *message = pprof_unpack(&o->tables, field, &otlp__function__descriptor);
	Pprof__Function function = PPROF__FUNCTION__INIT;

	if (!message)
		return -EINVAL;
	function.id = o->tables.functions.len;
	function.name = message->name_strindex;
	function.system_name = message->system_name_strindex;
	function.file = message->filename_strindex;
	return pprof_add_function(&o->tables, &function);
}

static int add_stack(struct otlp *o, const struct wire_field *field)
{
	if (field->type != WIRE_BYTES || pprof_has_room(&o->tables, o->stacks.len))
		return -EINVAL;
	return vec_push(&o->stacks, (struct stack){*field, NONE});
}

static uint64_t number_of(const uint8_t *bytes)
{
	uint64_t number;

	memcpy(&number, bytes, sizeof(number));
	return be64toh(number);
}

/* Ids of another length are none. */
static int add_link(struct otlp *o, const struct wire_field *field)
{
	PPROF_OWNED Otlp__Link *message = pprof_unpack(&o->tables, field, &otlp__link__descriptor);
	struct profile_sample link = {0};

	if (!message || pprof_has_room(&o->tables, o->links.len))
		return -EINVAL;
	if (message->trace_id.len == 16) {
		link.trace_high = number_of(message->trace_id.data);
		link.trace_low = number_of(message->trace_id.data + 8);
	}
	if (message->span_id.len == 8)
		link.span = number_of(message->span_id.data);
	return vec_push(&o->links, link);
}

static int add_table(struct otlp *o, const struct wire_field *field)
{
	if (pprof_has_room(&o->tables, o->tables.mappings.len) || pprof_has_room(&o->tables, o->tables.functions.len))
		return -EINVAL;
	switch (field->number) {
	case TABLE_MAPPINGS:
		return add_mapping(o, field);
	case TABLE_FUNCTIONS:
		return add_function(o, field);
	case TABLE_LINKS:
		return add_link(o, field);
	case TABLE_ATTRIBUTES:
		return add_attribute(o, field);
	case TABLE_STACKS:
		return add_stack(o, field);
	}
	return 0;
}

static bool is_key(const struct otlp *o, const struct otlp_attribute *attribute, const char *key)
{
	return pprof_is_text(&o->tables, attribute->key, key);
}

/* The attribute at an index of the table; NULL: there is none. */
static struct otlp_attribute *attribute_at(const struct otlp *o, int32_t index)
{
	return index > 0 && (size_t)index < o->attributes.len ? &o->attributes.items[index] : NULL;
}

/* Other programs have no file for the code of the kernel and of a JVM. They show the type of the frame instead. */
static uint64_t mapping_of(const struct otlp *o, const Otlp__Location *location)
{
	const struct pprof_file *p = &o->tables;
	bool has_file = location->mapping_index > 0 && (size_t)location->mapping_index < p->mappings.len - 2 &&
			pprof_text(p, p->mappings.items[location->mapping_index].file).len;

	for (size_t i = 0; !has_file && i < location->n_attribute_indices; i++) {
		const struct otlp_attribute *attribute = attribute_at(o, location->attribute_indices[i]);

		if (!attribute || !is_key(o, attribute, "profile.frame.type"))
			continue;
		if (pprof_text_is(attribute->text, "kernel"))
			return p->mappings.len - 2;
		if (pprof_text_is(attribute->text, "jvm"))
			return p->mappings.len - 1;
	}
	return location->mapping_index > 0 ? (uint64_t)location->mapping_index : 0;
}

static int convert_lines(struct otlp *o, const Otlp__Location *from, Pprof__Location *to)
{
	Pprof__Line *lines = calloc(from->n_lines + 1, sizeof(*lines));
	Pprof__Line **pointers = calloc(from->n_lines + 1, sizeof(*pointers));
	int err = lines && pointers ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < from->n_lines; i++) {
		pprof__line__init(&lines[i]);
		lines[i].function = (uint64_t)from->lines[i]->function_index;
		lines[i].line = from->lines[i]->line;
		pointers[i] = &lines[i];
	}
	to->n_lines = from->n_lines;
	to->lines = pointers;
	if (!err)
		err = pprof_add_location(&o->tables, to);
	free(lines);
	free(pointers);
	return err;
}

static int add_location(struct otlp *o, const struct wire_field *field)
{
	PPROF_OWNED Otlp__Location *message = NULL;
	Pprof__Location location = PPROF__LOCATION__INIT;

	if (field->number != TABLE_LOCATIONS)
		return 0;
	message = pprof_unpack(&o->tables, field, &otlp__location__descriptor);
	if (!message)
		return -EINVAL;
	location.id = o->tables.places.len;
	location.mapping = mapping_of(o, message);
	location.address = message->address;
	return convert_lines(o, message, &location);
}

static int add_known_mappings(struct otlp *o)
{
	static const char *const names[] = {"[kernel]", "[compiled]"};
	int err = 0;

	for (size_t i = 0; !err && i < 2; i++) {
		const struct pprof_text text = {(const unsigned char *)names[i], strlen(names[i])};
		Pprof__Mapping row = PPROF__MAPPING__INIT;

		err = pprof_add_string(&o->tables, text);
		row.id = o->tables.mappings.len;
		row.file = (int64_t)o->tables.strings.len - 1;
		if (!err)
			err = pprof_add_mapping(&o->tables, &row);
	}
	return err;
}

static int read_dictionary(struct otlp *o, const struct wire_field *field)
{
	int err;

	if (field->number != DATA_DICTIONARY)
		return 0;
	if (o->tables.strings.len)
		return pprof_refuse(&o->tables, "the file has two dictionaries");
	err = each_of(o, field, add_string);
	if (!err)
		err = each_of(o, field, add_table);
	if (!err)
		err = add_known_mappings(o);
	return err ? err : each_of(o, field, add_location);
}

/* ---- stacks and threads ---- */

static int push_locations(struct otlp *o, const struct wire_field *field)
{
	struct wire packed = {.bytes = field->bytes, .len = field->len};
	uint64_t index;
	int got = 0, err = 0;

	if (field->number != 1)
		return 0;
	if (field->type == WIRE_VARINT)
		return vec_push(&o->locations, field->value);
	if (field->type != WIRE_BYTES)
		return -EINVAL;
	while (!err && (got = wire_varint(&packed, &index)) > 0)
		err = index ? vec_push(&o->locations, index) : 0;
	return err ? err : got;
}

static int find_stack(struct otlp *o, int32_t index, uint32_t *ret_node)
{
	struct stack *stack;
	int err = 0;

	*ret_node = 0;
	if (!index)
		return 0;
	if (index < 0 || (size_t)index >= o->stacks.len)
		return pprof_refuse(&o->tables, "a sample refers to stack %d, which the file does not have", index);
	stack = &o->stacks.items[index];
	if (stack->node == NONE) {
		vec_clear(&o->locations);
		err = each_of(o, &stack->message, push_locations);
		if (!err)
			err = pprof_stack(&o->tables, o->locations.items, o->locations.len, &stack->node);
	}
	*ret_node = stack->node;
	return err;
}

static uint32_t text_of(struct otlp *o, struct otlp_attribute *attribute)
{
	if (attribute->id == NONE)
		attribute->id = intern_bytes(&o->tables.profile->strings, (const char *)attribute->text.bytes,
					     attribute->text.len);
	return attribute->id;
}

static void add_other(const struct otlp *o, const struct otlp_attribute *attribute, struct buf *others)
{
	struct pprof_text key = pprof_text(&o->tables, attribute->key);

	attributes_add(others, key.bytes, key.len, attribute->text.bytes, attribute->text.len);
}

/* Also sets the attributes. *ret_count: number of samples in each value; 0 = the file does not say it. */
static int find_thread(struct otlp *o, const Otlp__Sample *sample, struct profile_sample *ret, uint64_t *ret_count)
{
	struct profile *profile = o->tables.profile;
	struct profile_thread row = {.process = o->process};
	bool is_virtual = false;
	uint64_t id = 0;
	BUF(others);

	for (size_t i = 0; i < sample->n_attribute_indices; i++) {
		struct otlp_attribute *attribute = attribute_at(o, sample->attribute_indices[i]);

		if (!attribute)
			continue;
		if (is_key(o, attribute, "thread.name"))
			row.name = text_of(o, attribute);
		else if (is_key(o, attribute, "thread.id"))
			id = (uint64_t)attribute->number;
		else if (is_key(o, attribute, "process.pid"))
			o->owner.pid = (uint32_t)attribute->number;
		else if (is_key(o, attribute, "process.executable.name"))
			row.process = text_of(o, attribute);
		else if (is_key(o, attribute, OTLP_VIRTUAL))
			is_virtual = true;
		else if (is_key(o, attribute, OTLP_SAMPLES))
			*ret_count = (uint64_t)attribute->number;
		else if (attribute->text.len && !is_key(o, attribute, OTLP_SPAN))
			add_other(o, attribute, &others);
	}
	row.pid = o->owner.pid;
	row.tid = (uint32_t)id;
	row.owner = o->owner.pid || o->owner.container ? profile_owner(profile, &o->owner) : 0;
	ret->attributes = intern_bytes(&profile->strings, others.data, others.len);
	ret->thread = pprof_thread(&o->tables, row, is_virtual ? &id : NULL);
	return ret->thread == NONE ? -ENOMEM : 0;
}

/* ---- samples ---- */

/* Number of samples in a value without a time: by the period, or one. */
static uint64_t count_of(const struct otlp *o, uint64_t weight)
{
	const struct profile_event *event = &o->tables.profile->events.items[o->value.event];

	if (event->unit == PROFILE_COUNT && !event->interval)
		return weight;
	return event->interval && weight > event->interval ? weight / event->interval : 1;
}

/* `time_ns`, `count`: 0 = not known. */
static int add_value(struct otlp *o, struct profile_sample sample, int64_t value, uint64_t time_ns, uint64_t count)
{
	sample.weight = (uint64_t)value * o->value.scale;
	sample.time_ns = time_ns && time_ns < TIME_MAX ? time_ns : o->time_ns;
	if (value < 0)
		return pprof_refuse(&o->tables, "a sample has a negative value");
	if (!count)
		count = time_ns ? 1 : count_of(o, sample.weight);
	if ((uint64_t)value > PROFILE_COUNT_MAX / o->value.scale)
		return pprof_refuse(&o->tables, "the values of the samples are too large");
	return reader_add(o->tables.profile, sample, count);
}

static int add_sample(struct otlp *o, const Otlp__Sample *message)
{
	bool has_link = message->link_index > 0 && (size_t)message->link_index < o->links.len;
	struct profile_sample sample = has_link ? o->links.items[message->link_index] : (struct profile_sample){0};
	size_t times = message->n_timestamps_unix_nano, values = message->n_values;
	uint64_t count = 0;
	int err = find_stack(o, message->stack_index, &sample.node);

	sample.event = o->value.event;
	if (!err)
		err = find_thread(o, message, &sample, &count);
	if (!err && values && times && values != times)
		err = pprof_refuse(&o->tables, "a sample has %zu values and %zu times", values, times);
	for (size_t i = 0; !err && i < (values ? values : times); i++)
		err = add_value(o, sample, values ? message->values[i] : 1,
				times ? message->timestamps_unix_nano[i] : 0, count);
	return err;
}

static int read_sample(struct otlp *o, const struct wire_field *field)
{
	PPROF_OWNED Otlp__Sample *sample = NULL;

	if (field->number != PROFILE_SAMPLES)
		return 0;
	if (field->type != WIRE_BYTES || field->len > MESSAGE_MAX || pprof_has_room(&o->tables, o->tables.samples++))
		return -EINVAL;
	sample = (Otlp__Sample *)protobuf_c_message_unpack(&otlp__sample__descriptor, NULL, field->len, field->bytes);
	return sample ? add_sample(o, sample) : -EINVAL;
}

/* ---- profiles ---- */

struct head {
	Otlp__ValueType *type;
	uint64_t time_ns, duration_ns, period;
};

static int read_head(struct otlp *o, const struct wire_field *profile, struct head *head)
{
	struct wire wire = {.bytes = profile->bytes, .len = profile->len};
	struct wire_field field;
	int got;

	while ((got = wire_next(&wire, &field)) > 0) {
		if (field.number == PROFILE_TYPE && !head->type)
			head->type = pprof_unpack(&o->tables, &field, &otlp__value_type__descriptor);
		else if (field.number == PROFILE_TIME)
			head->time_ns = field.value;
		else if (field.number == PROFILE_DURATION)
			head->duration_ns = field.value;
		else if (field.number == PROFILE_PERIOD)
			head->period = field.value;
	}
	return got < 0 ? -EINVAL : 0;
}

static int make_event(struct otlp *o, const struct head *head)
{
	struct pprof_file *p = &o->tables;

	o->value = (struct pprof_value){.scale = 1};
	if (head->type)
		o->value = (struct pprof_value){
			.type = head->type->type_strindex, .unit = head->type->unit_strindex, .scale = 1};
	if (!pprof_has_strings(p, (int64_t[]){o->value.type, o->value.unit}, 2))
		return pprof_refuse(p, "a value type refers to a string that the file does not have");
	o->value.event = pprof_event(p, &o->value, head->period < TIME_MAX ? head->period : 0);
	return o->value.event == NONE ? -ENOMEM : 0;
}

static void set_times(struct otlp *o, const struct head *head)
{
	uint64_t start = head->time_ns < TIME_MAX / 2 ? head->time_ns : TIME_MAX / 2;
	uint64_t end = start + (head->duration_ns < TIME_MAX / 2 ? head->duration_ns : TIME_MAX / 2);

	o->time_ns = start;
	if (!o->start_ns || start < o->start_ns)
		o->start_ns = start;
	if (end > o->end_ns)
		o->end_ns = end;
}

static int read_profile(struct otlp *o, const struct wire_field *field)
{
	struct head head = {0};
	int err;

	if (field->number != SCOPE_PROFILES)
		return 0;
	if (field->type != WIRE_BYTES)
		return -EINVAL;
	err = read_head(o, field, &head);
	if (!err)
		err = make_event(o, &head);
	pprof_drop(&head.type);
	if (err)
		return err;
	set_times(o, &head);
	return each_of(o, field, read_sample);
}

static int read_scope(struct otlp *o, const struct wire_field *field)
{
	return field->number == RESOURCE_SCOPES ? each_of(o, field, read_profile) : 0;
}

/* Sets the text of an attribute's value; no bytes: it has none. */
static struct pprof_text value_text(const struct otlp *o, const Otlp__AnyValue *value)
{
	const char *text;

	if (value->value_case == OTLP__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX &&
	    pprof_has_strings(&o->tables, (int64_t[]){value->string_value_strindex}, 1))
		return pprof_text(&o->tables, value->string_value_strindex);
	text = value->value_case == OTLP__ANY_VALUE__VALUE_STRING_VALUE ? value->string_value : NULL;
	return (struct pprof_text){(const unsigned char *)text, text ? strlen(text) : 0};
}

static bool has_key(const struct otlp *o, const Otlp__KeyValue *pair, const char *key)
{
	return pair->key_strindex ? pprof_has_strings(&o->tables, (int64_t[]){pair->key_strindex}, 1) &&
					    pprof_is_text(&o->tables, pair->key_strindex, key)
				  : !strcmp(pair->key, key);
}

static void set_attribute(struct otlp *o, const Otlp__KeyValue *pair)
{
	const struct {
		const char *key;
		uint32_t *to;
	} texts[] = {
		{"process.executable.name", &o->process},
		{"process.executable.path", &o->owner.executable},
		{"process.runtime.description", &o->owner.runtime},
		{"process.linux.cgroup", &o->owner.cgroup},
		{"container.id", &o->owner.container_id},
		{"container.name", &o->owner.container_name},
		{"container.runtime", &o->owner.container_kind},
		{"k8s.pod.name", &o->owner.pod},
		{"k8s.namespace.name", &o->owner.pod_namespace},
		{"k8s.pod.uid", &o->owner.pod_uid},
		{OTLP_CONTAINER, &o->owner.container},
	};
	const Otlp__AnyValue *value = pair->value;
	struct pprof_text text;

	if (!value)
		return;
	if (value->value_case == OTLP__ANY_VALUE__VALUE_INT_VALUE && has_key(o, pair, "process.pid"))
		o->owner.pid = (uint32_t)value->int_value;
	text = value_text(o, value);
	for (size_t i = 0; text.bytes && i < sizeof(texts) / sizeof(*texts); i++)
		if (has_key(o, pair, texts[i].key))
			*texts[i].to = intern_bytes(&o->tables.profile->strings, (const char *)text.bytes,
						    text.len < PPROF_LABEL_MAX ? text.len : PPROF_LABEL_MAX);
}

static int read_attributes(struct otlp *o, const struct wire_field *field)
{
	PPROF_OWNED Otlp__Resource *resource = NULL;

	if (field->number != RESOURCE_RESOURCE)
		return 0;
	resource = pprof_unpack(&o->tables, field, &otlp__resource__descriptor);
	if (!resource)
		return -EINVAL;
	for (size_t i = 0; i < resource->n_attributes; i++)
		set_attribute(o, resource->attributes[i]);
	if (!o->owner.container)
		o->owner.container = o->owner.container_name;
	return 0;
}

static int read_resource(struct otlp *o, const struct wire_field *field)
{
	int err;

	if (field->number != DATA_RESOURCES)
		return 0;
	o->owner = (struct profile_owner){0};
	o->process = 0;
	err = each_of(o, field, read_attributes);
	return err ? err : each_of(o, field, read_scope);
}

/* ---- the file ---- */

static int read_contents(struct otlp *o)
{
	const struct wire *file = &o->tables.file;
	int err = each(o, file->bytes, file->len, read_dictionary);

	if (!err && !o->tables.strings.len)
		err = pprof_refuse(&o->tables, "the file has no dictionary: it is no OTLP profile of this version");
	if (!err)
		err = each(o, file->bytes, file->len, read_resource);
	o->tables.profile->start_ns = o->tables.profile->start_realtime_ns = o->start_ns;
	o->tables.profile->end_ns = o->end_ns;
	return err;
}

static int otlp_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct otlp o = {.tables = {.profile = profile, .why = why}};
	BUF(contents);
	int err = reader_contents(source, PPROF_CONTENTS_MAX, &contents, why);

	if (!err && contents.len && contents.data[0] == '{')
		err = otlp_from_json(&contents, why);
	o.tables.rows_max = PPROF_ROWS_FREE + reader_stored_bytes(source);
	o.tables.file = (struct wire){.bytes = (const unsigned char *)contents.data, .len = contents.len};
	if (!err)
		err = read_contents(&o);
	pprof_file_release(&o.tables);
	vec_release(&o.attributes);
	vec_release(&o.stacks);
	vec_release(&o.links);
	vec_release(&o.locations);
	return err;
}

static bool is_json(const unsigned char *start, size_t len)
{
	return len && start[0] == '{' &&
	       (memmem(start, len, "\"resourceProfiles\"", 18) || memmem(start, len, "\"resource_profiles\"", 19));
}

/* It begins with a resource, which has attributes or scopes. In their place a pprof file has numbers. */
static bool otlp_claims(const unsigned char *start, size_t len)
{
	struct wire wire = {.bytes = start, .len = len};
	uint64_t tag, size;

	if (is_json(start, len))
		return true;
	if (reader_is_text(start, len))
		return false;
	return wire_varint(&wire, &tag) > 0 && tag == (DATA_RESOURCES << 3 | WIRE_BYTES) &&
	       wire_varint(&wire, &size) > 0 && size > 3 && wire.at < wire.len &&
	       (wire.bytes[wire.at] == (RESOURCE_RESOURCE << 3 | WIRE_BYTES) ||
		wire.bytes[wire.at] == (RESOURCE_SCOPES << 3 | WIRE_BYTES));
}

const struct reader reader_otlp = {
	.name = "otlp",
	.help = "profiles of OpenTelemetry, of duet and others, binary or JSON, compressed or not",
	.claims = otlp_claims,
	.read = otlp_read,
};
