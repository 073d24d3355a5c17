/* SPDX-License-Identifier: MIT */
#include "method/bytecode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Types (JVM specification, 4.7.4). Those from OBJECT on are followed by a number. */
enum type_tag {
	TYPE_TOP,
	TYPE_INTEGER,
	TYPE_FLOAT,
	TYPE_DOUBLE,
	TYPE_LONG,
	TYPE_NULL,
	TYPE_UNINITIALIZED_THIS,
	TYPE_OBJECT,	    /* the number of a class in the constant pool */
	TYPE_UNINITIALIZED, /* the bci of a `new` */
	TYPE_MAX
};

/* The first byte of a frame. */
enum frame_form {
	FORM_ONE_ON_STACK = 64, /* below: the same locals, nothing on the stack */
	FORM_ONE_ON_STACK_FAR = 247,
	FORM_CHOP = 248, /* to 250: 3 to 1 locals less */
	FORM_SAME_FAR = 251,
	FORM_APPEND = 252, /* to 254: 1 to 3 locals more */
	FORM_FULL = 255,
};

struct map_type {
	uint8_t tag;
	uint16_t number;
};

struct frames {
	const struct stackmap_method *method;
	struct class_reader from;
	struct class_writer *to;
	int64_t old_at, new_at; /* bci of the last frame; -1: none yet */
	struct map_type *locals; /* of the last frame; with has_long only */
	uint32_t local_count; /* long and double count once */
	int error;
};

static struct map_type read_type(struct frames *f)
{
	struct map_type type = {.tag = class_read_u1(&f->from)};
	uint32_t at;

	if (type.tag >= TYPE_MAX)
		f->error = -EINVAL;
	if (type.tag >= TYPE_OBJECT)
		type.number = class_read_u2(&f->from);
	if (type.tag != TYPE_UNINITIALIZED)
		return type;
	at = type.number < f->method->map->len ? f->method->map->at[type.number] : BYTECODE_NOWHERE;
	if (at == BYTECODE_NOWHERE)
		f->error = -EINVAL;
	type.number = (uint16_t)at;
	return type;
}

static void write_type(struct frames *f, struct map_type type)
{
	class_write_u1(f->to, type.tag);
	if (type.tag >= TYPE_OBJECT)
		class_write_u2(f->to, type.number);
}

static void copy_types(struct frames *f, uint32_t count)
{
	for (; count && !f->error && !f->from.failed; count--)
		write_type(f, read_type(f));
}

static void add_local(struct frames *f, struct map_type type)
{
	if (f->local_count >= f->method->max_locals) {
		f->error = -EINVAL;
		return;
	}
	f->locals[f->local_count++] = type;
}

/* Returns the bytes of the first type of a descriptor's parameters; 0 if it is malformed. */
static uint32_t descriptor_bytes(const char *at, uint32_t len)
{
	uint32_t dimensions = 0, bytes;

	while (dimensions < len && at[dimensions] == '[')
		dimensions++;
	if (dimensions == len)
		return 0;
	bytes = dimensions + 1;
	if (at[dimensions] != 'L')
		return bytes;
	while (bytes < len && at[bytes - 1] != ';')
		bytes++;
	return at[bytes - 1] == ';' ? bytes : 0;
}

static struct map_type type_of(struct frames *f, const char *at, uint32_t len)
{
	switch (*at) {
	case 'J':
		return (struct map_type){.tag = TYPE_LONG};
	case 'D':
		return (struct map_type){.tag = TYPE_DOUBLE};
	case 'F':
		return (struct map_type){.tag = TYPE_FLOAT};
	case 'L':
		return (struct map_type){TYPE_OBJECT, class_pool_class(f->method->pool, at + 1, len - 2)};
	case '[':
		return (struct map_type){TYPE_OBJECT, class_pool_class(f->method->pool, at, len)};
	}
	if (!memchr("BCISZ", *at, 5))
		f->error = -EINVAL;
	return (struct map_type){.tag = TYPE_INTEGER};
}

static void add_parameters(struct frames *f)
{
	const char *at = f->method->descriptor.at + 1;
	uint32_t left = f->method->descriptor.len ? f->method->descriptor.len - 1u : 0, bytes;

	for (; left && *at != ')' && !f->error; at += bytes, left -= bytes) {
		bytes = descriptor_bytes(at, left);
		if (!bytes)
			f->error = -EINVAL;
		else
			add_local(f, type_of(f, at, bytes));
	}
}

static void begin_locals(struct frames *f)
{
	const struct stackmap_method *method = f->method;
	bool is_constructor = class_text_is(method->name, "<init>") && method->class->super_name.len;

	if (!method->is_static)
		add_local(f, is_constructor ? (struct map_type){.tag = TYPE_UNINITIALIZED_THIS}
					    : (struct map_type){TYPE_OBJECT, method->class->this_class});
	add_parameters(f);
}

/* Moves on to the frame that is `delta` after the last one. Returns its new distance from the last one. */
static uint16_t step(struct frames *f, uint16_t delta)
{
	int64_t before = f->new_at;
	uint32_t at;

	f->old_at += delta + 1;
	at = f->old_at < f->method->map->len ? f->method->map->at[f->old_at] : BYTECODE_NOWHERE;
	if (at == BYTECODE_NOWHERE || at <= before)
		f->error = -EINVAL;
	f->new_at = at;
	return (uint16_t)(f->new_at - before - 1);
}

/* Copies a frame that keeps its form. */
static void copy_frame(struct frames *f, uint8_t form)
{
	if (form < FORM_ONE_ON_STACK) {
		class_write_u1(f->to, FORM_SAME_FAR);
		class_write_u2(f->to, step(f, form));
		return;
	}
	if (form < FORM_ONE_ON_STACK_FAR) {
		class_write_u1(f->to, FORM_ONE_ON_STACK_FAR);
		class_write_u2(f->to, step(f, form - FORM_ONE_ON_STACK));
		return copy_types(f, 1);
	}
	class_write_u1(f->to, form);
	class_write_u2(f->to, step(f, class_read_u2(&f->from)));
	if (form == FORM_ONE_ON_STACK_FAR)
		copy_types(f, 1);
	else if (form >= FORM_APPEND && form < FORM_FULL)
		copy_types(f, form - FORM_APPEND + 1u);
	for (int i = 0; form == FORM_FULL && i < 2; i++) {
		uint16_t count = class_read_u2(&f->from);

		class_write_u2(f->to, count);
		copy_types(f, count);
	}
}

/* Writes the locals of a full frame: those that are known, nothing in the others, and then the long. */
static void write_locals(struct frames *f)
{
	uint32_t slots = 0, unused;

	for (uint32_t i = 0; i < f->local_count; i++)
		slots += f->locals[i].tag == TYPE_LONG || f->locals[i].tag == TYPE_DOUBLE ? 2 : 1;
	if (slots > f->method->max_locals) {
		f->error = -EINVAL;
		return;
	}
	unused = f->method->max_locals - slots;
	class_write_u2(f->to, (uint16_t)(f->local_count + unused + 1));
	for (uint32_t i = 0; i < f->local_count; i++)
		write_type(f, f->locals[i]);
	for (; unused; unused--)
		class_write_u1(f->to, TYPE_TOP);
	class_write_u1(f->to, TYPE_LONG);
}

static void read_locals(struct frames *f, uint32_t count)
{
	for (; count && !f->error && !f->from.failed; count--)
		add_local(f, read_type(f));
}

/* Changes the locals as the frame says. Returns how many types are on its stack. */
static uint16_t apply_frame(struct frames *f, uint8_t form)
{
	if (form < FORM_ONE_ON_STACK_FAR || form == FORM_SAME_FAR)
		return form >= FORM_ONE_ON_STACK && form < FORM_ONE_ON_STACK_FAR;
	if (form == FORM_ONE_ON_STACK_FAR)
		return 1;
	if (form < FORM_SAME_FAR) {
		uint32_t less = (uint32_t)FORM_SAME_FAR - form;

		f->local_count = less <= f->local_count ? f->local_count - less : 0;
		return 0;
	}
	if (form < FORM_FULL) {
		read_locals(f, form - FORM_APPEND + 1u);
		return 0;
	}
	f->local_count = 0;
	read_locals(f, class_read_u2(&f->from));
	return class_read_u2(&f->from);
}

/* Writes any frame as a full one. */
static void write_full(struct frames *f, uint8_t form)
{
	uint16_t delta, on_stack;

	if (form < FORM_ONE_ON_STACK_FAR)
		delta = form % FORM_ONE_ON_STACK;
	else
		delta = class_read_u2(&f->from);
	class_write_u1(f->to, FORM_FULL);
	class_write_u2(f->to, step(f, delta));
	on_stack = apply_frame(f, form);
	write_locals(f);
	class_write_u2(f->to, on_stack);
	copy_types(f, on_stack);
}

/* In the handler only the long is known, and the exception is on the stack. */
static void write_handler_frame(struct frames *f)
{
	uint32_t at = f->method->map->handler_at;

	if ((int64_t)at <= f->new_at) {
		f->error = -EINVAL;
		return;
	}
	class_write_u1(f->to, FORM_FULL);
	class_write_u2(f->to, (uint16_t)(at - f->new_at - 1));
	f->local_count = 0;
	write_locals(f);
	class_write_u2(f->to, 1);
	write_type(f, (struct map_type){TYPE_OBJECT, f->method->throwable});
}

static int write_frames(struct frames *f)
{
	uint16_t count = f->from.size ? class_read_u2(&f->from) : 0;
	size_t count_at = f->to->len;

	class_write_u2(f->to, (uint16_t)(count + f->method->has_handler));
	for (uint32_t i = 0; i < count && !f->error && !f->from.failed; i++) {
		uint8_t form = class_read_u1(&f->from);

		if (form >= 128 && form < FORM_ONE_ON_STACK_FAR)
			f->error = -EINVAL;
		else if (f->method->has_long)
			write_full(f, form);
		else
			copy_frame(f, form);
		if (!f->error && f->to->len - count_at > STACKMAP_MAX)
			f->error = -ERANGE;
	}
	if (f->method->has_handler && !f->error)
		write_handler_frame(f);
	if (f->from.failed || f->from.at != f->from.size)
		f->error = -EINVAL;
	return f->error ? f->error : count + f->method->has_handler;
}

int stackmap_write(const struct stackmap_method *method, struct class_reader old, struct class_writer *to)
{
	struct frames f = {.method = method, .from = old, .to = to, .old_at = -1, .new_at = -1};
	int count;

	if (method->has_long) {
		f.locals = calloc(method->max_locals + 1u, sizeof(*f.locals));
		if (!f.locals)
			return -ENOMEM;
		if (old.size)
			begin_locals(&f);
	}
	count = f.error ? f.error : write_frames(&f);
	free(f.locals);
	return count;
}
