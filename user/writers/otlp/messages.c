/* SPDX-License-Identifier: MIT */
#include "writers/otlp/messages.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "profile/attributes.h"

void otlp_dictionary_init(struct otlp_dictionary *dictionary)
{
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++) {
		buf_init(&dictionary->tables[table]);
		add_bytes(&dictionary->tables[table], table, "", 0);
	}
}

void otlp_dictionary_release(struct otlp_dictionary *dictionary)
{
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		buf_release(&dictionary->tables[table]);
}

static bool is_whole(const struct otlp_dictionary *dictionary)
{
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		if (dictionary->tables[table].failed)
			return false;
	return true;
}

int otlp_dictionary_write(const struct otlp_dictionary *dictionary, unsigned int field, FILE *out)
{
	uint64_t bytes = 0;

	if (!is_whole(dictionary))
		return -ENOMEM;
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		bytes += dictionary->tables[table].len;
	write_head(out, field, bytes);
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		fwrite(dictionary->tables[table].data, 1, dictionary->tables[table].len, out);
	return 0;
}

int otlp_dictionary_write_json(const struct otlp_dictionary *dictionary, struct json *json)
{
	int err = is_whole(dictionary) ? 0 : -ENOMEM;

	json_begin(json, "{");
	for (unsigned int table = TABLE_MAPPINGS; !err && table <= TABLE_STACKS; table++) {
		const struct buf *packed = &dictionary->tables[table];

		err = protobuf_json_elements(json, &otlp__dictionary__descriptor, table, packed->data, packed->len);
	}
	json_end(json, "}");
	return err;
}

void otlp_set_value(Otlp__AnyValue *value, const char *text, uint64_t number)
{
	if (text) {
		value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value->string_value = (char *)text;
	} else {
		value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = (int64_t)number;
	}
}

/* "stack_index" is stackIndex in JSON. */
static void begin_member(struct json *json, const char *name)
{
	json_begin(json, "\"");
	for (; *name; name++) {
		bool is_next = *name == '_' && name[1];

		name += is_next;
		fputc(is_next ? toupper((unsigned char)*name) : *name, json->out);
	}
	json_begin(json, "\":");
}

static void put_hexadecimal(struct json *json, const ProtobufCBinaryData *data)
{
	json_begin(json, "\"");
	for (size_t i = 0; i < data->len; i++)
		fprintf(json->out, "%02x", data->data[i]);
	json_end(json, "\"");
}

static size_t value_bytes(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
		return sizeof(int32_t);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return sizeof(uint64_t);
	}
}

static void put_value(struct json *json, ProtobufCType type, const void *at)
{
	const char *text;

	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
		json_put(json, "%" PRId32, *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_INT64:
		json_put(json, "\"%" PRId64 "\"", *(const int64_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		json_put(json, "\"%" PRIu64 "\"", *(const uint64_t *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		text = *(const char *const *)at;
		json_text(json, text, strlen(text));
		break;
	case PROTOBUF_C_TYPE_BYTES:
		put_hexadecimal(json, at);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		protobuf_json(json, *(const ProtobufCMessage *const *)at);
		break;
	default: /* no message of duet has another */
		json_put(json, "null");
	}
}

/* A number of 0, and a text or message that is not there, are left out. */
static bool is_absent(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const char *base = (const char *)message, *at = base + field->offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return !*(const size_t *)(base + field->quantifier_offset);
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)(base + field->quantifier_offset) != field->id;
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return !*(const char *const *)at || !**(const char *const *)at;
	case PROTOBUF_C_TYPE_MESSAGE:
		return !*(const void *const *)at;
	case PROTOBUF_C_TYPE_BYTES:
		return !((const ProtobufCBinaryData *)at)->len;
	case PROTOBUF_C_TYPE_INT32:
		return !*(const int32_t *)at;
	default:
		return !*(const uint64_t *)at;
	}
}

static void put_field(struct json *json, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const char *base = (const char *)message, *at = base + field->offset;
	size_t count;

	begin_member(json, field->name);
	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return put_value(json, field->type, at);
	count = *(const size_t *)(base + field->quantifier_offset);
	at = *(const char *const *)at;
	json_begin(json, "[");
	for (size_t i = 0; i < count; i++)
		put_value(json, field->type, at + i * value_bytes(field->type));
	json_end(json, "]");
}

void protobuf_json(struct json *json, const ProtobufCMessage *message)
{
	json_begin(json, "{");
	for (unsigned i = 0; i < message->descriptor->n_fields; i++)
		if (!is_absent(message, &message->descriptor->fields[i]))
			put_field(json, message, &message->descriptor->fields[i]);
	json_end(json, "}");
}

static uint64_t take_number(const uint8_t **at, const uint8_t *end)
{
	uint64_t value;

	*at += varint_get(*at, (size_t)(end - *at), &value);
	return value;
}

static int put_element(struct json *json, const ProtobufCFieldDescriptor *field, const uint8_t *bytes, size_t len)
{
	ProtobufCMessage *message;

	if (field->type == PROTOBUF_C_TYPE_STRING) {
		json_text(json, (const char *)bytes, len);
		return 0;
	}
	message = protobuf_c_message_unpack(field->descriptor, NULL, len, bytes);
	if (!message)
		return -ENOMEM;
	protobuf_json(json, message);
	protobuf_c_message_free_unpacked(message, NULL);
	return 0;
}

int protobuf_json_elements(struct json *json, const ProtobufCMessageDescriptor *type, unsigned int number,
			   const char *bytes, size_t len)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, number);
	const uint8_t *at = (const uint8_t *)bytes, *end = at + len;
	int err = 0;

	begin_member(json, field->name);
	json_begin(json, "[");
	while (!err && at < end) {
		uint64_t element;

		(void)take_number(&at, end); /* of the field */
		element = take_number(&at, end);
		err = element <= (uint64_t)(end - at) ? put_element(json, field, at, element) : -ENOMEM;
		at += element;
	}
	json_end(json, "]");
	return err;
}

#define OWN_ATTRIBUTES 20
#define RESOURCE_ATTRIBUTES (OWN_ATTRIBUTES + ATTRIBUTES_MAX)

struct resource {
	Otlp__KeyValue items[RESOURCE_ATTRIBUTES], *pointers[RESOURCE_ATTRIBUTES];
	Otlp__AnyValue values[RESOURCE_ATTRIBUTES];
	struct buf texts[RESOURCE_ATTRIBUTES];
	size_t count;
	const char *published; /* by the program itself, which knows best */
	struct buf keys[ATTRIBUTES_MAX]; /* of these */
	size_t key_count;
};

static Otlp__AnyValue *add_attribute(struct resource *resource, const char *key)
{
	size_t at = resource->count++;

	otlp__key_value__init(&resource->items[at]);
	otlp__any_value__init(&resource->values[at]);
	resource->items[at].key = (char *)key;
	resource->items[at].value = &resource->values[at];
	resource->pointers[at] = &resource->items[at];
	return &resource->values[at];
}

static void add_text(struct resource *resource, const char *key, const char *text)
{
	struct buf *clean = &resource->texts[resource->count];
	struct attribute published;

	if (!*text || attributes_find(resource->published, key, &published))
		return;
	buf_init(clean);
	text_add_line(clean, text);
	otlp_set_value(add_attribute(resource, key), clean->data, 0);
}

static void add_published(struct resource *resource)
{
	const char *at = resource->published;
	struct attribute published;

	resource->published = "";
	while (resource->key_count < ATTRIBUTES_MAX && attributes_next(&at, &published)) {
		struct buf *key = &resource->keys[resource->key_count++];
		BUF(value);

		buf_init(key);
		buf_add(key, published.key, published.key_len);
		buf_add(&value, published.value, published.value_len);
		add_text(resource, key->data, value.data);
	}
}

/* The name of an architecture in the semantic conventions. */
static const char *arch_name(const char *machine)
{
	if (!strcmp(machine, "x86_64"))
		return "amd64";
	return strcmp(machine, "aarch64") ? machine : "arm64";
}

static void describe_process(const struct profile *profile, const struct profile_thread *thread,
			     struct resource *resource)
{
	const struct profile_owner *owner = &profile->owners.items[thread->owner];
	const struct {
		const char *key;
		uint32_t text;
	} texts[] = {
		{"process.executable.name", thread->process},
		{"process.executable.path", owner->executable},
		{"process.runtime.description", owner->runtime},
		{"process.linux.cgroup", owner->cgroup},
		{"container.id", owner->container_id},
		{"container.name", owner->container_name},
		{"container.runtime", owner->container_kind},
		{"k8s.pod.name", owner->pod},
		{"k8s.namespace.name", owner->pod_namespace},
		{OTLP_CONTAINER, owner->container},
		{"k8s.pod.uid", owner->pod_uid},
	};
	const char *application = profile_text(profile, owner->application);

	add_text(resource, "service.name", *application ? application : profile_text(profile, thread->process));
	if (thread->pid)
		otlp_set_value(add_attribute(resource, "process.pid"), NULL, thread->pid);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		add_text(resource, texts[i].key, profile_text(profile, texts[i].text));
}

static void describe_host(const struct profile *profile, struct resource *resource)
{
	const struct profile_host *host = &profile->host;

	add_text(resource, "host.name", profile_text(profile, host->name));
	add_text(resource, "host.arch", arch_name(profile_text(profile, host->machine)));
	add_text(resource, "os.type", "linux");
	add_text(resource, "os.name", profile_text(profile, host->os_name));
	add_text(resource, "os.version", profile_text(profile, host->os_release));
}

void otlp_add_resource(struct buf *to, unsigned int field, const struct profile *profile,
		       const struct profile_thread *thread)
{
	Otlp__Resource message = OTLP__RESOURCE__INIT;
	const struct profile_owner *owner = &profile->owners.items[thread->owner];
	struct resource resource = {.published = profile_text(profile, owner->attributes)};

	describe_process(profile, thread, &resource);
	describe_host(profile, &resource);
	add_published(&resource);
	message.n_attributes = resource.count;
	message.attributes = resource.pointers;
	add_message(to, field, &message.base);
	for (size_t i = 0; i < resource.count; i++) {
		to->failed |= resource.texts[i].failed;
		buf_release(&resource.texts[i]);
	}
	for (size_t i = 0; i < resource.key_count; i++)
		buf_release(&resource.keys[i]);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = hash_u64(hash + (unsigned char)*text + 1);
	return hash;
}

void otlp_profile_id(const struct profile *profile, const struct profile_sample *sample, uint8_t ret[16])
{
	const struct profile_thread *thread = &profile->threads.items[sample->thread];
	const uint64_t of[] = {profile->start_realtime_ns, thread->pid, thread->owner, sample->event};
	uint64_t low, high;

	low = hash_text(0, profile_text(profile, profile->host.name));
	low = hash_text(low, profile_text(profile, thread->process));
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		low = hash_u64(low + of[i] + 1);
	high = hash_u64(low + 1);
	memcpy(ret, &low, sizeof(low));
	memcpy(ret + sizeof(low), &high, sizeof(high));
}

const char *otlp_frame_type(const struct frame *frame)
{
	if (!frame)
		return NULL;
	if (frame_kind_is_java(frame->kind))
		return "jvm";
	if (frame->kind == FRAME_KERNEL)
		return "kernel";
	return frame->kind == FRAME_NATIVE || frame->kind == FRAME_JVM ? "native" : NULL;
}

bool otlp_same_process(const struct profile *profile, const struct profile_sample *a, const struct profile_sample *b)
{
	const struct profile_thread *one = &profile->threads.items[a->thread];
	const struct profile_thread *other = &profile->threads.items[b->thread];

	return one->pid == other->pid && one->owner == other->owner && one->process == other->process;
}

int otlp_order(const void *a, const void *b, void *arg)
{
	const struct profile *profile = arg;
	const struct profile_sample *x = a, *y = b;
	const struct profile_thread *one = &profile->threads.items[x->thread];
	const struct profile_thread *other = &profile->threads.items[y->thread];

	return vec_order(one->pid, other->pid) ?: vec_order(one->owner, other->owner) ?:
	       vec_order(one->process, other->process) ?: vec_order(x->event, y->event) ?:
	       vec_order(x->thread, y->thread) ?: vec_order(x->node, y->node) ?: vec_order(x->time_ns, y->time_ns);
}
