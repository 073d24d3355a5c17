/* SPDX-License-Identifier: MIT */
#include "reader/objects.h"

#include <string.h>

#include "hotspot/unsigned5.h"
#include "hotspot/vmstructs.h"
#include "reader/memory.h"

#define MAX_FIELDS 256 /* most fields of a class; java.lang.Thread has 30 */
#define MAX_OFFSET 4096
#define STREAM_BYTES 4096
#define NAME_BYTES 64 /* bytes; longer than any name that is looked up */
#define EXCESS_SINCE 20 /* struct unsigned5 */
#define TUPLE 6 /* numbers of a field in InstanceKlass::_fields: flags, name, signature, value, offset (two) */
#define IS_STATIC 0x0008
#define HAS_OFFSET 1 /* the lowest two bits of the offset in a tuple */
/* Bits of a field in the stream; each says that one more number follows. */
#define HAS_VALUE (1u << 0)
#define HAS_GENERIC_SIGNATURE (1u << 2)
#define HAS_GROUP (1u << 4)

static struct {
	struct offset pool, tuples, stream, symbol_length, symbol_body;
	/* Array<int>::_length, the same for all arrays; the start of their data */
	struct offset array_length, halves, bytes;
	size_t pool_bytes;
	unsigned int excess;
} layout;

static const struct vmstructs_row rows[] = {
	{"InstanceKlass", "_constants", &layout.pool, NULL},
	{"InstanceKlass", "_fields", &layout.tuples, NULL}, /* JDK 8-20 */
	{"InstanceKlass", "_fieldinfo_stream", &layout.stream, NULL}, /* JDK 21+ */
	{"Symbol", "_length", &layout.symbol_length, NULL},
	{"Symbol", "_body", &layout.symbol_body, NULL},
	{"Array<int>", "_length", &layout.array_length, NULL},
	{"Array<u2>", "_data", &layout.halves, NULL},
	{"Array<u1>", "_data", &layout.bytes, NULL},
};

bool fields_open(int version)
{
	memset(&layout, 0, sizeof(layout));
	if (vmstructs_read(rows, sizeof(rows) / sizeof(rows[0])))
		return false;
	layout.pool_bytes = vmstructs_type_bytes("ConstantPool");
	layout.excess = version >= EXCESS_SINCE;
	return layout.pool_bytes && layout.pool.known && layout.symbol_length.known && layout.symbol_body.known &&
	       layout.array_length.known &&
	       ((layout.tuples.known && layout.halves.known) || (layout.stream.known && layout.bytes.known));
}

/* Returns true if this constant of the class is the text. */
static bool constant_is(uintptr_t klass, uint32_t index, const char *text)
{
	uintptr_t pool = memory_word(klass + layout.pool.value);
	uintptr_t symbol = memory_word(pool + layout.pool_bytes + (uint64_t)index * sizeof(uintptr_t));
	size_t length = strlen(text);
	char found[NAME_BYTES];

	return index && length < sizeof(found) && memory_half(symbol + layout.symbol_length.value) == length &&
	       memory_copy(found, symbol + layout.symbol_body.value, length) == length && !memcmp(found, text, length);
}

static bool keep(uint32_t offset, uint16_t *ret_offset)
{
	if (offset >= MAX_OFFSET)
		return false;
	*ret_offset = (uint16_t)offset;
	return true;
}

static bool find_tuple(uintptr_t klass, const char *name, const char *signature, uint16_t *ret_offset)
{
	uintptr_t array = memory_word(klass + layout.tuples.value);
	uint32_t count = memory_int(array + layout.array_length.value) / TUPLE;
	uint16_t field[TUPLE];

	for (uint32_t i = 0; i < count && i < MAX_FIELDS; i++) {
		uintptr_t at = array + layout.halves.value + i * sizeof(field);

		if (memory_copy(field, at, sizeof(field)) < sizeof(field))
			return false;
		if (!(field[0] & IS_STATIC) && (field[4] & 3) == HAS_OFFSET && constant_is(klass, field[1], name) &&
		    constant_is(klass, field[2], signature))
			return keep(((uint32_t)field[5] << 16 | field[4]) >> 2, ret_offset);
	}
	return false;
}

struct streamed_field {
	uint32_t name, signature, offset, access;
};

static struct streamed_field next_field(struct unsigned5 *stream)
{
	struct streamed_field field;
	uint32_t flags;

	field.name = unsigned5_read(stream);
	field.signature = unsigned5_read(stream);
	field.offset = unsigned5_read(stream);
	field.access = unsigned5_read(stream);
	flags = unsigned5_read(stream);
	for (unsigned int more = flags & (HAS_VALUE | HAS_GENERIC_SIGNATURE | HAS_GROUP); more; more &= more - 1)
		(void)unsigned5_read(stream);
	return field;
}

static bool find_streamed(uintptr_t klass, const char *name, const char *signature, uint16_t *ret_offset)
{
	uintptr_t array = memory_word(klass + layout.stream.value);
	uint32_t length = memory_int(array + layout.array_length.value), count;
	unsigned char bytes[STREAM_BYTES];
	struct unsigned5 stream = {.at = bytes, .end = bytes, .excess = layout.excess};

	length = length < sizeof(bytes) ? length : sizeof(bytes);
	stream.end += memory_copy(bytes, array + layout.bytes.value, length);
	count = unsigned5_read(&stream);
	(void)unsigned5_read(&stream); /* the number of fields that the JVM adds; these come last */
	for (uint32_t i = 0; i < count && i < MAX_FIELDS; i++) {
		struct streamed_field field = next_field(&stream);

		if (stream.failed)
			return false;
		if (!(field.access & IS_STATIC) && constant_is(klass, field.name, name) &&
		    constant_is(klass, field.signature, signature))
			return keep(field.offset, ret_offset);
	}
	return false;
}

bool fields_find(uintptr_t klass, const char *name, const char *signature, uint16_t *ret_offset)
{
	return layout.stream.known ? find_streamed(klass, name, signature, ret_offset)
				   : find_tuple(klass, name, signature, ret_offset);
}
