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

#include "bytecode.c"
#include "classfile.c"
#include "constructor.c"
#include "helper_class.c"
#include "names.c"
#include "rewrite.c"
#include "stackmap.c"
#include "targets.c"

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

	(void)state;
	assert_int_equal(rewritten(&file, &wish, &changed, &rewrite), 1);
	assert_int_equal(rewrite.methods, 1);
	assert_int_equal(class_open(&before, file.bytes, (uint32_t)file.len), 0);
	assert_int_equal(class_open(&after, changed.bytes, (uint32_t)changed.len), 0);
	old = code_of(&before);
	new = code_of(&after);
	assert_int_equal(new.len, old.len + 6);
	assert_int_equal(new.max_locals, old.max_locals);
	assert_int_equal(new.bytes[0], OP_LDC_W);
	assert_int_equal(class_u4_at(after.bytes + after.pool[class_u2_at(new.bytes + 1)] + 1), 7);
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

static void a_call_is_timed_on_all_its_ways_out(void **state)
{
	const struct wish wish = {PROBE_RETURNED, {{.kind = PROBE_TIME, .id = 7, .threshold_ns = 1000}}, 1};
	struct class_writer file = helper(), changed;
	struct rewrite rewrite;
	struct class_file after;
	const uint8_t *frame;
	struct code new;

	(void)state;
	assert_int_equal(rewritten(&file, &wish, &changed, &rewrite), 1);
	assert_int_equal(class_open(&after, changed.bytes, (uint32_t)changed.len), 0);
	new = code_of(&after);
	assert_int_equal(new.max_locals, 7 + 2);
	/* nanoTime, lstore 7 | the code | lload 7, ldc2_w, ldc_w, invokestatic, return | the same, athrow */
	assert_int_equal(new.len, 5 + 21 + 11 + 1 + 11 + 1);
	assert_int_equal(new.bytes[0], OP_INVOKESTATIC);
	assert_int_equal(new.bytes[3], OP_LSTORE);
	assert_int_equal(new.bytes[4], 7);
	assert_int_equal(new.bytes[5 + 21], OP_LLOAD);
	/* The jump to the return leads to the code before it. */
	assert_int_equal(class_u2_at(new.bytes + 5 + 11 + 1), 10);
	assert_int_equal(new.bytes[new.len - 1], OP_ATHROW);
	assert_int_equal(new.handler_count, 1);
	assert_int_equal(class_u2_at(new.handlers), 5);
	assert_int_equal(class_u2_at(new.handlers + 2), 5 + 21);
	assert_int_equal(class_u2_at(new.handlers + 4), 5 + 21 + 12);
	frame = new.attributes.bytes + 8;
	assert_int_equal(class_u2_at(frame), 2);
	assert_int_equal(frame[2], FORM_FULL);
	assert_int_equal(class_u2_at(frame + 3), 5 + 21);
	assert_int_equal(class_u2_at(frame + 5), 6); /* long, long, int, two unused, and the time */
	assert_memory_equal(frame + 7, ((uint8_t[]){4, 4, 1, 0, 0, 4, 0, 0}), 8);
	class_close(&after);
	free(file.bytes);
	free(changed.bytes);
}

static void native_methods_are_left(void **state)
{
	const struct wish wish = {PROBE_CALLED, {{.kind = PROBE_CALL}}, 1}, none = {"nosuch", {{0}}, 1};
	struct class_writer file = helper(), changed;
	struct rewrite rewrite;

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_counted_at_the_entry),
		cmocka_unit_test(a_call_is_timed_on_all_its_ways_out),
		cmocka_unit_test(native_methods_are_left),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(switches_and_jumps_find_their_targets),
		cmocka_unit_test(jumps_that_get_too_long_are_refused),
		cmocka_unit_test(targets_match),
		cmocka_unit_test(names_are_a_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
