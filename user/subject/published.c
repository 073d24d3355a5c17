/* SPDX-License-Identifier: MIT */
#include "subject/published.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/map.h"
#include "base/parts.h"
#include "base/redact.h"
#include "base/text.h"
#include "duet_context.h"
#include "profile/attributes.h"
#include "readers/pprof_tables.h"

#define TRIES 3 /* while it changes */
#define CANDIDATES 4 /* mappings of the name that are looked at */

/* ---- the helper ---- */

/* What it answers, beside the payload. */
struct place {
	uint64_t address, published_ns;
};

static int copy(int memory, void *to, size_t bytes, uint64_t from)
{
	ssize_t got = from <= INT64_MAX - bytes ? pread(memory, to, bytes, (off_t)from) : 0;

	return got == (ssize_t)bytes ? 0 : got < 0 ? -errno : -EFAULT;
}

/* Fills `payload` if there is another than that of known_ns. Returns as published_read(). */
static int read_once(int memory, uint64_t known_ns, struct place *place, struct buf *payload)
{
	struct duet_published head, again;
	int err = copy(memory, &head, sizeof(head), place->address), late;

	if (err || memcmp(head.signature, DUET_PUBLISHED_SIGNATURE, sizeof(head.signature)) != 0 ||
	    head.version != DUET_PUBLISHED_VERSION)
		return -ENOENT;
	place->published_ns = head.published_ns;
	if (!head.published_ns || head.published_ns == known_ns)
		return head.published_ns ? 0 : -EAGAIN;
	buf_clear(payload);
	if (head.payload_bytes > PUBLISHED_MAX || !buf_reserve(payload, PUBLISHED_MAX))
		err = head.payload_bytes > PUBLISHED_MAX ? -EPROTO : -ENOMEM;
	else
		err = copy(memory, payload->data, head.payload_bytes, head.payload);
	if (!err) {
		payload->len = head.payload_bytes;
		payload->data[payload->len] = '\0';
	}
	/* what was read while it changed means nothing, even that it could not be read */
	late = copy(memory, &again, sizeof(again), place->address);
	if (late || memcmp(&again, &head, sizeof(head)) != 0)
		return -EAGAIN;
	return err && err != -ENOMEM ? -EPROTO : err;
}

static int read_at(int memory, uint64_t known_ns, struct place *place, struct buf *payload)
{
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < TRIES; i++)
		err = read_once(memory, known_ns, place, payload);
	return err;
}

/* Its address is the task's number, if that is known. */
static int find(const struct helper_task *task, int memory, uint64_t known_ns, struct place *place,
		struct buf *payload)
{
	static const char *const names[] = DUET_PUBLISHED_NAMES;
	int err = -ENOENT;

	place->address = task->number;
	if (place->address)
		return read_at(memory, known_ns, place, payload);
	for (int i = 0; err == -ENOENT && i < CANDIDATES; i++, place->address++) {
		err = maps_find_named(task->fd, names, sizeof(names) / sizeof(*names), &place->address);
		if (err)
			break;
		err = read_at(memory, known_ns, place, payload);
		if (err != -ENOENT)
			break;
	}
	return err;
}

static int read_work(const struct helper_task *task, struct helper_answer *answer)
{
	uint64_t known_ns = strtoull(task->path, NULL, 16);
	IO_FD(memory) = openat(task->fd, "mem", O_RDONLY | O_CLOEXEC);
	struct place place = {0};
	BUF(payload);
	int err = memory < 0 ? -errno : find(task, memory, known_ns, &place, &payload);

	buf_add(&answer->text, &place, sizeof(place));
	if (err || place.published_ns == known_ns)
		return err;
	answer->fd = memfd_create("duet-published", MFD_CLOEXEC);
	return answer->fd < 0 ? -errno : io_write_all(answer->fd, payload.data, payload.len);
}

/* ---- the parser ---- */

/* Fields of protobuf's messages ProcessContext, Resource, KeyValue and AnyValue. */
enum { CONTEXT_RESOURCE = 1, CONTEXT_ATTRIBUTES = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { PAIR_KEY = 1, PAIR_VALUE = 2 };
enum { VALUE_TEXT = 1, VALUE_BOOL, VALUE_INT, VALUE_DOUBLE, VALUE_LIST };
enum { LIST_VALUES = 1 };

typedef int (*visitor)(struct published *to, const struct wire_field *field);

static struct wire wire_of(const struct wire_field *field)
{
	return (struct wire){.bytes = field->bytes, .len = field->type == WIRE_BYTES ? field->len : 0};
}

/* Visits the messages of one number in a message. Returns 0, what the visitor returned, or -EPROTO. */
static int each(struct published *to, struct wire message, uint32_t number, visitor visit)
{
	struct wire_field field;
	int got, err = 0;

	while (!err && (got = wire_next(&message, &field)) != 0) {
		if (got < 0)
			return -EPROTO;
		if (field.number == number && field.type == WIRE_BYTES)
			err = visit(to, &field);
	}
	return err;
}

/* The last field of a message decides, as protobuf has it. Returns false if there is none, or it is malformed. */
static bool last_of(struct wire message, uint32_t number, struct wire_field *ret)
{
	struct wire_field field;
	bool found = false;
	int got;

	*ret = (struct wire_field){0};
	while ((got = wire_next(&message, &field)) > 0)
		if (!number || field.number == number) {
			*ret = field;
			found = true;
		}
	return found && !got;
}

/* Appends a text, a number or a truth value. Returns false for all else. */
static bool add_value(struct buf *out, const struct wire_field *any)
{
	struct wire_field value;
	double number;

	if (!last_of(wire_of(any), 0, &value))
		return false;
	if (value.number == VALUE_TEXT && value.type == WIRE_BYTES) {
		attributes_add_value(out, value.bytes, value.len, ATTRIBUTES_VALUE_MAX);
	} else if (value.number == VALUE_BOOL && value.type == WIRE_VARINT) {
		buf_add_str(out, value.value ? "true" : "false");
	} else if (value.number == VALUE_INT && value.type == WIRE_VARINT) {
		buf_printf(out, "%" PRId64, (int64_t)value.value);
	} else if (value.number == VALUE_DOUBLE && value.type == WIRE_FIXED64) {
		memcpy(&number, &value.value, sizeof(number));
		buf_printf(out, "%g", number);
	} else {
		return false;
	}
	return true;
}

/* Lists and the like are left out, and so is a second value of a key, which must not be there. */
static int on_attribute(struct published *to, const struct wire_field *pair)
{
	struct wire_field key_field, any;
	struct attribute known;
	size_t before = to->attributes.len;
	BUF(key);
	BUF(value);

	if (!last_of(wire_of(pair), PAIR_KEY, &key_field) || !last_of(wire_of(pair), PAIR_VALUE, &any) ||
	    key_field.type != WIRE_BYTES || !key_field.len || !add_value(&value, &any))
		return 0;
	attributes_add_key(&key, key_field.bytes, key_field.len);
	if (attributes_find(to->attributes.data, key.data, &known))
		return 0;
	buf_printf(&to->attributes, "%s=", key.data);
	redact_value(key.data, key.len, value.data, &to->attributes);
	buf_add_str(&to->attributes, "\n");
	if (to->attributes.len > PUBLISHED_TEXT_MAX)
		buf_cut(&to->attributes, before);
	return to->attributes.failed || key.failed || value.failed ? -ENOMEM : 0;
}

static int on_resource(struct published *to, const struct wire_field *resource)
{
	return each(to, wire_of(resource), RESOURCE_ATTRIBUTES, on_attribute);
}

/* A name that is no text keeps its place. */
static int on_name(struct published *to, const struct wire_field *any)
{
	struct wire_field value;
	size_t before = to->keys.len;

	if (last_of(wire_of(any), VALUE_TEXT, &value) && value.type == WIRE_BYTES)
		attributes_add_key(&to->keys, value.bytes, value.len);
	buf_add_str(&to->keys, "\n");
	if (to->keys.len <= PUBLISHED_TEXT_MAX && to->key_count++ < DUET_CONTEXT_KEYS_MAX)
		return to->keys.failed ? -ENOMEM : 0;
	buf_cut(&to->keys, before);
	return -E2BIG; /* those that follow would have other numbers */
}

/* Of the attributes of the context, only the names of threads' attributes are of interest. */
static int on_names(struct published *to, const struct wire_field *pair)
{
	struct wire_field key, any, list;
	int err;

	if (!last_of(wire_of(pair), PAIR_KEY, &key) || !last_of(wire_of(pair), PAIR_VALUE, &any) ||
	    key.type != WIRE_BYTES || key.len != strlen(DUET_CONTEXT_KEYS) ||
	    memcmp(key.bytes, DUET_CONTEXT_KEYS, key.len) != 0 || !last_of(wire_of(&any), VALUE_LIST, &list))
		return 0;
	buf_clear(&to->keys);
	to->key_count = 0;
	err = each(to, wire_of(&list), LIST_VALUES, on_name);
	return err == -E2BIG ? 0 : err;
}

int published_parse(struct published *ret, const void *payload, size_t bytes)
{
	const struct wire context = {.bytes = payload, .len = bytes};
	int err = each(ret, context, CONTEXT_RESOURCE, on_resource);

	return err ? err : each(ret, context, CONTEXT_ATTRIBUTES, on_names);
}

/* ---- the attributes of a thread ---- */

/* Where the last attribute of each name begins, 1 + its offset; 0: there is none. */
struct last_attributes {
	uint16_t at[DUET_CONTEXT_KEYS_MAX];
};

static enum context_loss find_last(const unsigned char *bytes, size_t len, struct last_attributes *ret)
{
	size_t at = 0;

	*ret = (struct last_attributes){0};
	while (len - at >= 2 && len - at - 2 >= bytes[at + 1]) {
		ret->at[bytes[at]] = (uint16_t)(at + 1);
		at += 2u + bytes[at + 1];
	}
	return at == len ? CONTEXT_WHOLE : CONTEXT_CUT;
}

static void add_pair(const char *key, size_t key_len, const unsigned char *value, size_t len, struct buf *out)
{
	BUF(text);

	attributes_add_value(&text, value, len, len);
	buf_add(out, key, key_len);
	buf_add_str(out, "=");
	redact_value(key, key_len, text.data, out);
	buf_add_str(out, "\n");
}

enum context_loss context_text(const void *attributes, size_t bytes, const char *keys, struct buf *out)
{
	const unsigned char *from = attributes;
	struct last_attributes last;
	enum context_loss loss = find_last(from, bytes < UINT16_MAX ? bytes : 0, &last);

	for (size_t i = 0; i < DUET_CONTEXT_KEYS_MAX; i++) {
		size_t key_len = strcspn(keys, "\n"), before = out->len;

		if (last.at[i] && !*keys)
			return CONTEXT_NO_KEY;
		if (last.at[i] && key_len)
			add_pair(keys, key_len, from + last.at[i] + 1, from[last.at[i]], out);
		if (out->len > PUBLISHED_TEXT_MAX) {
			buf_cut(out, before);
			loss = CONTEXT_CUT;
		}
		keys += key_len + (keys[key_len] == '\n');
	}
	return loss;
}

/* ---- the parser's process ---- */

static int parse_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct published published = {.attributes = BUF_NONE, .keys = BUF_NONE};
	BUF(payload);
	int err = io_read_again(task->fd, PUBLISHED_MAX, &payload);

	if (!err)
		err = published_parse(&published, payload.data, payload.len);
	if (!err) {
		parts_add(&answer->text, published.attributes.data, published.attributes.len);
		parts_add(&answer->text, published.keys.data, published.keys.len);
	}
	published_release(&published);
	return err;
}

/* ---- the loader ---- */

static int parse(struct published *ret, const struct charge *charge, const struct process *process, int fd)
{
	const uint64_t writer[2] = {charge->payer.key, process->uid};
	struct helper_answer answer;
	const struct helper_task task = {parse_work, charge, fd, "", 0, hash_bytes(writer, sizeof(writer), 0)};
	int err = parser_run(&task, &answer);
	struct parts parts = {.at = answer.text.data, .left = answer.text.len, .err = err};

	parts_read_text(&parts, &ret->attributes, PUBLISHED_TEXT_MAX);
	parts_read_text(&parts, &ret->keys, PUBLISHED_TEXT_MAX);
	helper_answer_release(&answer);
	text_clean_lines(&ret->attributes);
	text_clean_lines(&ret->keys);
	ret->is_new = !parts.err;
	return parts.err == -EBADMSG ? -EPROTO : parts.err;
}

int published_read(struct published *ret, const struct charge *charge, const struct process *process, uint64_t address,
		   uint64_t known_ns)
{
	IO_FD(proc_fd) = proc_open(charge, "");
	struct helper_answer answer;
	struct place place = {0};
	char known[24];
	int err;

	*ret = (struct published){.attributes = BUF_NONE, .keys = BUF_NONE};
	snprintf(known, sizeof(known), "%" PRIx64, known_ns);
	if (proc_fd < 0)
		return proc_fd;
	err = helper_run(&(struct helper_task){read_work, charge, proc_fd, known, address, 0}, &answer);
	if (answer.text.len == sizeof(place))
		memcpy(&place, answer.text.data, sizeof(place));
	if (!err || err == -EAGAIN || err == -EPROTO)
		ret->address = place.address;
	ret->published_ns = !err || err == -EPROTO ? place.published_ns : 0;
	if (!err && answer.fd >= 0)
		err = parse(ret, charge, process, answer.fd);
	helper_answer_release(&answer);
	return err;
}

void published_release(struct published *published)
{
	buf_release(&published->attributes);
	buf_release(&published->keys);
}
