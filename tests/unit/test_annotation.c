/* SPDX-License-Identifier: MIT */
/* Samples by line, by index of the bytecode, by instruction. */
#include "writers/text/annotation.h"

#include "fixtures/profiles.h"

#include <errno.h>

static struct profile profile;
static uint32_t thread;

static uint32_t java(const char *class_name, const char *name, int32_t line, int32_t bci, enum frame_kind kind)
{
	return profile_frame(&profile, &(struct frame){
					       .kind = kind,
					       .name = intern_str(&profile.strings, name),
					       .class_name = intern_str(&profile.strings, class_name),
					       .signature = intern_str(&profile.strings, "()V"),
					       .module = intern_str(&profile.strings, "Main.java"),
					       .line = line,
					       .bci = bci,
				       });
}

/*
 * run:10 calls itself (3 samples, 1 of them in a native function), Main$Inner.call:20 is inlined or interpreted (2 and
 * 4), an object's class is no code (5). Another class with the same ending is not meant.
 */
static int setup(void **state)
{
	uint32_t start, run, again, inner, slow, native, object, other;

	assert_int_equal(profile_init(&profile), 0);
	(void)profile_event(&profile, "cpu", PROFILE_NS, 10 * MS);
	thread = profile_thread(&profile, 1, 2, "main", "java", 0);
	start = frame_of(&profile, FRAME_NATIVE, "start_thread", "libc.so.6");
	run = java("com.acme.Main", "run", 10, 5, FRAME_COMPILED);
	again = java("com.acme.Main", "run", 10, 9, FRAME_COMPILED);
	inner = java("com.acme.Main$Inner", "call", 20, 0, FRAME_INLINED);
	slow = java("com.acme.Main$Inner", "call", 20, 0, FRAME_INTERPRETED);
	native = frame_of(&profile, FRAME_NATIVE, "read", "libc.so.6");
	object = frame_of(&profile, FRAME_CLASS, "java.lang.String", "");
	other = java("com.acme.DoMain", "run", 7, 1, FRAME_COMPILED);
	ADD_STACK(&profile, thread, 2, start, run, again);
	ADD_STACK(&profile, thread, 1, start, run, again, native);
	ADD_STACK(&profile, thread, 2, start, run, inner);
	ADD_STACK(&profile, thread, 4, start, run, slow);
	ADD_STACK(&profile, thread, 5, start, run, object);
	ADD_STACK(&profile, thread, 6, start, other);
	return 0;
}

static int teardown(void **state)
{
	profile_release(&profile);
	return 0;
}

static char *text_of(const char *target, bool html, annotation_source source, void *context)
{
	struct writer_options options;
	struct annotation annotation = {0};
	struct annotation_view view = {
		.annotation = &annotation, .options = &options, .source = source, .source_context = context};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	writer_options_default(&options);
	assert_int_equal(annotation_build(&annotation, &profile, target, &options), 0);
	assert_int_equal((html ? annotation_write_html : annotation_write_text)(&view, out), 0);
	annotation_release(&annotation);
	fclose(out);
	return text;
}

static void assert_text(const char *target, const char *want)
{
	char *text = text_of(target, false, NULL, NULL);

	assert_string_equal(text, want);
	free(text);
}

static void lines_and_bytecodes(void **state)
{
	static const char whole[] = ": 70.00% of 20 samples of cpu pass through it, 65.00% end in it\n\n"
				    "com/acme/Main.java\n   self    total     line\n"
				    " 35.00%   70.00%       10\n 30.00%   30.00%       20\n\n"
				    "com.acme.Main.run()V\n   self    total bytecode\n"
				    " 25.00%   70.00%       @5  line 10\n 10.00%   15.00%       @9  line 10\n\n"
				    "com.acme.Main$Inner.call()V\n   self    total bytecode\n"
				    " 30.00%   30.00%       @0  line 20\n";
	char want[1024];

	snprintf(want, sizeof(want), "Main%s", whole);
	assert_text("Main", want);
	snprintf(want, sizeof(want), "com.acme.Main%s", whole);
	assert_text("com.acme.Main", want);
	assert_text("Main$Inner.call",
		    "Main$Inner.call: 30.00% of 20 samples of cpu pass through it, 30.00% end in it\n\n"
		    "com/acme/Main.java\n   self    total     line\n 30.00%   30.00%       20\n\n"
		    "com.acme.Main$Inner.call()V\n   self    total bytecode\n"
		    " 30.00%   30.00%       @0  line 20\n");
	assert_text("read", "read: 5.00% of 20 samples of cpu pass through it, 5.00% end in it\n\n"
			    "libc.so.6: read\n   self    total     line\n  5.00%    5.00%        -\n");
}

static void others_have_no_samples(void **state)
{
	struct writer_options options;
	struct annotation annotation = {0};

	writer_options_default(&options);
	assert_int_equal(annotation_build(&annotation, &profile, "ain", &options), -ENOENT);
	assert_int_equal(annotation_build(&annotation, &profile, "com.acme.Main.walk", &options), -ENOENT);
	options.event = 1;
	assert_int_equal(annotation_build(&annotation, &profile, "Main", &options), -ENOENT);
}

static const struct source_text *find(void *context, const char *package, const char *file)
{
	assert_string_equal(package, "com/acme");
	assert_string_equal(file, "Main.java");
	return context;
}

/* Three lines around each one with samples, tabs as spaces, and no line that the file has not. */
static void with_the_source(void **state)
{
	struct source_text source = {0};
	char *text;

	buf_init(&source.text);
	for (int line = 1; line <= 21; line++) {
		assert_int_equal(vec_push(&source, source.text.len), 0);
		buf_printf(&source.text, "\tline<%d>;\n", line);
	}
	text = text_of("Main", false, find, &source);
	assert_non_null(strstr(text, "                        7          line<7>;\n"));
	assert_non_null(strstr(text, " 35.00%   70.00%       10          line<10>;\n"));
	assert_non_null(strstr(text, "line<13>;\n              ...\n                       17          line<17>;\n"));
	assert_non_null(strstr(text, "                       21          line<21>;\n\ncom.acme.Main.run"));
	assert_null(strstr(text, "line<6>"));
	assert_null(strstr(text, "line<14>"));
	free(text);
	text = text_of("Main", true, find, &source);
	assert_non_null(strstr(text, "<td>35.00%</td><td>70.00%</td><td>10</td><td>        line&lt;10&gt;;</td>"));
	assert_null(strstr(text, "line<1"));
	free(text);
	vec_release(&source);
	buf_release(&source.text);
}

static const struct code_text *find_code(void *context, const char *module, const char *name)
{
	return !strcmp(module, "libc.so.6") && !strcmp(name, "read") ? context : NULL;
}

static uint32_t native_at(const char *module, int32_t offset)
{
	return profile_frame(&profile, &(struct frame){
					       .kind = FRAME_NATIVE,
					       .name = intern_str(&profile.strings, "read"),
					       .module = intern_str(&profile.strings, module),
					       .bci = offset,
				       });
}

/*
 * A caller's offset is within its call, which a stack that ends there counts for as well; an offset may be behind what
 * is known of the code; another library's function of the same name has no code.
 */
static void by_instruction(void **state)
{
	struct code_text code = {0};
	struct annotation annotation = {.code = find_code, .code_context = &code};
	struct writer_options options;
	struct annotation_view view = {.annotation = &annotation, .options = &options};
	uint32_t call = native_at("libc.so.6", 4 * 20), inside = native_at("libc.so.6", 4 * 20 + 3);
	char *text = NULL;
	FILE *out;
	size_t len;

	ADD_STACK(&profile, thread, 12, inside, call);
	ADD_STACK(&profile, thread, 3, native_at("libc.so.6", 4 * 21 + 1), native_at("libc.so.6", 4 * 40));
	ADD_STACK(&profile, thread, 4, native_at("other.so", 7));
	buf_init(&code.text);
	for (uint32_t i = 0; i < 30; i++) {
		assert_int_equal(vec_push(&code, (struct code_line){4 * i, code.text.len}), 0);
		buf_printf(&code.text, "insn%u", i);
		buf_add(&code.text, "", 1);
	}
	writer_options_default(&options);
	assert_int_equal(annotation_build(&annotation, &profile, "read", &options), 0);
	out = open_memstream(&text, &len);
	assert_int_equal(annotation_write_text(&view, out), 0);
	fclose(out);
	assert_string_equal(strstr(text, "libc.so.6: read\n   self    total     code"),
			    "libc.so.6: read\n   self    total     code\n"
			    "  2.56%    2.56%        -\n"
			    "              ...\n"
			    "                    +0x44  insn17\n"
			    "                    +0x48  insn18\n"
			    "                    +0x4c  insn19\n"
			    " 30.77%   30.77%    +0x50  insn20\n"
			    "           7.69%    +0x54  insn21\n"
			    "                    +0x58  insn22\n"
			    "                    +0x5c  insn23\n"
			    "                    +0x60  insn24\n"
			    "  7.69%    7.69%    +0xa0\n\n"
			    "other.so: read\n   self    total     code\n"
			    " 10.26%   10.26%     +0x7\n");
	free(text);
	annotation_release(&annotation);
	vec_release(&code);
	buf_release(&code.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_and_bytecodes, setup, teardown),
		cmocka_unit_test_setup_teardown(others_have_no_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(with_the_source, setup, teardown),
		cmocka_unit_test_setup_teardown(by_instruction, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
