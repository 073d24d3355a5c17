/* SPDX-License-Identifier: MIT */
/* The messages of an OTLP file as bytes and as JSON, its dictionary and its resources. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/varint.h"
#include "otlp.pb-c.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "writers/json.h"

/* Tables of packed elements, of which the first is empty. */
struct otlp_dictionary {
	struct buf tables[TABLE_STACKS + 1]; /* the caller appends elements with their field */
};

void otlp_dictionary_init(struct otlp_dictionary *dictionary);
void otlp_dictionary_release(struct otlp_dictionary *dictionary);

/* Writes it as this field of the file's message. Returns 0, or -ENOMEM if an element is missing. */
int otlp_dictionary_write(const struct otlp_dictionary *dictionary, unsigned int field, FILE *out);
/* The same as an object of JSON, without a key. */
int otlp_dictionary_write_json(const struct otlp_dictionary *dictionary, struct json *json);

/* ---- fields of a message, appended to its bytes: a large message need not be in memory as a whole ---- */

static inline void add_bytes(struct buf *to, unsigned int field, const char *bytes, size_t len)
{
	varint_add(to, field << 3 | 2);
	varint_add(to, len);
	buf_add(to, bytes, len);
}

static inline void add_message(struct buf *to, unsigned int field, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);

	varint_add(to, field << 3 | 2);
	varint_add(to, len);
	if (buf_reserve(to, len))
		to->len += protobuf_c_message_pack(message, (uint8_t *)to->data + to->len);
}

/* What comes before the bytes of a field. */
static inline void write_head(FILE *out, unsigned int field, uint64_t bytes)
{
	unsigned char head[2 * VARINT_BYTES];
	size_t len = varint_put(head, (uint64_t)field << 3 | 2);

	len += varint_put(head + len, bytes);
	fwrite(head, 1, len, out);
}

/* A message as JSON, as OTLP has it: 64-bit numbers are strings, bytes are hexadecimal. */
void protobuf_json(struct json *json, const ProtobufCMessage *message);

/*
 * Writes a repeated field of messages or texts, "key":[...], of its packed bytes. Only one element is unpacked at a
 * time. Returns 0, or -ENOMEM, also for bytes that are not packed so.
 */
int protobuf_json_elements(struct json *json, const ProtobufCMessageDescriptor *type, unsigned int number,
			   const char *bytes, size_t len);

void otlp_set_value(Otlp__AnyValue *value, const char *text, uint64_t number); /* the number, if the text is NULL */

/*
 * Appends the resource by the semantic conventions: the thread's process and the machine. Sets to->failed when out of
 * memory.
 */
void otlp_add_resource(struct buf *to, unsigned int field, const struct profile *profile,
		       const struct profile_thread *thread);

/* Makes the id of the profile of a sample's process and event: the same whenever the recording is written. */
void otlp_profile_id(const struct profile *profile, const struct profile_sample *sample, uint8_t ret[16]);

const char *otlp_frame_type(const struct frame *frame); /* profile.frame.type; NULL for frames that are not code */
bool otlp_same_process(const struct profile *profile, const struct profile_sample *a, const struct profile_sample *b);
/* For qsort_r(), with the profile: by process, event, thread, stack and time. */
int otlp_order(const void *a, const void *b, void *profile);
