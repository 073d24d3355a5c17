/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "method/bytecode.h"
#include "method/rewrite.h"

#define VERSION 51 /* of Java 7: every JVM has it, and verifies it by its StackMapTable */
#define CLASS_ACCESS 0x1031 /* public final super synthetic */
#define NATIVE_ACCESS 0x0109 /* public static native */
#define OWN_ACCESS 0x010a /* private static native */
#define JAVA_ACCESS 0x0009 /* public static */
#define FIELD_ACCESS 0x000a /* private static */

struct helper {
	struct class_pool pool;
	struct class_writer methods;
	uint16_t this_class;
};

static uint16_t add_text(struct helper *h, const char *text)
{
	return class_pool_utf8(&h->pool, text, strlen(text));
}

static void begin_method(struct helper *h, uint16_t access, const char *name, const char *type, uint16_t attributes)
{
	class_write_u2(&h->methods, access);
	class_write_u2(&h->methods, add_text(h, name));
	class_write_u2(&h->methods, add_text(h, type));
	class_write_u2(&h->methods, attributes);
}

struct helper_code {
	const uint8_t *bytes;
	uint32_t len; /* it ends with a return, to which it jumps */
	uint16_t max_stack, max_locals;
};

static void write_java(struct helper *h, const char *name, const char *type, const struct helper_code *code)
{
	const uint8_t frames[] = {0, 1, (uint8_t)(code->len - 1)}; /* one: the arguments, nothing on the stack */
	struct class_writer *to = &h->methods;

	begin_method(h, JAVA_ACCESS, name, type, 1);
	class_write_u2(to, add_text(h, "Code"));
	class_write_u4(to, 12 + code->len + 6 + sizeof(frames));
	class_write_u2(to, code->max_stack);
	class_write_u2(to, code->max_locals);
	class_write_u4(to, code->len);
	class_write_bytes(to, code->bytes, code->len);
	class_write_u2(to, 0); /* handlers */
	class_write_u2(to, 1); /* attributes */
	class_write_u2(to, add_text(h, "StackMapTable"));
	class_write_u4(to, sizeof(frames));
	class_write_bytes(to, frames, sizeof(frames));
}

/*
 * static void created(Throwable object, int id) {
 *     if (0 >= thresholds[id & (PROBE_PLACES - 1)])
 *         made(object, id);
 * }
 */
static void write_created(struct helper *h, uint16_t thresholds)
{
	uint16_t made = class_pool_method(&h->pool, h->this_class, PROBE_MADE, PROBE_CREATED_TYPE);
	const uint8_t code[] = {
		OP_LCONST_0, OP_GETSTATIC, (uint8_t)(thresholds >> 8), (uint8_t)thresholds,
		OP_ILOAD_1, OP_BIPUSH, PROBE_PLACES - 1, OP_IAND, OP_LALOAD, OP_LCMP, OP_IFLT, 0, 8,
		OP_ALOAD_0, OP_ILOAD_1, OP_INVOKESTATIC, (uint8_t)(made >> 8), (uint8_t)made,
		OP_RETURN,
	};

	write_java(h, PROBE_CREATED, PROBE_CREATED_TYPE, &(struct helper_code){code, sizeof(code), 5, 2});
}

/*
 * static void returned(long begin, int id) {
 *     long time = System.nanoTime() - begin;
 *     if (time >= thresholds[id & (PROBE_PLACES - 1)])
 *         timed(begin, time, id);
 * }
 */
static void write_returned(struct helper *h, uint16_t thresholds)
{
	static const char system_class[] = "java/lang/System";
	uint16_t nano_time = class_pool_method(
		&h->pool, class_pool_class(&h->pool, system_class, strlen(system_class)), "nanoTime", "()J");
	uint16_t timed = class_pool_method(&h->pool, h->this_class, PROBE_TIMED, PROBE_TIMED_TYPE);
	const uint8_t code[] = {
		OP_INVOKESTATIC, (uint8_t)(nano_time >> 8), (uint8_t)nano_time,
		OP_LLOAD_0, OP_LSUB, OP_LSTORE_3,
		OP_LLOAD_3, OP_GETSTATIC, (uint8_t)(thresholds >> 8), (uint8_t)thresholds,
		OP_ILOAD_2, OP_BIPUSH, PROBE_PLACES - 1, OP_IAND, OP_LALOAD, OP_LCMP, OP_IFLT, 0, 9,
		OP_LLOAD_0, OP_LLOAD_3, OP_ILOAD_2, OP_INVOKESTATIC, (uint8_t)(timed >> 8), (uint8_t)timed,
		OP_RETURN,
	};

	write_java(h, PROBE_RETURNED, PROBE_RETURNED_TYPE, &(struct helper_code){code, sizeof(code), 5, 5});
}

void helper_class_write(const char *name, struct class_writer *to)
{
	struct helper h = {.pool = {.next = 1}};
	uint16_t super_class, field, field_type, thresholds;

	h.this_class = class_pool_class(&h.pool, name, strlen(name));
	super_class = class_pool_class(&h.pool, "java/lang/Object", strlen("java/lang/Object"));
	field = add_text(&h, PROBE_THRESHOLDS);
	field_type = add_text(&h, PROBE_THRESHOLDS_TYPE);
	begin_method(&h, NATIVE_ACCESS, PROBE_CALLED, PROBE_CALLED_TYPE, 0);
	begin_method(&h, OWN_ACCESS, PROBE_MADE, PROBE_CREATED_TYPE, 0);
	begin_method(&h, OWN_ACCESS, PROBE_TIMED, PROBE_TIMED_TYPE, 0);
	begin_method(&h, NATIVE_ACCESS, PROBE_NEVER, "()V", 0);
	thresholds = class_pool_field(&h.pool, h.this_class, PROBE_THRESHOLDS, PROBE_THRESHOLDS_TYPE);
	write_created(&h, thresholds);
	write_returned(&h, thresholds);
	class_write_u4(to, 0xcafebabe);
	class_write_u4(to, VERSION);
	class_write_u2(to, (uint16_t)h.pool.next);
	class_write_bytes(to, h.pool.added.bytes, h.pool.added.len);
	class_write_u2(to, CLASS_ACCESS);
	class_write_u2(to, h.this_class);
	class_write_u2(to, super_class);
	class_write_u2(to, 0); /* interfaces */
	class_write_u2(to, 1);
	class_write_u2(to, FIELD_ACCESS);
	class_write_u2(to, field);
	class_write_u2(to, field_type);
	class_write_u2(to, 0); /* attributes */
	class_write_u2(to, 6);
	class_write_bytes(to, h.methods.bytes, h.methods.len);
	class_write_u2(to, 0); /* attributes */
	to->failed |= h.pool.added.failed || h.methods.failed;
	class_writer_free(&h.pool.added);
	class_writer_free(&h.methods);
}
