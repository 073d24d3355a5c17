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
#define KEY_MAX 255 /* bytes of a name; a longer one is cut */
#define VALUE_MAX 1024 /* the same of a value */

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
enum { CONTEXT_RESOURCE = 1 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { PAIR_KEY = 1, PAIR_VALUE = 2 };
enum { VALUE_TEXT = 1, VALUE_BOOL, VALUE_INT, VALUE_DOUBLE };

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

/* Appends one clean line. */
static void add_bytes(struct buf *out, const struct wire_field *of, size_t most)
{
	BUF(raw);

	buf_add(&raw, of->bytes, of->len < most ? of->len : most);
	for (size_t i = 0; i < raw.len; i++)
		raw.data[i] = raw.data[i] ? raw.data[i] : '?';
	text_add_line(out, raw.data);
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
		add_bytes(out, &value, VALUE_MAX);
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
	add_bytes(&key, &key_field, KEY_MAX);
	for (char *equals; (equals = strchr(key.data, '='));)
		*equals = '?';
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

int published_parse(struct published *ret, const void *payload, size_t bytes)
{
	return each(ret, (struct wire){.bytes = payload, .len = bytes}, CONTEXT_RESOURCE, on_resource);
}

static int parse_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct published published = {.attributes = BUF_NONE};
	BUF(payload);
	int err = io_read_again(task->fd, PUBLISHED_MAX, &payload);

	if (!err)
		err = published_parse(&published, payload.data, payload.len);
	if (!err)
		parts_add(&answer->text, published.attributes.data, published.attributes.len);
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
	helper_answer_release(&answer);
	text_clean_lines(&ret->attributes);
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

	*ret = (struct published){.attributes = BUF_NONE};
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
}
