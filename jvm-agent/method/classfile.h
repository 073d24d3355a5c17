/* SPDX-License-Identifier: MIT */
/*
 * Class files (JVM specification, chapter 4): reading their parts in place, and writing a copy with changes. The bytes
 * come from class loaders and other agents, so each read is bounded: one behind the end gives 0 and sets `failed`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct class_reader {
	const uint8_t *bytes; /* not owned */
	uint32_t size;
	uint32_t at; /* <= size */
	bool failed;
};

uint8_t class_read_u1(struct class_reader *from);
uint16_t class_read_u2(struct class_reader *from);
uint32_t class_read_u4(struct class_reader *from);
/* Passes `count` bytes. Returns where they are, or NULL. */
const uint8_t *class_read_bytes(struct class_reader *from, uint32_t count);
/* Passes `count` bytes and returns a reader of them alone. */
struct class_reader class_read_part(struct class_reader *from, uint32_t count);

/* Numbers at a place that is known to have so many bytes; class files are big-endian. */
static inline uint16_t class_u2_at(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t class_u4_at(const uint8_t *at)
{
	return (uint32_t)class_u2_at(at) << 16 | class_u2_at(at + 2);
}

/* A string of the constant pool, in modified UTF-8; not terminated. */
struct class_text {
	const char *at;
	uint16_t len;
};

bool class_text_is(struct class_text text, const char *other);

struct class_file {
	const uint8_t *bytes; /* not owned */
	uint32_t size;
	uint16_t major; /* version */
	uint16_t pool_count; /* constants are numbered from 1 to pool_count - 1 */
	uint32_t *pool; /* owned: offset of each constant's tag; 0: there is no constant of this number */
	uint32_t pool_end; /* offset */
	uint32_t methods_at; /* offset of the number of methods */
	uint16_t this_class; /* number of the constant */
	struct class_text this_name, super_name; /* with slashes; java/lang/Object has no superclass: empty */
};

/* Returns 0, -EINVAL if the file is malformed, or -ENOMEM. class_close() after 0 only. `bytes` must stay. */
int class_open(struct class_file *class, const uint8_t *bytes, uint32_t size);
void class_close(struct class_file *class);
/* The constant of this number, if it is a string. Returns an empty text if it is not. */
struct class_text class_utf8(const struct class_file *class, uint16_t index);
/* The class and the name of a method that an invoke instruction refers to. Returns false if it is no such constant. */
bool class_method_ref(const struct class_file *class, uint16_t index, struct class_text *ret_class,
		      struct class_text *ret_name);

/* Grows. After a failure it stays as it is: look at `failed` at the end. */
struct class_writer {
	uint8_t *bytes; /* owned */
	size_t len, size;
	bool failed; /* out of memory */
};

void class_writer_free(struct class_writer *to);
void class_write_u1(struct class_writer *to, uint8_t value);
void class_write_u2(struct class_writer *to, uint16_t value);
void class_write_u4(struct class_writer *to, uint32_t value);
void class_write_bytes(struct class_writer *to, const void *from, size_t count);
void class_put_u2(struct class_writer *to, size_t at, uint16_t value); /* replaces what was written there */
void class_put_u4(struct class_writer *to, size_t at, uint32_t value);

/* Constants that are added after those of the class. */
struct class_pool {
	struct class_writer added;
	uint32_t next; /* number of the next constant; above 65535 the pool has no room */
};

bool class_pool_is_full(const struct class_pool *pool);
/* Each returns the number of the new constant. */
uint16_t class_pool_utf8(struct class_pool *pool, const char *text, size_t len);
uint16_t class_pool_class(struct class_pool *pool, const char *name, size_t len);
uint16_t class_pool_method(struct class_pool *pool, uint16_t class, const char *name, const char *descriptor);
uint16_t class_pool_field(struct class_pool *pool, uint16_t class, const char *name, const char *descriptor);
