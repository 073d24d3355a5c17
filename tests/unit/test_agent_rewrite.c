/* SPDX-License-Identifier: MIT */
/*
 * Class files with probes. The class that is rewritten is the agent's own helper, whose bytes are known; whether JVMs
 * accept what becomes of the classes of a JDK is in tests/system/record_method.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "method/bytecode.c"
#include "method/classfile.c"
#include "method/helper_class.c"
#include "method/names.c"
#include "method/rewrite.c"
#include "method/stackmap.c"

/* ---- whole classes ---- */

struct wish {
	const char *method;
	struct probe probes[2];
	uint32_t count;
};

static uint32_t choose(void *context, const struct rewrite_method *method, struct probe probes[PROBES_MAX])
{
	const struct wish *wish = context;

	if (!class_text_is(method->name, wish->method))
		return 0;
	memcpy(probes, wish->probes, wish->count * sizeof(*probes));
	return wish->count;
}

static struct class_writer helper(void)
{
	struct class_writer file = {0};

	helper_class_write("java/lang/DuetProbe0", &file);
	assert_false(file.failed);
	return file;
}

static int rewritten(const struct class_writer *file, const struct wish *wish, struct class_writer *ret,
		     struct rewrite *rewrite)
{
	uint32_t size = 0;
	int err;

	*rewrite = (struct rewrite){.helper = "java/lang/Other", .choose = choose, .context = (void *)(uintptr_t)wish};
	*ret = (struct class_writer){0};
	err = rewrite_class(rewrite, file->bytes, (uint32_t)file->len, &ret->bytes, &size);
	ret->len = size;
	return err;
}

/* Stores the Code attribute of the method `returned`, which is the last one. */
static struct code code_of(const struct class_file *class)
{
	struct class_reader from = {.bytes = class->bytes, .size = class->size, .at = class->methods_at};
	struct code code = {0};

	for (uint16_t left = class_read_u2(&from); left; left--) {
		struct method method = read_method(&from);

		if (method.attribute_count)
			assert_true(read_code(&code, (struct class_reader){.bytes = method.attributes.bytes + 6,
									   .size = method.attributes.size - 6}));
	}
	assert_false(from.failed);
	assert_non_null(code.bytes);
	return code;
}

static void a_call_is_counted_at_the_entry(void **state)
{
	const struct wish wish = {PROBE_RETURNED, {{.kind = PROBE_CALL, .id = 7}}, 1};
	struct class_writer file = helper(), changed;
	struct rewrite rewrite;
	struct class_file before, after;
	struct code old, new;

	assert_int_equal(rewritten(&file, &wish, &changed, &rewrite), 1);
	assert_int_equal(rewrite.methods, 1);
	assert_int_equal(class_open(&before, file.bytes, (uint32_t)file.len), 0);
	assert_int_equal(class_open(&after, changed.bytes, (uint32_t)changed.len), 0);
	old = code_of(&before);
	new = code_of(&after);
	assert_int_equal(new.len, old.len + 6);
	assert_int_equal(new.max_locals, old.max_locals);
	assert_int_equal(new.bytes[0], OP_SIPUSH);
	assert_int_equal(class_u2_at(new.bytes + 1), 7);
	assert_int_equal(new.bytes[3], OP_INVOKESTATIC);
	assert_memory_equal(new.bytes + 6, old.bytes, old.len); /* its jump is as far as before */
	/* One frame, where the return is now: 251, then the distance. */
	assert_int_equal(class_u2_at(new.attributes.bytes + 8), 1);
	assert_int_equal(new.attributes.bytes[10], FORM_SAME_FAR);
	assert_int_equal(class_u2_at(new.attributes.bytes + 11), old.len - 1 + 6);
	class_close(&before);
	class_close(&after);
	free(file.bytes);
	free(changed.bytes);
}

#define OLD 25 /* bytes of the method's code before its return */
#define OLD_JUMP 16 /* where it jumps to the return */

static void a_call_is_timed_on_all_its_ways_out(void **state)
{
	const struct wish wish = {PROBE_RETURNED, {{.kind = PROBE_TIME, .id = 7}}, 1};
	struct class_writer file = helper(), changed;
	struct rewrite rewrite;
	struct class_file after;
	const uint8_t *frame;
	struct code new;

	assert_int_equal(rewritten(&file, &wish, &changed, &rewrite), 1);
	assert_int_equal(class_open(&after, changed.bytes, (uint32_t)changed.len), 0);
	new = code_of(&after);
	assert_int_equal(new.max_locals, 5 + 2);
	/* nanoTime, lstore 5 | the code | lload 5, sipush, invokestatic, return | the same, athrow */
	assert_int_equal(new.len, 5 + OLD + 8 + 1 + 8 + 1);
	assert_int_equal(new.bytes[0], OP_INVOKESTATIC);
	assert_int_equal(new.bytes[3], OP_LSTORE);
	assert_int_equal(new.bytes[4], 5);
	assert_int_equal(new.bytes[5 + OLD], OP_LLOAD);
	/* The jump to the return leads to the code before it. */
	assert_int_equal(new.bytes[5 + OLD_JUMP], OP_IFLT);
	assert_int_equal(class_u2_at(new.bytes + 5 + OLD_JUMP + 1), OLD - OLD_JUMP);
	assert_int_equal(new.bytes[new.len - 1], OP_ATHROW);
	assert_int_equal(new.handler_count, 1);
	assert_int_equal(class_u2_at(new.handlers), 5);
	assert_int_equal(class_u2_at(new.handlers + 2), 5 + OLD);
	assert_int_equal(class_u2_at(new.handlers + 4), 5 + OLD + 9);
	frame = new.attributes.bytes + 8;
	assert_int_equal(class_u2_at(frame), 2);
	assert_int_equal(frame[2], FORM_FULL);
	assert_int_equal(class_u2_at(frame + 3), 5 + OLD);
	assert_int_equal(class_u2_at(frame + 5), 5); /* long, int, two unused, and the time */
	assert_memory_equal(frame + 7, ((uint8_t[]){4, 1, 0, 0, 4, 0, 0}), 7);
	class_close(&after);
	free(file.bytes);
	free(changed.bytes);
}

/* The JVM keeps every constant that a class has ever had. */
static void constants_are_the_same_for_all_recordings(void **state)
{
	const struct wish wishes[] = {
		{PROBE_RETURNED, {{.kind = PROBE_CALL, .id = 7}, {.kind = PROBE_TIME, .id = 8}}, 2},
		{PROBE_RETURNED, {{.kind = PROBE_CALL, .id = INT16_MAX}, {.kind = PROBE_TIME, .id = 300}}, 2},
	};
	struct class_writer file = helper(), changed[2];
	struct class_file classes[2];
	struct rewrite rewrite;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(rewritten(&file, &wishes[i], &changed[i], &rewrite), 1);
		assert_int_equal(class_open(&classes[i], changed[i].bytes, (uint32_t)changed[i].len), 0);
	}
	assert_int_equal(classes[0].pool_end, classes[1].pool_end);
	assert_memory_equal(classes[0].bytes, classes[1].bytes, classes[0].pool_end);
	for (int i = 0; i < 2; i++) {
		class_close(&classes[i]);
		free(changed[i].bytes);
	}
	free(file.bytes);
}

static void native_methods_are_left(void **state)
{
	const struct wish wish = {PROBE_CALLED, {{.kind = PROBE_CALL}}, 1}, none = {"nosuch", {{0}}, 1};
	struct class_writer file = helper(), changed;
	struct rewrite rewrite;

	assert_int_equal(rewritten(&file, &wish, &changed, &rewrite), 0);
	assert_int_equal(rewrite.left, 1);
	assert_int_equal(rewritten(&file, &none, &changed, &rewrite), 0);
	assert_int_equal(rewrite.left, 0);
	free(file.bytes);
}

/* Whatever the bytes are, nothing after them is read, and the result is a class file. */
static void damaged_files_do_no_harm(void **state)
{
	const struct wish wish = {PROBE_RETURNED, {{.kind = PROBE_CALL}, {.kind = PROBE_TIME}}, 2};
	struct class_writer file = helper(), changed;
	struct rewrite rewrite;
	struct class_file after;

	for (uint32_t len = 0; len < file.len; len++) {
		struct class_writer cut = {.bytes = malloc(len + 1), .len = len};

		memcpy(cut.bytes, file.bytes, len);
		/* The class's own attributes are only copied: their number may be missing. */
		assert_true(rewritten(&cut, &wish, &changed, &rewrite) <= 0 || len >= file.len - 2);
		free(changed.bytes);
		free(cut.bytes);
	}
	for (uint32_t at = 0; at < file.len; at++)
		for (int bit = 0; bit < 8; bit++) {
			file.bytes[at] ^= (uint8_t)(1 << bit);
			if (rewritten(&file, &wish, &changed, &rewrite) > 0) {
				assert_int_equal(class_open(&after, changed.bytes, (uint32_t)changed.len), 0);
				class_close(&after);
			}
			free(changed.bytes);
			file.bytes[at] ^= (uint8_t)(1 << bit);
		}
	free(file.bytes);
}

/* ---- classes made by hand ---- */

/* A class A with one static method m of this descriptor, whose Code attribute has these parts. */
struct made {
	const char *descriptor; /* NULL: "()V" */
	uint16_t max_locals;
	const uint8_t *code;
	uint32_t code_bytes;
	const uint8_t *handlers; /* one; NULL: none */
	const char *attribute; /* its name; NULL: none */
	const uint8_t *contents;
	uint32_t contents_bytes;
	uint8_t surplus; /* bytes behind the attributes */
};

static void put_code(struct class_writer *to, const struct made *made, uint16_t attribute_name)
{
	class_write_u2(to, 2); /* max_stack */
	class_write_u2(to, made->max_locals);
	class_write_u4(to, made->code_bytes);
	class_write_bytes(to, made->code, made->code_bytes);
	class_write_u2(to, made->handlers != NULL);
	class_write_bytes(to, made->handlers, made->handlers ? 8 : 0);
	class_write_u2(to, made->attribute != NULL);
	if (made->attribute) {
		class_write_u2(to, attribute_name);
		class_write_u4(to, made->contents_bytes);
		class_write_bytes(to, made->contents, made->contents_bytes);
	}
	for (uint8_t i = 0; i < made->surplus; i++)
		class_write_u1(to, 0);
}

static struct class_writer make(const struct made *made)
{
	struct class_pool pool = {.next = 1};
	uint16_t this_class = class_pool_class(&pool, "A", 1);
	uint16_t super_class = class_pool_class(&pool, "java/lang/Object", 16);
	uint16_t name = class_pool_utf8(&pool, "m", 1);
	const char *descriptor = made->descriptor ? made->descriptor : "()V";
	uint16_t type = class_pool_utf8(&pool, descriptor, strlen(descriptor));
	uint16_t code_name = class_pool_utf8(&pool, "Code", 4);
	const char *attribute = made->attribute ? made->attribute : "none";
	uint16_t attribute_name = class_pool_utf8(&pool, attribute, strlen(attribute));
	struct class_writer file = {0}, code = {0};

	put_code(&code, made, attribute_name);
	class_write_u4(&file, MAGIC);
	class_write_u4(&file, 52); /* JDK 8 */
	class_write_u2(&file, (uint16_t)pool.next);
	class_write_bytes(&file, pool.added.bytes, pool.added.len);
	class_write_u2(&file, 0);
	class_write_u2(&file, this_class);
	class_write_u2(&file, super_class);
	class_write_u4(&file, 0); /* no interfaces, no fields */
	class_write_u2(&file, 1);
	class_write_u2(&file, ACC_STATIC);
	class_write_u2(&file, name);
	class_write_u2(&file, type);
	class_write_u2(&file, 1);
	class_write_u2(&file, code_name);
	class_write_u4(&file, (uint32_t)code.len);
	class_write_bytes(&file, code.bytes, code.len);
	class_write_u2(&file, 0);
	class_writer_free(&code);
	class_writer_free(&pool.added);
	return file;
}

/* Returns whether the method gets its probe. */
static bool gets_probe(const struct made *made)
{
	const struct wish wish = {"m", {{.kind = PROBE_TIME}}, 1};
	struct class_writer file = make(made), changed;
	struct rewrite rewrite;
	int result = rewritten(&file, &wish, &changed, &rewrite);

	assert_int_equal(rewrite.methods + rewrite.left, 1);
	assert_int_equal(result, rewrite.methods);
	class_writer_free(&file);
	free(changed.bytes);
	return result;
}

static const uint8_t nops[] = {0, 0, 0, 0xb1}; /* nop, nop, nop, return */

#define MADE(...) ((struct made){.code = nops, .code_bytes = sizeof(nops), __VA_ARGS__})
#define BYTES(name, ...) .name = (const uint8_t[]){__VA_ARGS__}

/*
 * A long takes two numbers. Where the pool has only one left, a constant that is added would get the other one, and the
 * constants after it would have other numbers than the probes use.
 */
static void a_pool_that_ends_in_half_a_long_is_refused(void **state)
{
	static const uint8_t long_constant[9] = {TAG_LONG};
	struct class_writer file = helper(), longer = {0};
	struct class_file class, other;
	int err;

	assert_int_equal(class_open(&class, file.bytes, (uint32_t)file.len), 0);
	for (uint16_t numbers = 1; numbers <= 2; numbers++) {
		longer.len = 0;
		class_write_bytes(&longer, file.bytes, 8);
		class_write_u2(&longer, (uint16_t)(class.pool_count + numbers));
		class_write_bytes(&longer, file.bytes + 10, class.pool_end - 10);
		class_write_bytes(&longer, long_constant, sizeof(long_constant));
		class_write_bytes(&longer, file.bytes + class.pool_end, class.size - class.pool_end);
		err = class_open(&other, longer.bytes, (uint32_t)longer.len);
		assert_int_equal(err, numbers == 2 ? 0 : -EINVAL);
		if (!err)
			class_close(&other);
	}
	class_close(&class);
	class_writer_free(&longer);
	class_writer_free(&file);
}

/* Code is put behind a method: what led behind it would lead there. */
static void what_is_invalid_stays_invalid(void **state)
{
	assert_true(gets_probe(&MADE(.surplus = 0)));
	assert_true(gets_probe(&MADE(BYTES(handlers, 0, 0, 0, 3, 0, 3, 0, 0))));
	assert_false(gets_probe(&MADE(BYTES(handlers, 0, 0, 0, 3, 0, 4, 0, 0)))); /* to the end */
	assert_false(gets_probe(&MADE(BYTES(handlers, 0, 3, 0, 3, 0, 3, 0, 0)))); /* of nothing */
	assert_true(gets_probe(&MADE(.attribute = "LineNumberTable", BYTES(contents, 0, 1, 0, 3, 0, 7),
				     .contents_bytes = 6)));
	assert_false(gets_probe(&MADE(.attribute = "LineNumberTable", BYTES(contents, 0, 1, 0, 4, 0, 7),
				      .contents_bytes = 6)));
	assert_false(gets_probe(&MADE(.attribute = "LineNumberTable", BYTES(contents, 0, 1, 0, 3, 0, 7, 0),
				      .contents_bytes = 7)));
	assert_true(gets_probe(&MADE(.attribute = "StackMapTable", BYTES(contents, 0, 1, 3), .contents_bytes = 3)));
	assert_false(gets_probe(&MADE(.attribute = "StackMapTable", BYTES(contents, 0, 1, 4), .contents_bytes = 3)));
	assert_false(gets_probe(&MADE(.descriptor = "(Q)V", .max_locals = 1, .attribute = "StackMapTable",
				      BYTES(contents, 0, 1, 3), .contents_bytes = 3)));
	assert_false(gets_probe(&MADE(.surplus = 1)));
}

/* Each frame of one byte would become one of 65 kB. */
static void short_maps_do_not_grow_without_end(void **state)
{
	static uint8_t code[60000], map[2 + 50000];
	const struct made made = {
		.max_locals = 65000,
		.code = code,
		.code_bytes = sizeof(code),
		.attribute = "StackMapTable",
		.contents = map,
		.contents_bytes = sizeof(map),
	};
	struct rusage usage;
	long before_kb;

	code[sizeof(code) - 1] = 0xb1;
	map[0] = 50000 >> 8;
	map[1] = 50000 & 0xff;
	getrusage(RUSAGE_SELF, &usage);
	before_kb = usage.ru_maxrss;
	assert_false(gets_probe(&made));
	getrusage(RUSAGE_SELF, &usage);
	assert_true(usage.ru_maxrss - before_kb < 64 << 10);
}

/* ---- code ---- */

static void switches_and_jumps_find_their_targets(void **state)
{
	/* 0: goto 20; 3: iconst_0; 4: tableswitch 0 to 1, padded to 8, targets 24, 3, 24; 24: return */
	static const uint8_t code[] = {0xa7, 0, 20, 0x03, 0xaa, 0, 0, 0, 0, 0, 0, 20,	 0, 0,
				       0,    0, 0,  0,	  0,	1, 0, 0, 0, 0, 0xff, 0, 0, 0, 0xb1};
	uint8_t sound[sizeof(code)];
	struct bytecode_insertion insertion = {0};
	struct class_writer to = {0};
	struct bytecode_map map;

	memcpy(sound, code, sizeof(code));
	sound[2] = 28; /* goto the return */
	memcpy(sound + 8, ((uint8_t[]){0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}), 16);
	assert_int_equal(bytecode_length(sound, sizeof(sound), 4), 1 + 3 + 12 + 4);
	/* 24 to 27 are four instructions more */
	memset(sound + 24, 0, 4);
	class_write_u1(&insertion.entry, 0);
	class_write_u2(&insertion.exit, 0);
	assert_int_equal(bytecode_lay_out(sound, sizeof(sound), &insertion, &map), 0);
	assert_int_equal(map.at[0], 1);
	assert_int_equal(map.at[4], 5);
	assert_int_equal(map.at[24], 24); /* the padding is 2 now: one less than the byte at the entry */
	assert_int_equal(map.at[28], 28);
	assert_int_equal(map.at[29], 31);
	assert_int_equal(map.at[5], BYTECODE_NOWHERE);
	assert_int_equal(bytecode_write(sound, &insertion, &map, &to), 0);
	assert_int_equal(to.len, 31);
	assert_int_equal(class_u2_at(to.bytes + 2), 27); /* from 1 to what is before the return */
	assert_int_equal(class_u4_at(to.bytes + 8), 23);
	assert_int_equal((int32_t)class_u4_at(to.bytes + 20), -1);
	free(map.at);
	class_writer_free(&to);
	class_writer_free(&insertion.entry);
	class_writer_free(&insertion.exit);
}

/* A jump that no longer fits its 16 bits. */
static void jumps_that_get_too_long_are_refused(void **state)
{
	static uint8_t code[32772];
	struct bytecode_insertion insertion = {0};
	struct class_writer to = {0};
	struct bytecode_map map;

	memset(code, 0xb1, sizeof(code));
	code[0] = 0xa7; /* goto 32767 */
	code[1] = 0x7f;
	code[2] = 0xff;
	assert_int_equal(bytecode_lay_out(code, sizeof(code), &insertion, &map), 0);
	assert_int_equal(bytecode_write(code, &insertion, &map, &to), 0);
	free(map.at);
	class_writer_free(&to);
	class_write_u1(&insertion.exit, 0);
	assert_int_equal(bytecode_lay_out(code, sizeof(code), &insertion, &map), -ERANGE);
	memset(code + 3, 0, sizeof(code) - 4);
	code[1000] = 0xb1;
	assert_int_equal(bytecode_lay_out(code, sizeof(code), &insertion, &map), 0);
	assert_int_equal(bytecode_write(code, &insertion, &map, &to), -ERANGE);
	free(map.at);
	class_writer_free(&to);
	class_writer_free(&insertion.exit);
}

/* ---- targets and names ---- */

static struct class_text text_of(const char *text)
{
	return (struct class_text){text, (uint16_t)strlen(text)};
}

static bool matches(const char *target_text, const char *class, const char *method, const char *descriptor)
{
	struct method_target target;

	assert_int_equal(target_parse(&target, target_text), 0);
	return target_has_class(&target, text_of(class)) &&
	       target_has_method(&target, text_of(method), text_of(descriptor));
}

static void targets_match(void **state)
{
	struct method_target target;

	assert_true(matches("java.util.HashMap.get", "java/util/HashMap", "get", "()V"));
	assert_false(matches("java.util.HashMap.get", "java/util/HashMap", "getOrDefault", "()V"));
	assert_false(matches("java.util.HashMap.get", "java/util/HashMap$Node", "get", "()V"));
	assert_true(matches("java.util.*.get*", "java/util/HashMap", "getOrDefault", "()V"));
	assert_true(matches("*.*", "a", "b", "()V"));
	assert_true(matches("*.<init>", "a/b", "<init>", "(I)V"));
	assert_true(matches("A.b(I)V", "A", "b", "(I)V"));
	assert_true(matches("A.b(I)", "A", "b", "(I)V"));
	assert_false(matches("A.b(I)J", "A", "b", "(I)V"));
	assert_false(matches("A.b(I)", "A", "b", "(II)V"));
	assert_true(matches("A.*(Ljava/lang/String;)V", "A", "b", "(Ljava/lang/String;)V"));
	assert_int_equal(target_parse(&target, "nodot"), -EINVAL);
	assert_int_equal(target_parse(&target, "A."), -EINVAL);
	assert_int_equal(target_parse(&target, ".b"), -EINVAL);
	assert_int_equal(target_parse(&target, "A.*b"), -EINVAL);
	assert_int_equal(target_parse(&target, "A.b(I"), -EINVAL);
	assert_int_equal(target_parse(&target, ""), -EINVAL);
}

static void names_are_a_set(void **state)
{
	struct class_names names = {0};
	char name[16];

	assert_false(names_has(&names, "a", 1));
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "%d", i % 1000);
		assert_int_equal(names_add(&names, name, strlen(name)), 0);
	}
	assert_int_equal(names.count, 1000);
	assert_true(names_has(&names, "999", 3));
	assert_false(names_has(&names, "999", 2 + 2));
	assert_false(names_has(&names, "1000", 4));
	names_free(&names);
	assert_false(names_has(&names, "999", 3));
}

/* Of two annotations, the first has a string and a boolean. */
static void intrinsic_methods_are_annotated(void **state)
{
	static const char name[] = "RuntimeVisibleAnnotations";
	static const char type[] = "Ljdk/internal/vm/annotation/IntrinsicCandidate;";
	uint8_t attribute[] = {0, 1, 0, 0, 0, 20, 0, 2, 0, 1, 0, 2, 0, 1, 's', 0, 1, 0, 1, 'Z', 0, 1, 0, 2, 0, 0};
	struct class_writer file = {0};
	uint32_t pool[] = {0, 0, 3 + sizeof(name) - 1};
	struct class_file class = {.pool = pool, .pool_count = 3};
	struct class_reader from = {.bytes = attribute, .size = sizeof(attribute)};

	class_write_u1(&file, TAG_UTF8);
	class_write_u2(&file, sizeof(name) - 1);
	class_write_bytes(&file, name, sizeof(name) - 1);
	class_write_u1(&file, TAG_UTF8);
	class_write_u2(&file, sizeof(type) - 1);
	class_write_bytes(&file, type, sizeof(type) - 1);
	class.bytes = file.bytes - 1; /* an offset of 0 is none */
	pool[1]++, pool[2]++;
	assert_true(intrinsic_is_annotated(&class, from, 1));
	assert_false(intrinsic_is_annotated(&class, from, 0));
	attribute[14] = '['; /* an array: what follows is not read */
	assert_false(intrinsic_is_annotated(&class, from, 1));
	attribute[14] = 's';
	attribute[23] = 1; /* another annotation */
	assert_false(intrinsic_is_annotated(&class, from, 1));
	free(file.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_counted_at_the_entry),
		cmocka_unit_test(a_call_is_timed_on_all_its_ways_out),
		cmocka_unit_test(constants_are_the_same_for_all_recordings),
		cmocka_unit_test(native_methods_are_left),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(a_pool_that_ends_in_half_a_long_is_refused),
		cmocka_unit_test(what_is_invalid_stays_invalid),
		cmocka_unit_test(short_maps_do_not_grow_without_end),
		cmocka_unit_test(switches_and_jumps_find_their_targets),
		cmocka_unit_test(jumps_that_get_too_long_are_refused),
		cmocka_unit_test(intrinsic_methods_are_annotated),
		cmocka_unit_test(targets_match),
		cmocka_unit_test(names_are_a_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
