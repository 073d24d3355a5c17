/* SPDX-License-Identifier: MIT */
#include "helper_class.h"

#include <string.h>

#include "bytecode.h"
#include "duet_agent.h"
#include "rewrite.h"

#define VERSION 51 /* of Java 7: every JVM has it, and verifies it by its StackMapTable */
#define CLASS_ACCESS 0x1031 /* public final super synthetic */
#define NATIVE_ACCESS 0x0109 /* public static native */
#define TIMED_ACCESS 0x010a /* private static native */
#define RETURNED_ACCESS 0x0009 /* public static */
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

/*
 * static void returned(long begin, int id) {
 *     long time = System.nanoTime() - begin;
 *     if (time >= thresholds[id & (DUET_MAX_EVENTS - 1)])
 *         timed(begin, time, id);
 * }
 */
static void write_returned(struct helper *h)
{
	static const char system_class[] = "java/lang/System";
	uint16_t nano_time = class_pool_method(
		&h->pool, class_pool_class(&h->pool, system_class, strlen(system_class)), "nanoTime", "()J");
	uint16_t timed = class_pool_method(&h->pool, h->this_class, PROBE_TIMED, PROBE_TIMED_TYPE);
	uint16_t thresholds = class_pool_field(&h->pool, h->this_class, PROBE_THRESHOLDS, PROBE_THRESHOLDS_TYPE);
	const uint8_t code[] = {
		OP_INVOKESTATIC, (uint8_t)(nano_time >> 8), (uint8_t)nano_time,
		OP_LLOAD_0, OP_LSUB, OP_LSTORE_3,
		OP_LLOAD_3, OP_GETSTATIC, (uint8_t)(thresholds >> 8), (uint8_t)thresholds,
		OP_ILOAD_2, OP_BIPUSH, DUET_MAX_EVENTS - 1, OP_IAND, OP_LALOAD, OP_LCMP, OP_IFLT, 0, 9,
		OP_LLOAD_0, OP_LLOAD_3, OP_ILOAD_2, OP_INVOKESTATIC, (uint8_t)(timed >> 8), (uint8_t)timed,
		OP_RETURN,
	};
	const uint8_t frames[] = {0, 1, sizeof(code) - 1}; /* one: the same locals, nothing on the stack */
	struct class_writer *to = &h->methods;

	begin_method(h, RETURNED_ACCESS, PROBE_RETURNED, PROBE_RETURNED_TYPE, 1);
	class_write_u2(to, add_text(h, "Code"));
	class_write_u4(to, 12 + sizeof(code) + 6 + sizeof(frames));
	class_write_u2(to, 5); /* max_stack */
	class_write_u2(to, 5); /* max_locals */
	class_write_u4(to, sizeof(code));
	class_write_bytes(to, code, sizeof(code));
	class_write_u2(to, 0); /* handlers */
	class_write_u2(to, 1); /* attributes */
	class_write_u2(to, add_text(h, "StackMapTable"));
	class_write_u4(to, sizeof(frames));
	class_write_bytes(to, frames, sizeof(frames));
}

void helper_class_write(const char *name, struct class_writer *to)
{
	struct helper h = {.pool = {.next = 1}};
	uint16_t super_class, field, field_type;

	h.this_class = class_pool_class(&h.pool, name, strlen(name));
	super_class = class_pool_class(&h.pool, "java/lang/Object", strlen("java/lang/Object"));
	field = add_text(&h, PROBE_THRESHOLDS);
	field_type = add_text(&h, PROBE_THRESHOLDS_TYPE);
	begin_method(&h, NATIVE_ACCESS, PROBE_CALLED, PROBE_CALLED_TYPE, 0);
	begin_method(&h, NATIVE_ACCESS, PROBE_CREATED, PROBE_CREATED_TYPE, 0);
	begin_method(&h, TIMED_ACCESS, PROBE_TIMED, PROBE_TIMED_TYPE, 0);
	begin_method(&h, NATIVE_ACCESS, PROBE_NEVER, "()V", 0);
	write_returned(&h);
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
	class_write_u2(to, 5);
	class_write_bytes(to, h.methods.bytes, h.methods.len);
	class_write_u2(to, 0); /* attributes */
	to->failed |= h.pool.added.failed || h.methods.failed;
	class_writer_free(&h.pool.added);
	class_writer_free(&h.methods);
}
