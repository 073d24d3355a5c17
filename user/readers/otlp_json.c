/* SPDX-License-Identifier: MIT */
#include "readers/otlp_json.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/varint.h"
#include "otlp.pb-c.h"

#define JSON_MAX ((size_t)256 << 20) /* its values take some 20 times as much memory */
#define KEY_MAX 64
#define ID_BYTES_MAX 16

static int put_message(const ProtobufCMessageDescriptor *type, const json_t *object, struct buf *out);

static void put_bytes(struct buf *out, const void *bytes, size_t len)
{
	varint_add(out, len);
	buf_add(out, bytes, len);
}

/* "stack_index" is stackIndex in JSON. */
static void json_key(const char *name, char key[KEY_MAX])
{
	size_t len = 0;

	for (; *name && len < KEY_MAX - 1; name++) {
		bool is_next = *name == '_' && name[1];

		name += is_next;
		key[len++] = (char)(is_next ? toupper((unsigned char)*name) : *name);
	}
	key[len] = '\0';
}

/* 64-bit numbers are strings. Returns false for what is no number. */
static bool number_of(const json_t *value, uint64_t *ret)
{
	const char *text = json_string_value(value);
	char *end;

	if (json_is_integer(value)) {
		*ret = (uint64_t)json_integer_value(value);
		return true;
	}
	if (!text || !*text)
		return false;
	errno = 0;
	*ret = *text == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
	return !*end && !errno;
}

static unsigned wire_type(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_FIXED64:
		return 1;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return 2;
	default:
		return 0;
	}
}

static int digit_of(char letter)
{
	const char *digits = "0123456789abcdefABCDEF", *at = letter ? strchr(digits, letter) : NULL;

	return !at ? -1 : at - digits < 16 ? (int)(at - digits) : (int)(at - digits) - 6;
}

/* Ids are hexadecimal digits. What is none is left out. */
static int put_id(const ProtobufCFieldDescriptor *field, const json_t *value, struct buf *out)
{
	size_t len = json_is_string(value) ? json_string_length(value) / 2 : 0;
	const char *text = json_string_value(value);
	uint8_t id[ID_BYTES_MAX];

	if (!len || len > sizeof(id))
		return 0;
	for (size_t i = 0; i < len; i++) {
		int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return 0;
		id[i] = (uint8_t)(high << 4 | low);
	}
	varint_add(out, field->id << 3 | wire_type(field));
	put_bytes(out, id, len);
	return 0;
}

static int put_value(const ProtobufCFieldDescriptor *field, const json_t *value, struct buf *out)
{
	BUF(inner);
	uint64_t number;
	int err;

	if (field->type == PROTOBUF_C_TYPE_BYTES)
		return put_id(field, value, out);
	varint_add(out, field->id << 3 | wire_type(field));
	if (field->type == PROTOBUF_C_TYPE_STRING) {
		if (!json_is_string(value))
			return -EINVAL;
		put_bytes(out, json_string_value(value), json_string_length(value));
		return 0;
	}
	if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
		err = put_message(field->descriptor, value, &inner);
		put_bytes(out, inner.data, inner.len);
		out->failed |= inner.failed;
		return err;
	}
	if (!number_of(value, &number))
		return -EINVAL;
	if (field->type == PROTOBUF_C_TYPE_FIXED64)
		buf_add(out, &number, sizeof(number)); /* little-endian, as duet's machines are */
	else
		varint_add(out, number);
	return 0;
}

static int put_field(const ProtobufCFieldDescriptor *field, const json_t *value, struct buf *out)
{
	int err = 0;

	if (!value || json_is_null(value))
		return 0;
	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return put_value(field, value, out);
	if (!json_is_array(value))
		return -EINVAL;
	for (size_t i = 0; !err && i < json_array_size(value); i++)
		err = put_value(field, json_array_get(value, i), out);
	return err;
}

static int put_message(const ProtobufCMessageDescriptor *type, const json_t *object, struct buf *out)
{
	int err = json_is_object(object) ? 0 : -EINVAL;

	for (unsigned i = 0; !err && i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		const json_t *value;
		char key[KEY_MAX];

		json_key(field->name, key);
		value = json_object_get(object, key);
		err = put_field(field, value ? value : json_object_get(object, field->name), out);
	}
	return err;
}

int otlp_from_json(struct buf *contents, struct buf *why)
{
	json_error_t error;
	json_t *object;
	BUF(out);
	int err;

	if (contents->len > JSON_MAX)
		return buf_explain(why, -EFBIG, "the JSON has more than %zu MB", JSON_MAX >> 20);
	object = json_loadb(contents->data, contents->len, 0, &error);
	if (!object)
		return buf_explain(why, -EINVAL, "line %d is no JSON: %s", error.line, error.text);
	err = put_message(&otlp__profiles_data__descriptor, object, &out);
	json_decref(object);
	if (!err && out.failed)
		err = -ENOMEM;
	if (err == -EINVAL)
		buf_add_str(why, "a value of the JSON has another type than OTLP's");
	buf_release(contents);
	*contents = out;
	buf_init(&out);
	return err;
}
