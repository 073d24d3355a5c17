/* SPDX-License-Identifier: MIT */
/* JFR files for hostile_recordings.c. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/varint.h"
#include "hostile_rows.h"

static void jfr_string(struct buf *to, const char *text)
{
	buf_add_char(to, 3);
	varint_add(to, strlen(text));
	buf_add_str(to, text);
}

struct metadata {
	struct buf strings, elements;
	unsigned int count, types;
};

static unsigned int string_of(struct metadata *m, const char *text)
{
	jfr_string(&m->strings, text);
	return m->count++;
}

static void begin_element(struct metadata *m, const char *name, unsigned int attributes)
{
	varint_add(&m->elements, string_of(m, name));
	varint_add(&m->elements, attributes);
}

static void attribute(struct metadata *m, const char *name, const char *value)
{
	varint_add(&m->elements, string_of(m, name));
	varint_add(&m->elements, string_of(m, value));
}

/* `fields`: "name class", with '*' before the class of a pool and '+' before that of a list */
static void add_type(struct metadata *m, unsigned int id, const char *name, const char *const *fields)
{
	char number[16], field[64];
	unsigned int count = 0;

	while (fields && fields[count])
		count++;
	snprintf(number, sizeof(number), "%u", id);
	begin_element(m, "class", 2);
	attribute(m, "name", name);
	attribute(m, "id", number);
	varint_add(&m->elements, count);
	for (unsigned int i = 0; i < count; i++) {
		char *type = strchr(strcpy(field, fields[i]), ' ');

		*type++ = '\0';
		begin_element(m, "field", *type == '*' || *type == '+' ? 3 : 2);
		attribute(m, "name", field);
		attribute(m, "class", type + (*type == '*' || *type == '+'));
		if (*type == '*' || *type == '+')
			attribute(m, *type == '*' ? "constantPool" : "dimension", *type == '*' ? "true" : "1");
		varint_add(&m->elements, 0);
	}
	m->types++;
}

enum {
	T_LONG = 4,
	T_INT,
	T_STRING,
	T_THREAD = 10,
	T_CLASS,
	T_SYMBOL,
	T_METHOD,
	T_STACK,
	T_FRAME,
	T_FRAME_TYPE,
	T_OBJECT,
	E_SAMPLE = 30,
	E_ALLOC,
	E_OLD,
	E_LOSS,
	E_FACT,
	E_SETTING,
	E_JVM,
	E_PROPERTY,
	E_LIBRARY,
	E_FLAG,
	E_WEIGHT,
	E_USER,
	E_LAST
};

static void add_types(struct metadata *m)
{
#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})
	static const char *const odd[] = {"jdk.ExecutionSample", "profiler.X", "duet.event.E", "acme.E", "duet.Fact"};
	size_t more = one_in(3) ? pick("types", 50000) : 0;

	add_type(m, T_LONG, "long", NULL);
	add_type(m, T_INT, "int", NULL);
	add_type(m, T_STRING, "java.lang.String", NULL);
	add_type(m, T_THREAD, "java.lang.Thread", FIELDS("osName 6", "osThreadId 4"));
	add_type(m, T_CLASS, "java.lang.Class", FIELDS("name *12", "sourceFile *12"));
	add_type(m, T_SYMBOL, "jdk.types.Symbol", FIELDS("string 6"));
	add_type(m, T_METHOD, "jdk.types.Method", FIELDS("type *11", "name *12", "descriptor *12"));
	add_type(m, T_STACK, "jdk.types.StackTrace", FIELDS("frames +15"));
	add_type(m, T_FRAME, "jdk.types.StackFrame",
		 FIELDS("method *13", "lineNumber 5", "bytecodeIndex 5", "type *16"));
	add_type(m, T_FRAME_TYPE, "jdk.types.FrameType", FIELDS("description 6"));
	add_type(m, T_OBJECT, "jdk.types.OldObject", FIELDS("type *11", "junk +5"));
	add_type(m, E_SAMPLE, "jdk.ExecutionSample", FIELDS("startTime 4", "sampledThread *10", "stackTrace *14"));
	add_type(m, E_ALLOC, "jdk.ObjectAllocationSample",
		 FIELDS("startTime 4", "eventThread *10", "stackTrace *14", "objectClass *11", "weight 4"));
	add_type(m, E_OLD, "jdk.OldObjectSample",
		 FIELDS("startTime 4", "eventThread *10", "stackTrace *14", "objectSize 4", "object *17"));
	add_type(m, E_LOSS, "jdk.DataLoss", FIELDS("amount 4", "reason 6"));
	if (one_in(3))
		add_type(m, E_FACT, "duet.Fact", FIELDS("key 6", "value 6"));
	add_type(m, E_SETTING, "jdk.ActiveSetting", FIELDS("id 4", "name 6", "value 6"));
	add_type(m, E_JVM, "jdk.JVMInformation",
		 FIELDS("startTime 4", "pid 4", "jvmName 6", "jvmVersion 6", "jvmArguments 6", "javaArguments 6"));
	add_type(m, E_PROPERTY, "jdk.InitialSystemProperty", FIELDS("startTime 4", "key 6", "value 6"));
	add_type(m, E_LIBRARY, "jdk.NativeLibrary", FIELDS("startTime 4", "name 6", "baseAddress 4"));
	add_type(m, E_FLAG, "jdk.LongFlag", FIELDS("startTime 4", "name 6", "value 4"));
	add_type(m, E_WEIGHT, "duet.Weight", FIELDS("events 4", "samples 4", "weight 4"));
	add_type(m, E_USER, "profiler.UserEvent", FIELDS("startTime 4", "eventThread *10", "data 6"));
	for (size_t i = 0; i < more; i++)
		add_type(m, (unsigned int)(1000 + i), odd[draw(5)],
			 one_in(2) ? NULL : FIELDS("startTime 4", "stackTrace *14"));
}

/* Adds what is sized: the size counts its own bytes. */
static void put_event(struct buf *to, const struct buf *body)
{
	unsigned char size[VARINT_BYTES];
	size_t bytes = 1;

	while (varint_put(size, body->len + bytes) != bytes)
		bytes++;
	buf_add(to, size, bytes);
	buf_add(to, body->data, body->len);
}

static void add_pools(struct buf *to, const struct counts *n, size_t depth)
{
	struct buf text = BUF_NONE;

	varint_add(to, 8);
	for (int pool = 0; pool < 2; pool++) { /* strings and symbols */
		varint_add(to, pool ? T_SYMBOL : T_STRING);
		varint_add(to, n->texts);
		for (size_t i = 0; i < n->texts; i++) {
			buf_clear(&text);
			add_text(&text, i);
			varint_add(to, i + 1);
			jfr_string(to, text.data);
		}
	}
	varint_add(to, T_CLASS);
	varint_add(to, n->owners);
	for (size_t i = 0; i < n->owners; i++)
		for (int j = 0; j < 3; j++)
			varint_add(to, j ? 1 + reference(i, n->texts) : i + 1);
	varint_add(to, T_METHOD);
	varint_add(to, n->frames);
	for (size_t i = 0; i < n->frames; i++)
		for (int j = 0; j < 4; j++)
			varint_add(to, !j ? i + 1 : 1 + reference(i * 5 + (size_t)j, j == 1 ? n->owners : n->texts));
	varint_add(to, T_FRAME_TYPE);
	varint_add(to, 2);
	for (int i = 0; i < 2; i++) {
		varint_add(to, (uint64_t)i);
		jfr_string(to, i ? "Native" : "JIT compiled");
	}
	varint_add(to, T_STACK);
	varint_add(to, n->nodes);
	for (size_t i = 0; i < n->nodes; i++) {
		size_t frames = 1 + draw(to->len < 8u << 20 ? depth : 1);

		varint_add(to, i + 1);
		varint_add(to, frames);
		for (size_t j = 0; j < frames; j++) {
			varint_add(to, 1 + reference(i + j, n->frames));
			varint_add(to, draw(100));
			varint_add(to, draw(100));
			varint_add(to, draw(2));
		}
	}
	varint_add(to, T_THREAD);
	varint_add(to, n->threads);
	for (size_t i = 0; i < n->threads; i++) {
		varint_add(to, i + 1);
		buf_add_char(to, 2);
		varint_add(to, 1 + reference(i, n->texts));
		varint_add(to, draw(100000));
	}
	varint_add(to, T_OBJECT);
	varint_add(to, 1);
	varint_add(to, 1);
	varint_add(to, draw(3));
	varint_add(to, 300000);
	for (int i = 0; i < 300000; i++)
		buf_add_char(to, 0);
	buf_release(&text);
}

static void add_event(struct buf *file, const struct counts *n, unsigned int type, size_t i)
{
	static const char *const fields[E_LAST] = {
		[E_SAMPLE] = "eTS",  [E_ALLOC] = "eTSCe", [E_OLD] = "eTSeO",  [E_LOSS] = "et",
		[E_FACT] = "tt",     [E_SETTING] = "it",  [E_JVM] = "eettst", [E_PROPERTY] = "ett",
		[E_LIBRARY] = "ete", [E_FLAG] = "ete",	  [E_WEIGHT] = "1ee", [E_USER] = "eTt"};
	struct buf body = BUF_NONE;

	varint_add(&body, type);
	for (const char *field = fields[type]; *field; field++)
		switch (*field) {
		case 't':
		case 's':
			buf_add_char(&body, 2);
			varint_add(&body, 1 + reference(i + (size_t)(field - fields[type]), n->texts));
			break;
		case 'i':
			varint_add(&body, E_SAMPLE);
			jfr_string(&body, "event");
			break;
		default:
			varint_add(&body, *field == 'T'			   ? 1 + reference(i, n->threads)
					  : *field == 'S'		   ? 1 + reference(i, n->nodes)
					  : *field == 'C'		   ? 1 + reference(i, n->owners)
					  : *field == 'O' || *field == '1' ? 1
					  : one_in(4)			   ? edge() & INT64_MAX
									   : draw(1000));
		}
	put_event(file, &body);
	buf_release(&body);
}

static void add_big_endian(struct buf *to, uint64_t number, int bytes)
{
	while (bytes--)
		buf_add_char(to, (char)(number >> 8 * bytes));
}

static void make_jfr_chunk(struct buf *file, const struct counts *n, size_t depth, unsigned int only)
{
	struct metadata m = {.strings = BUF_NONE, .elements = BUF_NONE};
	struct buf types = BUF_NONE, pools = BUF_NONE, body = BUF_NONE, events = BUF_NONE;

	add_types(&m);
	for (int i = 0; i < 4; i++)
		varint_add(&body, 0); /* type, start, duration, id */
	varint_add(&body, m.count + 2);
	buf_add(&body, m.strings.data, m.strings.len);
	jfr_string(&body, "root");
	jfr_string(&body, "metadata");
	for (unsigned int i = 0; i < 2; i++) {
		varint_add(&body, m.count + i);
		varint_add(&body, 0);
		varint_add(&body, i ? m.types : 1);
	}
	buf_add(&body, m.elements.data, m.elements.len);
	put_event(&types, &body);
	buf_clear(&body);
	varint_add(&body, 1);
	for (int i = 0; i < 4; i++)
		varint_add(&body, i == 3);
	add_pools(&body, n, depth);
	put_event(&pools, &body);
	for (size_t i = 0; i < n->samples && events.len < 4u << 20; i++)
		add_event(&events, n, only && !one_in(4) ? only : E_SAMPLE + (unsigned int)draw(E_LAST - E_SAMPLE), i);
	buf_add(file, "FLR\0\0\2\0\1", 8);
	add_big_endian(file, 68 + types.len + pools.len + events.len, 8);
	add_big_endian(file, 68 + types.len, 8);
	add_big_endian(file, 68, 8);
	add_big_endian(file, one_in(3) ? edge() : 1000000000000000000, 8);
	add_big_endian(file, one_in(3) ? edge() : 1000000000, 8);
	add_big_endian(file, 1000, 8);
	add_big_endian(file, one_in(5) ? 1 + draw(1000) : 1000000000, 8);
	add_big_endian(file, 1, 4);
	buf_add(file, types.data, types.len);
	buf_add(file, pools.data, pools.len);
	buf_add(file, events.data, events.len);
	buf_release(&m.strings);
	buf_release(&m.elements);
	buf_release(&types);
	buf_release(&pools);
	buf_release(&body);
	buf_release(&events);
}

static void make_jfr(struct buf *file)
{
	size_t chunks = one_in(4) ? pick("chunks", 50) : 1, depth = pick("depth", one_in(3) ? 20000 : 30);
	unsigned int only = one_in(2) ? E_SAMPLE + (unsigned int)draw(E_LAST - E_SAMPLE) : 0;
	struct counts n = draw_few();

	buf_printf(&about, " only=%u", only);
	n.threads %= 20000;
	n.owners %= 20000;
	n.texts = n.texts * text_len > 4u << 20 ? (4u << 20) / text_len : n.texts;
	n.threads++, n.owners++, n.texts++;
	for (size_t i = 0; i < chunks && file->len < 16u << 20; i++)
		make_jfr_chunk(file, &n, depth, only);
}
