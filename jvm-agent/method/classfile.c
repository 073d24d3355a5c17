/* SPDX-License-Identifier: MIT */
#include "method/classfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0xcafebabe
#define FIRST_BYTES 1024

/* Tags of constants (JVM specification, table 4.4-A). */
enum tag {
	TAG_UTF8 = 1,
	TAG_LONG = 5,
	TAG_DOUBLE = 6,
	TAG_CLASS = 7,
	TAG_FIELD = 9,
	TAG_METHOD = 10,
	TAG_INTERFACE_METHOD = 11,
	TAG_NAME_AND_TYPE = 12,
};

/* Bytes of a constant after its tag, by the tag; 0: there is none. Those of a string give the number of those after. */
static const uint8_t constant_bytes[] = {0, 2, 0, 4, 4, 8, 8, 2, 2, 4, 4, 4, 4, 0, 0, 3, 2, 4, 4, 2, 2};

const uint8_t *class_read_bytes(struct class_reader *from, uint32_t count)
{
	const uint8_t *at = from->bytes + from->at;

	if (from->failed || count > from->size - from->at) {
		from->failed = true;
		return NULL;
	}
	from->at += count;
	return at;
}

uint8_t class_read_u1(struct class_reader *from)
{
	const uint8_t *at = class_read_bytes(from, 1);

	return at ? *at : 0;
}

uint16_t class_read_u2(struct class_reader *from)
{
	const uint8_t *at = class_read_bytes(from, 2);

	return at ? class_u2_at(at) : 0;
}

uint32_t class_read_u4(struct class_reader *from)
{
	const uint8_t *at = class_read_bytes(from, 4);

	return at ? class_u4_at(at) : 0;
}

struct class_reader class_read_part(struct class_reader *from, uint32_t count)
{
	const uint8_t *at = class_read_bytes(from, count);

	return (struct class_reader){.bytes = at ? at : from->bytes, .size = at ? count : 0, .failed = !at};
}

bool class_text_is(struct class_text text, const char *other)
{
	return text.len == strlen(other) && !memcmp(text.at, other, text.len);
}

/* Returns what follows the tag, or NULL if the constant is of another kind. */
static const uint8_t *constant(const struct class_file *class, uint16_t index, enum tag tag)
{
	uint32_t at = index < class->pool_count ? class->pool[index] : 0;

	return at && class->bytes[at] == tag ? class->bytes + at + 1 : NULL;
}

struct class_text class_utf8(const struct class_file *class, uint16_t index)
{
	const uint8_t *at = constant(class, index, TAG_UTF8);

	return at ? (struct class_text){(const char *)at + 2, class_u2_at(at)} : (struct class_text){"", 0};
}

static struct class_text class_name_of(const struct class_file *class, uint16_t index)
{
	const uint8_t *at = constant(class, index, TAG_CLASS);

	return class_utf8(class, at ? class_u2_at(at) : 0);
}

static void read_pool(struct class_file *class, struct class_reader *from)
{
	for (uint32_t i = 1; i < class->pool_count && !from->failed; i++) {
		uint32_t at = from->at;
		uint8_t tag = class_read_u1(from);

		if (tag >= sizeof(constant_bytes) || !constant_bytes[tag]) {
			from->failed = true;
			return;
		}
		class->pool[i] = at;
		if (tag == TAG_UTF8)
			class_read_bytes(from, class_read_u2(from));
		else
			class_read_bytes(from, constant_bytes[tag]);
		i += tag == TAG_LONG || tag == TAG_DOUBLE; /* these take two numbers */
		if (i == class->pool_count) /* the second number would be that of a constant added later */
			from->failed = true;
	}
}

/* Passes the fields or the methods. */
static void pass_members(struct class_reader *from)
{
	uint32_t count = class_read_u2(from);

	for (uint32_t i = 0; i < count && !from->failed; i++) {
		class_read_bytes(from, 6);
		for (uint32_t attributes = class_read_u2(from); attributes && !from->failed; attributes--) {
			class_read_bytes(from, 2);
			class_read_bytes(from, class_read_u4(from));
		}
	}
}

static void read_rest(struct class_file *class, struct class_reader *from)
{
	uint16_t super_class;

	class->pool_end = from->at;
	class_read_u2(from); /* access flags */
	class->this_class = class_read_u2(from);
	super_class = class_read_u2(from);
	class_read_bytes(from, 2u * class_read_u2(from)); /* interfaces */
	pass_members(from);
	class->methods_at = from->at;
	pass_members(from);
	class->this_name = class_name_of(class, class->this_class);
	class->super_name = class_name_of(class, super_class);
	if (!class->this_name.len)
		from->failed = true;
}

int class_open(struct class_file *class, const uint8_t *bytes, uint32_t size)
{
	struct class_reader from = {.bytes = bytes, .size = size};

	*class = (struct class_file){.bytes = bytes, .size = size};
	if (class_read_u4(&from) != MAGIC)
		return -EINVAL;
	class_read_u2(&from);
	class->major = class_read_u2(&from);
	class->pool_count = class_read_u2(&from);
	if (from.failed)
		return -EINVAL;
	class->pool = calloc((size_t)class->pool_count + 1, sizeof(*class->pool));
	if (!class->pool)
		return -ENOMEM;
	read_pool(class, &from);
	if (!from.failed)
		read_rest(class, &from);
	if (!from.failed)
		return 0;
	class_close(class);
	return -EINVAL;
}

void class_close(struct class_file *class)
{
	free(class->pool);
	class->pool = NULL;
}

bool class_method_ref(const struct class_file *class, uint16_t index, struct class_text *ret_class,
		      struct class_text *ret_name)
{
	const uint8_t *at = constant(class, index, TAG_METHOD), *name;

	if (!at)
		at = constant(class, index, TAG_INTERFACE_METHOD);
	name = at ? constant(class, class_u2_at(at + 2), TAG_NAME_AND_TYPE) : NULL;
	if (!name)
		return false;
	*ret_class = class_name_of(class, class_u2_at(at));
	*ret_name = class_utf8(class, class_u2_at(name));
	return true;
}

void class_writer_free(struct class_writer *to)
{
	free(to->bytes);
	*to = (struct class_writer){0};
}

static bool has_room(struct class_writer *to, size_t count)
{
	size_t size = to->size ? to->size : FIRST_BYTES;
	uint8_t *bytes;

	while (size < to->len + count)
		size *= 2;
	if (to->failed || size == to->size)
		return !to->failed;
	bytes = realloc(to->bytes, size);
	to->failed = !bytes;
	if (!bytes)
		return false;
	to->bytes = bytes;
	to->size = size;
	return true;
}

void class_write_bytes(struct class_writer *to, const void *from, size_t count)
{
	if (!count || !has_room(to, count))
		return;
	memcpy(to->bytes + to->len, from, count);
	to->len += count;
}

void class_write_u1(struct class_writer *to, uint8_t value)
{
	class_write_bytes(to, &value, 1);
}

void class_write_u2(struct class_writer *to, uint16_t value)
{
	class_write_u1(to, (uint8_t)(value >> 8));
	class_write_u1(to, (uint8_t)value);
}

void class_write_u4(struct class_writer *to, uint32_t value)
{
	class_write_u2(to, (uint16_t)(value >> 16));
	class_write_u2(to, (uint16_t)value);
}

void class_put_u2(struct class_writer *to, size_t at, uint16_t value)
{
	if (to->failed)
		return;
	to->bytes[at] = (uint8_t)(value >> 8);
	to->bytes[at + 1] = (uint8_t)value;
}

void class_put_u4(struct class_writer *to, size_t at, uint32_t value)
{
	class_put_u2(to, at, (uint16_t)(value >> 16));
	class_put_u2(to, at + 2, (uint16_t)value);
}

bool class_pool_is_full(const struct class_pool *pool)
{
	return pool->next > UINT16_MAX;
}

static uint16_t add_constant(struct class_pool *pool, enum tag tag)
{
	class_write_u1(&pool->added, tag);
	return (uint16_t)pool->next++;
}

uint16_t class_pool_utf8(struct class_pool *pool, const char *text, size_t len)
{
	uint16_t index = add_constant(pool, TAG_UTF8);

	class_write_u2(&pool->added, (uint16_t)len);
	class_write_bytes(&pool->added, text, len);
	return index;
}

uint16_t class_pool_class(struct class_pool *pool, const char *name, size_t len)
{
	uint16_t text = class_pool_utf8(pool, name, len), index = add_constant(pool, TAG_CLASS);

	class_write_u2(&pool->added, text);
	return index;
}

static uint16_t add_member(struct class_pool *pool, enum tag tag, uint16_t class, const char *name,
			   const char *descriptor)
{
	uint16_t name_text = class_pool_utf8(pool, name, strlen(name));
	uint16_t type_text = class_pool_utf8(pool, descriptor, strlen(descriptor));
	uint16_t both = add_constant(pool, TAG_NAME_AND_TYPE), index;

	class_write_u2(&pool->added, name_text);
	class_write_u2(&pool->added, type_text);
	index = add_constant(pool, tag);
	class_write_u2(&pool->added, class);
	class_write_u2(&pool->added, both);
	return index;
}

uint16_t class_pool_method(struct class_pool *pool, uint16_t class, const char *name, const char *descriptor)
{
	return add_member(pool, TAG_METHOD, class, name, descriptor);
}

uint16_t class_pool_field(struct class_pool *pool, uint16_t class, const char *name, const char *descriptor)
{
	return add_member(pool, TAG_FIELD, class, name, descriptor);
}
