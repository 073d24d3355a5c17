/* SPDX-License-Identifier: MIT */
#include "method/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "method/bytecode.h"

#define ACC_STATIC 0x0008
#define ACC_ABSTRACT 0x0400
#define FIRST_STACKMAP 50 /* version of class files that have StackMapTable */
#define MOST_PUSHED 3 /* stack words of PROBE_RETURNED's arguments */
/* Bytes of new constants, and by which all methods together may grow. Methods beyond are left as they are. */
#define POOL_MAX (4u << 20)
#define GROWTH_MAX (16u << 20)

/* The constants that inserted code refers to; 0: not added yet. */
struct constants {
	uint16_t helper, nano_time, throwable, stackmap_name;
	uint16_t probes[PROBE_KINDS];
};

struct rewriting {
	struct rewrite *rewrite;
	struct class_file class;
	struct class_pool pool;
	struct constants constants;
	struct class_writer methods;
};

/* A method's Code attribute, in place. */
struct code {
	uint16_t max_stack, max_locals;
	const uint8_t *bytes;
	uint32_t len;
	uint16_t handler_count;
	const uint8_t *handlers; /* 8 bytes each */
	struct class_reader attributes; /* from their number on */
};

/* A method that is rewritten. */
struct changing {
	struct rewriting *r;
	const struct rewrite_method *method;
	bool is_static, has_time;
	struct code code;
	struct bytecode_insertion insertion;
	struct bytecode_map map;
	struct class_writer *to;
	int error;
};

/* ---- constants ---- */

static uint16_t probe_method(struct rewriting *r, enum probe_kind kind)
{
	static const struct {
		const char *name, *type;
	} methods[] = {
		[PROBE_CALL] = {PROBE_CALLED, PROBE_CALLED_TYPE},
		[PROBE_TIME] = {PROBE_RETURNED, PROBE_RETURNED_TYPE},
		[PROBE_CREATE] = {PROBE_CREATED, PROBE_CREATED_TYPE},
	};
	struct constants *known = &r->constants;

	if (!known->helper)
		known->helper = class_pool_class(&r->pool, r->rewrite->helper, strlen(r->rewrite->helper));
	if (!known->probes[kind])
		known->probes[kind] =
			class_pool_method(&r->pool, known->helper, methods[kind].name, methods[kind].type);
	return known->probes[kind];
}

static uint16_t nano_time(struct rewriting *r)
{
	static const char name[] = "java/lang/System";

	if (!r->constants.nano_time)
		r->constants.nano_time = class_pool_method(&r->pool, class_pool_class(&r->pool, name, strlen(name)),
							   "nanoTime", "()J");
	return r->constants.nano_time;
}

/* ---- what is inserted ---- */

static void put_op(struct class_writer *to, enum bytecode_op op, uint16_t operand)
{
	class_write_u1(to, (uint8_t)op);
	class_write_u2(to, operand);
}

/* Loads or stores a long. */
static void put_local(struct class_writer *to, enum bytecode_op op, uint16_t local)
{
	if (local < 256) {
		class_write_u1(to, (uint8_t)op);
		class_write_u1(to, (uint8_t)local);
	} else {
		class_write_u1(to, OP_WIDE);
		put_op(to, op, local);
	}
}

/* Inserts the calls of all probes of this kind. Returns true if there are any. */
static bool insert_probes(struct changing *c, enum probe_kind kind, const struct probe *probes, uint32_t count)
{
	struct class_writer *to = kind == PROBE_CALL ? &c->insertion.entry : &c->insertion.exit;
	bool has_any = false;

	for (uint32_t i = 0; i < count; i++) {
		if (probes[i].kind != kind)
			continue;
		if (kind == PROBE_TIME)
			put_local(to, OP_LLOAD, c->code.max_locals);
		else if (kind == PROBE_CREATE)
			class_write_u1(to, OP_ALOAD_0);
		put_op(to, OP_SIPUSH, (uint16_t)probes[i].id);
		put_op(to, OP_INVOKESTATIC, probe_method(c->r, kind));
		has_any = true;
	}
	return has_any;
}

/* The time is taken last at the entry, and what it takes to leave by an exception is the same as by a return. */
static void insert(struct changing *c, const struct probe *probes, uint32_t count)
{
	insert_probes(c, PROBE_CALL, probes, count);
	c->has_time = insert_probes(c, PROBE_TIME, probes, count);
	if (c->has_time) {
		put_op(&c->insertion.entry, OP_INVOKESTATIC, nano_time(c->r));
		put_local(&c->insertion.entry, OP_LSTORE, c->code.max_locals);
		class_write_bytes(&c->insertion.handler, c->insertion.exit.bytes, c->insertion.exit.len);
		class_write_u1(&c->insertion.handler, OP_ATHROW);
	}
	insert_probes(c, PROBE_CREATE, probes, count);
}

/* ---- the Code attribute ---- */

static bool read_code(struct code *code, struct class_reader from)
{
	*code = (struct code){.max_stack = class_read_u2(&from), .max_locals = class_read_u2(&from)};
	code->len = class_read_u4(&from);
	code->bytes = class_read_bytes(&from, code->len);
	code->handler_count = class_read_u2(&from);
	code->handlers = class_read_bytes(&from, 8u * code->handler_count);
	code->attributes = class_read_part(&from, from.failed ? 0 : from.size - from.at);
	return !from.failed;
}

/* Where the instruction at `bci` is now, or the end of the code. */
static uint16_t mapped(struct changing *c, uint32_t bci)
{
	uint32_t at = bytecode_map_at(&c->map, bci);

	if (at == BYTECODE_NOWHERE)
		c->error = -EINVAL;
	return (uint16_t)at;
}

/* The same, but the end is not valid: our handler may be there. */
static uint16_t mapped_instruction(struct changing *c, uint32_t bci)
{
	if (bci >= c->map.len)
		c->error = -EINVAL;
	return mapped(c, bci);
}

static void write_handler(struct changing *c, uint32_t begin, uint32_t end, uint16_t handler)
{
	class_write_u2(c->to, (uint16_t)begin);
	class_write_u2(c->to, (uint16_t)end);
	class_write_u2(c->to, handler);
	class_write_u2(c->to, 0); /* for every exception */
}

/* Puts the handler behind all others, for all but returns, in constructors from the object on. Returns the entries. */
static uint32_t write_own_handlers(struct changing *c)
{
	const struct code *code = &c->code;
	int begin = class_text_is(c->method->name, "<init>")
			    ? constructor_begin(&c->r->class, code->bytes, code->len)
			    : 0;
	uint32_t from, count = 0;

	if (begin < 0)
		return 0;
	from = mapped(c, (uint32_t)begin);
	for (uint32_t bci = (uint32_t)begin, bytes; bci < code->len; bci += bytes) {
		uint32_t here = c->map.at[bci];

		bytes = bytecode_length(code->bytes, code->len, bci);
		if (!bytecode_is_return(code->bytes[bci]))
			continue;
		if (from < here)
			write_handler(c, from, here, (uint16_t)c->map.handler_at);
		count += from < here;
		from = c->map.at[bci + bytes];
	}
	if (from < c->map.handler_at)
		write_handler(c, from, c->map.handler_at, (uint16_t)c->map.handler_at);
	return count + (from < c->map.handler_at);
}

static void write_handlers(struct changing *c)
{
	size_t count_at = c->to->len;
	uint32_t count = c->code.handler_count, own;

	class_write_u2(c->to, 0);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *at = c->code.handlers + 8 * i;

		if (class_u2_at(at) >= class_u2_at(at + 2))
			c->error = -EINVAL;
		class_write_u2(c->to, mapped_instruction(c, class_u2_at(at)));
		class_write_u2(c->to, mapped(c, class_u2_at(at + 2)));
		class_write_u2(c->to, mapped_instruction(c, class_u2_at(at + 4)));
		class_write_bytes(c->to, at + 6, 2);
	}
	own = c->has_time ? write_own_handlers(c) : 0;
	if (count + own > UINT16_MAX)
		c->error = -ERANGE;
	class_put_u2(c->to, count_at, (uint16_t)(count + own));
}

/* LineNumberTable, or, with `has_length`, those of variables. The first line has what is inserted at the entry, too. */
static void write_table(struct changing *c, struct class_reader from, bool has_length)
{
	const uint32_t rest_bytes = has_length ? 6 : 2;
	uint16_t count = class_read_u2(&from);

	class_write_u2(c->to, count);
	for (; count && !from.failed; count--) {
		uint16_t bci = class_read_u2(&from), begin = bci ? mapped(c, bci) : 0;
		uint16_t end = has_length ? mapped(c, (uint32_t)bci + class_read_u2(&from)) : 0;
		const uint8_t *rest = class_read_bytes(&from, rest_bytes);

		if (!has_length && bci >= c->map.len)
			c->error = -EINVAL;
		class_write_u2(c->to, begin);
		if (has_length)
			class_write_u2(c->to, (uint16_t)(end - begin));
		class_write_bytes(c->to, rest, rest ? rest_bytes : 0);
	}
	if (from.failed || from.at != from.size)
		c->error = -EINVAL;
}

/* Our handler's code has a frame even if nothing leads to it: code without a frame cannot be verified. */
static void write_stackmap(struct changing *c, struct class_reader old)
{
	static const char throwable_name[] = "java/lang/Throwable";
	uint16_t *throwable = &c->r->constants.throwable;
	struct stackmap_method method = {
		.class = &c->r->class,
		.name = c->method->name,
		.descriptor = c->method->descriptor,
		.is_static = c->is_static,
		.max_locals = c->code.max_locals,
		.has_long = c->has_time,
		.has_handler = c->has_time,
		.map = &c->map,
		.pool = &c->r->pool,
	};
	int count;

	if (c->has_time && !*throwable)
		*throwable = class_pool_class(&c->r->pool, throwable_name, strlen(throwable_name));
	method.throwable = *throwable;
	count = stackmap_write(&method, old, c->to);
	if (count < 0)
		c->error = count;
}

/* Begins an attribute. Returns where its length is to be put. */
static size_t begin_attribute(struct class_writer *to, uint16_t name)
{
	class_write_u2(to, name);
	class_write_u4(to, 0);
	return to->len;
}

static void end_attribute(struct class_writer *to, size_t begin)
{
	class_put_u4(to, begin - 4, (uint32_t)(to->len - begin));
}

/* Writes an attribute of the code if the JVM needs it. The JVM itself reads no others, such as type annotations. */
static bool write_attribute(struct changing *c, uint16_t name_index, struct class_reader from)
{
	struct class_text name = class_utf8(&c->r->class, name_index);
	size_t begin = begin_attribute(c->to, name_index);

	if (class_text_is(name, "StackMapTable")) {
		write_stackmap(c, from);
	} else if (class_text_is(name, "LineNumberTable")) {
		write_table(c, from, false);
	} else if (class_text_is(name, "LocalVariableTable") || class_text_is(name, "LocalVariableTypeTable")) {
		write_table(c, from, true);
	} else {
		c->to->len = c->to->failed ? c->to->len : begin - 6;
		return false;
	}
	end_attribute(c->to, begin);
	return true;
}

static void write_attributes(struct changing *c)
{
	struct class_reader from = c->code.attributes;
	size_t count_at = c->to->len, begin;
	uint16_t left = class_read_u2(&from);
	uint32_t count = 0;
	bool has_frames = c->r->class.major < FIRST_STACKMAP;
	uint16_t *stackmap_name = &c->r->constants.stackmap_name;

	class_write_u2(c->to, 0);
	for (; left && !from.failed && !c->error; left--) {
		uint16_t name = class_read_u2(&from);
		struct class_reader part = class_read_part(&from, class_read_u4(&from));

		has_frames |= class_text_is(class_utf8(&c->r->class, name), "StackMapTable");
		count += write_attribute(c, name, part);
	}
	if (from.failed || (!c->error && from.at != from.size))
		c->error = -EINVAL;
	if (c->has_time && !has_frames) {
		if (!*stackmap_name)
			*stackmap_name = class_pool_utf8(&c->r->pool, "StackMapTable", strlen("StackMapTable"));
		begin = begin_attribute(c->to, *stackmap_name);
		write_stackmap(c, (struct class_reader){0});
		end_attribute(c->to, begin);
		count++;
	}
	if (count > UINT16_MAX && !c->error)
		c->error = -ERANGE;
	class_put_u2(c->to, count_at, (uint16_t)count);
}

static void write_code(struct changing *c)
{
	uint32_t max_stack = c->code.max_stack + MOST_PUSHED + 1u, max_locals = c->code.max_locals + 2u * c->has_time;

	if (max_stack > UINT16_MAX || max_locals > UINT16_MAX) {
		c->error = -ERANGE;
		return;
	}
	class_write_u2(c->to, (uint16_t)max_stack);
	class_write_u2(c->to, (uint16_t)max_locals);
	class_write_u4(c->to, c->map.new_len);
	c->error = bytecode_write(c->code.bytes, &c->insertion, &c->map, c->to);
	if (c->error)
		return;
	write_handlers(c);
	if (!c->error)
		write_attributes(c);
}

/* Writes the contents of the new attribute. Returns 0, -EINVAL, -ERANGE or -ENOMEM. */
static int change_code(struct rewriting *r, const struct rewrite_method *method, bool is_static,
		       struct class_reader from, const struct probe *probes, uint32_t count)
{
	struct changing c = {.r = r, .method = method, .is_static = is_static, .to = &r->methods};

	if (!read_code(&c.code, from))
		return -EINVAL;
	insert(&c, probes, count);
	c.error = bytecode_lay_out(c.code.bytes, c.code.len, &c.insertion, &c.map);
	if (!c.error) {
		write_code(&c);
		free(c.map.at);
	}
	if (!c.error && (class_pool_is_full(&r->pool) || r->pool.added.len > POOL_MAX ||
			 r->methods.len > (size_t)r->class.size + GROWTH_MAX))
		c.error = -ERANGE;
	if (c.insertion.entry.failed || c.insertion.exit.failed || c.insertion.handler.failed)
		c.error = -ENOMEM;
	class_writer_free(&c.insertion.entry);
	class_writer_free(&c.insertion.exit);
	class_writer_free(&c.insertion.handler);
	return c.error;
}

/* ---- intrinsic methods ---- */

/* Methods whose work compiled code may do without calling them: the platform annotates them (JDK 9+). */

/* Passes an annotation's elements. After one that is neither a number nor a string, the rest is not read. */
static void pass_elements(struct class_reader *from)
{
	uint16_t count = class_read_u2(from);

	for (; count && !from->failed; count--) {
		class_read_bytes(from, 2); /* name */
		if (!memchr("BCDFIJSZs", class_read_u1(from), sizeof("BCDFIJSZs") - 1))
			from->failed = true;
		class_read_bytes(from, 2); /* value */
	}
}

static bool has_annotation(const struct class_file *class, struct class_reader from)
{
	bool has = false;

	for (uint16_t count = class_read_u2(&from); count && !from.failed && !has; count--) {
		struct class_text type = class_utf8(class, class_read_u2(&from));

		has = class_text_is(type, "Ljdk/internal/vm/annotation/IntrinsicCandidate;") || /* JDK 16 */
		      class_text_is(type, "Ljdk/internal/HotSpotIntrinsicCandidate;"); /* JDK 9 */
		pass_elements(&from);
	}
	return has;
}

/* `attributes` are those of a method, without their number. A malformed annotation is none. */
static bool intrinsic_is_annotated(const struct class_file *class, struct class_reader attributes, uint16_t count)
{
	bool is_annotated = false;

	for (; count && !attributes.failed && !is_annotated; count--) {
		struct class_text name = class_utf8(class, class_read_u2(&attributes));
		struct class_reader part = class_read_part(&attributes, class_read_u4(&attributes));

		is_annotated = class_text_is(name, "RuntimeVisibleAnnotations") && has_annotation(class, part);
	}
	return is_annotated;
}

/* ---- methods ---- */

struct method {
	uint16_t access;
	const uint8_t *begin; /* the method's bytes */
	uint32_t bytes;
	struct class_reader attributes; /* after their number */
	uint16_t attribute_count;
};

static struct method read_method(struct class_reader *from)
{
	struct method method = {.begin = from->bytes + from->at};
	uint32_t begin = from->at, attributes;

	method.access = class_read_u2(from);
	class_read_bytes(from, 4);
	method.attribute_count = class_read_u2(from);
	attributes = from->at;
	for (uint32_t i = 0; i < method.attribute_count && !from->failed; i++) {
		class_read_bytes(from, 2);
		class_read_bytes(from, class_read_u4(from));
	}
	method.bytes = from->at - begin;
	method.attributes = (struct class_reader){.bytes = from->bytes + attributes, .size = from->at - attributes};
	return method;
}

/* Writes the method with new code. */
static int write_changed(struct rewriting *r, const struct method *method, const struct rewrite_method *about,
			 const struct probe *probes, uint32_t count)
{
	struct class_reader from = method->attributes;
	int err = 0;

	class_write_bytes(&r->methods, method->begin, 8);
	for (uint32_t i = 0; i < method->attribute_count && !err; i++) {
		uint16_t name = class_read_u2(&from);
		struct class_reader part = class_read_part(&from, class_read_u4(&from));
		size_t begin = begin_attribute(&r->methods, name);

		if (class_text_is(class_utf8(&r->class, name), "Code"))
			err = change_code(r, about, method->access & ACC_STATIC, part, probes, count);
		else
			class_write_bytes(&r->methods, part.bytes, part.size);
		end_attribute(&r->methods, begin);
	}
	return err;
}

/* Writes the method with its probes. Where that is not possible, it is left as it is and counted. */
static int write_method(struct rewriting *r, const struct method *method, const struct rewrite_method *about)
{
	struct rewrite *rewrite = r->rewrite;
	struct probe probes[PROBES_MAX];
	uint32_t count = method->access & ACC_ABSTRACT ? 0 : rewrite->choose(rewrite->context, about, probes);
	struct class_pool pool = r->pool;
	struct constants constants = r->constants;
	size_t before = r->methods.len;
	int err = count && !about->is_native ? write_changed(r, method, about, probes, count) : 0;

	if (err == -ENOMEM || r->methods.failed || r->pool.added.failed)
		return -ENOMEM;
	if (count && !about->is_native && !err) {
		rewrite->methods++;
		return 0;
	}
	rewrite->left += count != 0;
	pool.added.bytes = r->pool.added.bytes; /* may have moved */
	pool.added.size = r->pool.added.size;
	r->pool = pool;
	r->constants = constants;
	r->methods.len = before;
	class_write_bytes(&r->methods, method->begin, method->bytes);
	return 0;
}

static int write_methods(struct rewriting *r, struct class_reader *from)
{
	uint16_t count = class_read_u2(from);
	int err = 0;

	class_write_u2(&r->methods, count);
	for (; count && !err; count--) {
		struct method method = read_method(from);
		struct rewrite_method about = {
			.class = r->class.this_name,
			.name = class_utf8(&r->class, class_u2_at(method.begin + 2)),
			.descriptor = class_utf8(&r->class, class_u2_at(method.begin + 4)),
			.is_native = method.access & ACC_NATIVE,
			.is_intrinsic =
				intrinsic_is_annotated(&r->class, method.attributes, method.attribute_count),
		};

		err = write_method(r, &method, &about);
	}
	return err;
}

/* Puts the parts together. */
static int write_class(struct rewriting *r, uint32_t rest_at, uint8_t **ret, uint32_t *ret_size)
{
	const struct class_file *class = &r->class;
	struct class_writer to = {0};

	class_write_bytes(&to, class->bytes, 8); /* magic and version */
	class_write_u2(&to, (uint16_t)r->pool.next);
	class_write_bytes(&to, class->bytes + 10, class->pool_end - 10);
	class_write_bytes(&to, r->pool.added.bytes, r->pool.added.len);
	class_write_bytes(&to, class->bytes + class->pool_end, class->methods_at - class->pool_end);
	class_write_bytes(&to, r->methods.bytes, r->methods.len);
	class_write_bytes(&to, class->bytes + rest_at, class->size - rest_at);
	if (to.failed || to.len > INT32_MAX) {
		class_writer_free(&to);
		return -ENOMEM;
	}
	*ret = to.bytes;
	*ret_size = (uint32_t)to.len;
	return 1;
}

int rewrite_class(struct rewrite *rewrite, const uint8_t *bytes, uint32_t size, uint8_t **ret, uint32_t *ret_size)
{
	struct rewriting r = {.rewrite = rewrite};
	struct class_reader from;
	int err;

	rewrite->methods = rewrite->left = 0;
	err = class_open(&r.class, bytes, size);
	if (err)
		return err;
	r.pool.next = r.class.pool_count;
	from = (struct class_reader){.bytes = bytes, .size = size, .at = r.class.methods_at};
	err = write_methods(&r, &from);
	if (!err && rewrite->methods)
		err = write_class(&r, from.at, ret, ret_size);
	class_writer_free(&r.pool.added);
	class_writer_free(&r.methods);
	class_close(&r.class);
	return err;
}
