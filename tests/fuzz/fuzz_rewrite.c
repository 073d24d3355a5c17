/* SPDX-License-Identifier: MIT */
/*
 * A class file, whose methods all get probes. The corpus is the classes of tests/workloads. What is made of a class is
 * a class file; each method that was changed is sound: instructions, jumps, handlers, lines and stack maps.
 */
#include "method/bytecode.c"
#include "method/classfile.c"
#include "method/rewrite.c"
#include "method/stackmap.c"

#include "fuzz.h"

#define HELPER "java/lang/Helper"

struct wish {
	struct probe probes[3];
	uint32_t count;
};

static uint32_t choose_all(void *context, const struct rewrite_method *method, struct probe probes[PROBES_MAX])
{
	const struct wish *wish = context;

	FUZZ_CHECK(method->name.at && method->descriptor.at && method->class.len);
	memcpy(probes, wish->probes, wish->count * sizeof(*probes));
	return wish->count;
}

/* ---- one method's code ---- */

struct sound {
	struct code code;
	bool *begins; /* by bci: an instruction begins there */
};

static void expect_begins(const struct sound *s, int64_t bci)
{
	FUZZ_CHECK(bci >= 0 && bci < s->code.len && s->begins[bci]);
}

static void see_jump(void *context, uint32_t bci, int64_t target)
{
	expect_begins(context, target);
}

static void check_instructions(struct sound *s)
{
	const struct code *code = &s->code;

	FUZZ_CHECK(code->len && code->len <= BYTECODE_MAX);
	for (uint32_t bci = 0, bytes; bci < code->len; bci += bytes) {
		bytes = bytecode_length(code->bytes, code->len, bci);
		FUZZ_CHECK(bytes);
		s->begins[bci] = true;
	}
	for (uint32_t bci = 0; bci < code->len; bci++)
		if (s->begins[bci])
			bytecode_targets(code->bytes, bci, see_jump, s);
}

static void check_handlers(const struct sound *s)
{
	for (uint32_t i = 0; i < s->code.handler_count; i++) {
		const uint8_t *at = s->code.handlers + 8 * i;
		uint16_t begin = class_u2_at(at), end = class_u2_at(at + 2);

		FUZZ_CHECK(begin < end && (end == s->code.len || s->begins[end]));
		expect_begins(s, begin);
		expect_begins(s, class_u2_at(at + 4));
	}
}

static void check_lines(const struct sound *s, struct class_reader from)
{
	for (uint32_t left = class_read_u2(&from); left; left--) {
		expect_begins(s, class_read_u2(&from));
		class_read_u2(&from);
	}
	FUZZ_CHECK(!from.failed && from.at == from.size);
}

static void check_types(const struct sound *s, struct class_reader *from, uint32_t count)
{
	for (; count; count--) {
		uint8_t tag = class_read_u1(from);

		FUZZ_CHECK(tag < TYPE_MAX);
		if (tag == TYPE_OBJECT)
			class_read_u2(from);
		else if (tag == TYPE_UNINITIALIZED)
			expect_begins(s, class_read_u2(from));
	}
}

/* Only the forms that are written. */
static void check_frames(const struct sound *s, struct class_reader from)
{
	int64_t bci = -1;

	FUZZ_CHECK(from.size <= STACKMAP_MAX + (1u << 19));
	for (uint32_t left = class_read_u2(&from); left; left--) {
		uint8_t form = class_read_u1(&from);

		FUZZ_CHECK(form >= FORM_ONE_ON_STACK_FAR);
		bci += class_read_u2(&from) + 1;
		expect_begins(s, bci);
		if (form == FORM_ONE_ON_STACK_FAR)
			check_types(s, &from, 1);
		else if (form >= FORM_APPEND && form < FORM_FULL)
			check_types(s, &from, form - FORM_APPEND + 1u);
		for (int i = 0; form == FORM_FULL && i < 2; i++)
			check_types(s, &from, class_read_u2(&from));
	}
	FUZZ_CHECK(!from.failed && from.at == from.size);
}

static void check_attributes(const struct class_file *class, const struct sound *s)
{
	struct class_reader from = s->code.attributes;

	for (uint32_t left = class_read_u2(&from); left; left--) {
		struct class_text name = class_utf8(class, class_read_u2(&from));
		struct class_reader part = class_read_part(&from, class_read_u4(&from));

		if (class_text_is(name, "StackMapTable"))
			check_frames(s, part);
		else if (class_text_is(name, "LineNumberTable"))
			check_lines(s, part);
	}
	FUZZ_CHECK(!from.failed && from.at == from.size);
}

static void check_code(const struct class_file *class, struct class_reader from)
{
	struct sound s;

	FUZZ_CHECK(read_code(&s.code, from));
	s.begins = calloc(s.code.len + 1, sizeof(*s.begins));
	FUZZ_CHECK(s.begins);
	check_instructions(&s);
	check_handlers(&s);
	check_attributes(class, &s);
	free(s.begins);
}

static void check_method(const struct class_file *class, const struct method *method)
{
	struct class_reader from = method->attributes;

	for (uint32_t left = method->attribute_count; left; left--) {
		struct class_text name = class_utf8(class, class_read_u2(&from));
		struct class_reader part = class_read_part(&from, class_read_u4(&from));

		if (class_text_is(name, "Code"))
			check_code(class, part);
	}
	FUZZ_CHECK(!from.failed);
}

/* ---- whole classes ---- */

/* Returns how many methods have changed, and checks them. */
static uint32_t check_methods(const struct class_file *before, const struct class_file *after)
{
	struct class_reader old = {.bytes = before->bytes, .size = before->size, .at = before->methods_at};
	struct class_reader new = {.bytes = after->bytes, .size = after->size, .at = after->methods_at};
	uint32_t count = class_read_u2(&old), changed = 0;

	FUZZ_CHECK(class_read_u2(&new) == count);
	for (; count; count--) {
		struct method one = read_method(&old), other = read_method(&new);

		FUZZ_CHECK(one.access == other.access);
		if (one.bytes == other.bytes && !memcmp(one.begin, other.begin, one.bytes))
			continue;
		FUZZ_CHECK(!(one.access & (ACC_ABSTRACT | ACC_NATIVE)));
		check_method(after, &other);
		changed++;
	}
	FUZZ_CHECK(before->size - old.at == after->size - new.at);
	return changed;
}

static void check_class(const uint8_t *old, uint32_t old_size, const uint8_t *new, uint32_t new_size,
			uint32_t methods)
{
	struct class_file before, after;

	FUZZ_CHECK(!class_open(&before, old, old_size) && !class_open(&after, new, new_size));
	FUZZ_CHECK(new_size <= old_size + POOL_MAX + GROWTH_MAX + (1u << 20));
	FUZZ_CHECK(before.this_name.len == after.this_name.len);
	FUZZ_CHECK(check_methods(&before, &after) <= methods);
	class_close(&before);
	class_close(&after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct wish wishes[] = {
		{{{.kind = PROBE_CALL, .id = 1}}, 1},
		{{{.kind = PROBE_CALL, .id = 1}, {.kind = PROBE_TIME, .id = 2}}, 2},
		{{{.kind = PROBE_CREATE, .id = 3}}, 1},
	};
	struct input input = {data, size};
	uint8_t *bytes = input_block(&input, size);

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		struct rewrite rewrite = {
			.helper = HELPER, .choose = choose_all, .context = (void *)(uintptr_t)&wishes[i]};
		uint8_t *changed = NULL;
		uint32_t changed_size = 0;
		int err = rewrite_class(&rewrite, bytes, (uint32_t)size, &changed, &changed_size);

		FUZZ_CHECK(err == 1 || err == 0 || err == -EINVAL || err == -ERANGE);
		FUZZ_CHECK((err == 1) == (changed != NULL) && (err != 1 || rewrite.methods));
		if (err == 1)
			check_class(bytes, (uint32_t)size, changed, changed_size, rewrite.methods);
		free(changed);
	}
	free(bytes);
	return 0;
}
