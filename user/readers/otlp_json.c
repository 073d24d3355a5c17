/* SPDX-License-Identifier: MIT */
#include "readers/otlp_json.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/varint.h"
#include "otlp.pb-c.h"
#include "readers/json_scan.h"

#define ID_BYTES_MAX 16
#define LENGTH_BYTES 5 /* of each message's length, which is known after its fields: that of the largest */

struct converter {
	struct json_scan scan;
	struct buf text; /* the key or string that was read last */
	struct buf out;
};

/* True if `key` is the name of the field, or its name in JSON, where "stack_index" is stackIndex. */
static bool is_key(const char *name, const char *key)
{
	if (!strcmp(name, key))
		return true;
	for (; *name && *key; name++, key++) {
		bool is_next = *name == '_' && name[1];

		name += is_next;
		if (*key != (is_next ? toupper((unsigned char)*name) : *name))
			return false;
	}
	return !*name && !*key;
}

static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *type, const char *key)
{
	for (unsigned i = 0; i < type->n_fields; i++)
		if (is_key(type->fields[i].name, key))
			return &type->fields[i];
	return NULL;
}

/* 64-bit numbers are strings. */
static uint64_t take_number(struct converter *c)
{
	const char *text;
	uint64_t number;
	char *end;

	if (scan_peek(&c->scan) != '"')
		return (uint64_t)scan_integer(&c->scan);
	scan_string(&c->scan, &c->text);
	text = c->text.data;
	errno = 0;
	number = *text == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
	c->scan.failed |= end == text || *end || errno;
	return number;
}

static void put_tag(struct converter *c, const ProtobufCFieldDescriptor *field, unsigned wire_type)
{
	varint_add(&c->out, field->id << 3 | wire_type);
}

static void put_bytes(struct converter *c, const ProtobufCFieldDescriptor *field, const void *bytes, size_t len)
{
	put_tag(c, field, 2);
	varint_add(&c->out, len);
	buf_add(&c->out, bytes, len);
}

static int digit_of(char letter)
{
	const char *digits = "0123456789abcdefABCDEF", *at = letter ? strchr(digits, letter) : NULL;

	return !at ? -1 : at - digits < 16 ? (int)(at - digits) : (int)(at - digits) - 6;
}

/* Ids are hexadecimal digits. What is none is left out. */
static void put_id(struct converter *c, const ProtobufCFieldDescriptor *field)
{
	size_t len;
	uint8_t id[ID_BYTES_MAX];

	if (scan_peek(&c->scan) != '"')
		return scan_skip(&c->scan);
	scan_string(&c->scan, &c->text);
	len = c->text.len / 2;
	if (!len || len > sizeof(id))
		return;
	for (size_t i = 0; i < len; i++) {
		int high = digit_of(c->text.data[2 * i]), low = digit_of(c->text.data[2 * i + 1]);

		if (high < 0 || low < 0)
			return;
		id[i] = (uint8_t)(high << 4 | low);
	}
	put_bytes(c, field, id, len);
}

static void put_fields(struct converter *c, const ProtobufCMessageDescriptor *type);

/* The length has all its bytes, so that what follows need not be moved. */
static void put_message(struct converter *c, const ProtobufCFieldDescriptor *field)
{
	static const char room[LENGTH_BYTES];
	size_t start, len;

	put_tag(c, field, 2);
	buf_add(&c->out, room, sizeof(room));
	start = c->out.len;
	put_fields(c, field->descriptor);
	len = c->out.len - start;
	for (size_t i = 0; !c->out.failed && i < LENGTH_BYTES; i++, len >>= 7)
		c->out.data[start - LENGTH_BYTES + i] = (char)((len & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}

static void put_value(struct converter *c, const ProtobufCFieldDescriptor *field)
{
	uint64_t number;

	switch (field->type) {
	case PROTOBUF_C_TYPE_BYTES:
		return put_id(c, field);
	case PROTOBUF_C_TYPE_MESSAGE:
		return put_message(c, field);
	case PROTOBUF_C_TYPE_STRING:
		scan_string(&c->scan, &c->text);
		return put_bytes(c, field, c->text.data, c->text.len);
	case PROTOBUF_C_TYPE_FIXED64:
		number = take_number(c);
		put_tag(c, field, 1);
		return buf_add(&c->out, &number, sizeof(number)); /* little-endian, as duet's machines are */
	default:
		number = take_number(c);
		put_tag(c, field, 0);
		varint_add(&c->out, number);
	}
}

/* The fields of an object. Keys that are not known, and values that are null, are skipped. */
static void put_fields(struct converter *c, const ProtobufCMessageDescriptor *type)
{
	struct json_scan *scan = &c->scan;

	for (scan_enter(scan, '{'); scan_more(scan, '}') && !c->out.failed && !c->text.failed;) {
		const ProtobufCFieldDescriptor *field;

		scan_key(scan, &c->text);
		field = field_of(type, c->text.data);
		if (scan_word(scan, "null"))
			continue;
		if (!field)
			scan_skip(scan);
		else if (field->label != PROTOBUF_C_LABEL_REPEATED)
			put_value(c, field);
		else
			for (scan_enter(scan, '['); scan_more(scan, ']') && !c->out.failed;)
				put_value(c, field);
	}
}

int otlp_from_json(struct buf *contents, struct buf *why)
{
	struct converter c = {
		.scan = {.start = contents->data, .at = contents->data, .end = contents->data + contents->len},
		.text = BUF_NONE,
		.out = BUF_NONE,
	};
	int err = 0;

	put_fields(&c, &otlp__profiles_data__descriptor);
	if (c.out.failed || c.text.failed)
		err = -ENOMEM;
	else if (c.scan.failed || scan_peek(&c.scan))
		err = buf_explain(why, -EINVAL, "byte %zu is not JSON, or a value has another type than OTLP's",
				  (size_t)(c.scan.at - c.scan.start));
	buf_release(&c.text);
	buf_release(contents);
	*contents = c.out;
	return err;
}
