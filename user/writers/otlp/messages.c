/* SPDX-License-Identifier: MIT */
#include "writers/otlp/messages.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "otlp.pb-c.h"

#include "base/varint.h"
#include "writers/json.h"

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

int otlp_dictionary_write_json(const struct otlp_dictionary *dictionary, FILE *out)
{
	int err = is_whole(dictionary) ? 0 : -ENOMEM;

	for (unsigned int table = TABLE_MAPPINGS; !err && table <= TABLE_STACKS; table++) {
		const struct buf *packed = &dictionary->tables[table];

		fputc(table == TABLE_MAPPINGS ? '{' : ',', out);
		err = protobuf_json_elements(out, &otlp__dictionary__descriptor, table, packed->data, packed->len);
	}
	fputc('}', out);
	return err;
}

/* ---- JSON ---- */

/* "stack_index" is stackIndex in JSON. */
static void put_key(FILE *out, const char *name)
{
	fputc('"', out);
	for (; *name; name++) {
		bool is_next = *name == '_' && name[1];

		name += is_next;
		fputc(is_next ? toupper((unsigned char)*name) : *name, out);
	}
	fputs("\":", out);
}

static void put_hexadecimal(FILE *out, const ProtobufCBinaryData *data)
{
	fputc('"', out);
	for (size_t i = 0; i < data->len; i++)
		fprintf(out, "%02x", data->data[i]);
	fputc('"', out);
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

static void put_value(FILE *out, ProtobufCType type, const void *at)
{
	const char *text;

	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
		fprintf(out, "%" PRId32, *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_INT64:
		fprintf(out, "\"%" PRId64 "\"", *(const int64_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		fprintf(out, "\"%" PRIu64 "\"", *(const uint64_t *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		text = *(const char *const *)at;
		json_text(out, text, strlen(text));
		break;
	case PROTOBUF_C_TYPE_BYTES:
		put_hexadecimal(out, at);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		protobuf_json(out, *(const ProtobufCMessage *const *)at);
		break;
	default: /* no message of duet has another */
		fputs("null", out);
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

static void put_field(FILE *out, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const char *base = (const char *)message, *at = base + field->offset;
	size_t count;

	put_key(out, field->name);
	if (field->label != PROTOBUF_C_LABEL_REPEATED) {
		put_value(out, field->type, at);
		return;
	}
	count = *(const size_t *)(base + field->quantifier_offset);
	at = *(const char *const *)at;
	for (size_t i = 0; i < count; i++) {
		fputc(i ? ',' : '[', out);
		put_value(out, field->type, at + i * value_bytes(field->type));
	}
	fputc(']', out);
}

void protobuf_json(FILE *out, const ProtobufCMessage *message)
{
	bool is_first = true;

	fputc('{', out);
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

		if (is_absent(message, field))
			continue;
		if (!is_first)
			fputc(',', out);
		is_first = false;
		put_field(out, message, field);
	}
	fputc('}', out);
}

static uint64_t take_number(const uint8_t **at, const uint8_t *end)
{
	uint64_t value;

	*at += varint_get(*at, (size_t)(end - *at), &value);
	return value;
}

static int put_element(FILE *out, const ProtobufCFieldDescriptor *field, const uint8_t *bytes, size_t len)
{
	ProtobufCMessage *message;

	if (field->type == PROTOBUF_C_TYPE_STRING) {
		json_text(out, (const char *)bytes, len);
		return 0;
	}
	message = protobuf_c_message_unpack(field->descriptor, NULL, len, bytes);
	if (!message)
		return -ENOMEM;
	protobuf_json(out, message);
	protobuf_c_message_free_unpacked(message, NULL);
	return 0;
}

int protobuf_json_elements(FILE *out, const ProtobufCMessageDescriptor *type, unsigned int number, const char *bytes,
			   size_t len)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, number);
	const uint8_t *at = (const uint8_t *)bytes, *end = at + len;
	bool is_first = true;
	int err = 0;

	put_key(out, field->name);
	fputc('[', out);
	for (; !err && at < end; is_first = false) {
		uint64_t element;

		(void)take_number(&at, end); /* of the field */
		element = take_number(&at, end);
		if (!is_first)
			fputc(',', out);
		err = element <= (uint64_t)(end - at) ? put_element(out, field, at, element) : -ENOMEM;
		at += element;
	}
	fputc(']', out);
	return err;
}
