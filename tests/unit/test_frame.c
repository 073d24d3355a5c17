/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include "base/text.h"

static struct profile profile;

static int setup(void **state)
{
	return profile_init(&profile);
}

static int teardown(void **state)
{
	profile_release(&profile);
	return 0;
}

/* Name and suffix. */
static void assert_text(uint32_t id, struct frame_style style, const char *want)
{
	const struct frame *frame = &profile.frames.items[id];
	struct buf text;

	buf_init(&text);
	frame_name(&profile.strings, frame, &style, &text);
	buf_add_str(&text, frame_suffix(frame, &style));
	assert_string_equal(text.data, want);
	buf_release(&text);
}

static void assert_line(const char *text, const char *want)
{
	struct buf line;

	buf_init(&line);
	text_add_line(&line, text);
	assert_string_equal(line.data, want);
	buf_release(&line);
}

static void java_names_follow_the_style(void **state)
{
	uint32_t frame =
		java_frame(&profile, FRAME_COMPILED, "java.lang.String", "equals", "(Ljava/lang/Object;)Z", 42);

	assert_text(frame, (struct frame_style){0}, "java/lang/String.equals");
	assert_text(frame, (struct frame_style){.dotted = true}, "java.lang.String.equals");
	assert_text(frame, (struct frame_style){.simple = true}, "String.equals");
	assert_text(frame, (struct frame_style){.signatures = true}, "java/lang/String.equals(Ljava/lang/Object|)Z");
	assert_text(frame, (struct frame_style){.annotate = true}, "java/lang/String.equals_[j]");
	assert_text(frame, (struct frame_style){.lines = true, .simple = true}, "String.equals:42");
	assert_text(frame, (struct frame_style){.libraries = true}, "java/lang/String.equals");
	assert_text(frame, (struct frame_style){.bci = true, .annotate = true}, "java/lang/String.equals@3_[j]");
	assert_text(frame, (struct frame_style){.bci = true, .lines = true}, "java/lang/String.equals:42");
	assert_text(frame, (struct frame_style){.simple = true, .signatures = true, .lines = true, .annotate = true},
		    "String.equals(Ljava/lang/Object|)Z:42_[j]");
}

#define ASSERT_JAVA(value, is_utf16, want)                                                                             \
	do {                                                                                                           \
		text_from_java(text, (const uint8_t *)(value), sizeof(value) - 1, is_utf16);                           \
		assert_string_equal(text, want);                                                                       \
	} while (0)

static void java_strings_become_utf8(void **state)
{
	char text[2 * 8 + 1];

	ASSERT_JAVA("", false, "");
	ASSERT_JAVA("a\xe9\xff\x7f", false, "a\u00e9\u00ff\x7f");
	ASSERT_JAVA("a\0b", false, "a?b");
	ASSERT_JAVA("\xff\xff\xff\xff\xff\xff\xff\xff", false, "\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff");
	ASSERT_JAVA("", true, "");
	ASSERT_JAVA("a\0\xe9\0\x16\x04", true, "a\u00e9\u0416");
	ASSERT_JAVA("\xe5\x65\xe5\x65\xe5\x65\xe5\x65", true, "\u65e5\u65e5\u65e5\u65e5");
	ASSERT_JAVA("\x3d\xd8\x00\xde.\0", true, "\U0001f600.");
	ASSERT_JAVA("\x3d\xd8.\0", true, "?."); /* half of one */
	ASSERT_JAVA("\x00\xde\x3d\xd8", true, "?\?"); /* the wrong way round */
	ASSERT_JAVA("a\0b", true, "a"); /* a byte too many */
}

/* The number of a hidden class is part of its name, in both spellings that JVMs use. */
static void hidden_classes_keep_their_number(void **state)
{
	uint32_t dot = java_frame(&profile, FRAME_COMPILED, "a.Main$$Lambda.0x00007f", "get", "", 0);
	uint32_t slash = java_frame(&profile, FRAME_COMPILED, "a.Main$$Lambda$14/0x00007f", "get", "", 0);

	assert_text(dot, (struct frame_style){0}, "a/Main$$Lambda.0x00007f.get");
	assert_text(dot, (struct frame_style){.simple = true}, "Main$$Lambda.0x00007f.get");
	assert_text(slash, (struct frame_style){.dotted = true}, "a.Main$$Lambda$14/0x00007f.get");
	assert_text(slash, (struct frame_style){.simple = true}, "Main$$Lambda$14/0x00007f.get");
}

static void kinds_are_annotated(void **state)
{
	static const char *const want[FRAME_KIND_MAX] = {
		[FRAME_KERNEL] = "x_[k]",
		[FRAME_NATIVE] = "x",
		[FRAME_JVM] = "x",
		[FRAME_COMPILED] = "x_[j]",
		[FRAME_INLINED] = "x_[i]",
		[FRAME_INTERPRETED] = "x_[0]",
		[FRAME_JAVA_NATIVE] = "x_[j]",
		[FRAME_THREAD] = "x",
		[FRAME_PROCESS] = "x",
		[FRAME_CONTAINER] = "x",
		[FRAME_WAKER] = "x",
		[FRAME_MARK] = "x",
		[FRAME_CLASS] = "x_[i]",
		[FRAME_STATE] = "x",
		[FRAME_CPU] = "x",
		[FRAME_SPAN] = "x",
	};

	for (int kind = 0; kind < FRAME_KIND_MAX; kind++) {
		uint32_t frame = frame_of(&profile, (enum frame_kind)kind, "x", "");

		assert_text(frame, (struct frame_style){.annotate = true}, want[kind]);
		assert_text(frame, (struct frame_style){0},
			    kind == FRAME_KERNEL || kind == FRAME_CLASS ? want[kind] : "x");
	}
}

static void classes_are_written_with_dots(void **state)
{
	uint32_t frame = frame_of(&profile, FRAME_CLASS, "java.util.Map$Entry[][]", "");

	assert_text(frame, (struct frame_style){0}, "java.util.Map$Entry[][]_[i]");
	assert_text(frame, (struct frame_style){.dotted = true, .annotate = true}, "java.util.Map$Entry[][]");
	assert_text(frame, (struct frame_style){.simple = true}, "Map$Entry[][]_[i]");
	profile.frames.items[frame].bci = FRAME_BCI_OUTSIDE;
	assert_text(frame, (struct frame_style){0}, "java.util.Map$Entry[][]_[k]");
	assert_text(frame, (struct frame_style){.dotted = true, .annotate = true}, "java.util.Map$Entry[][]");
}

static void libraries_stand_before_native_names(void **state)
{
	const struct frame_style style = {.libraries = true};

	assert_text(frame_of(&profile, FRAME_NATIVE, "read", "libc.so.6"), style, "libc.so.6`read");
	assert_text(frame_of(&profile, FRAME_JVM, "x()", "libjvm.so"), style, "libjvm.so`x()");
	assert_text(frame_of(&profile, FRAME_KERNEL, "ext4_read", "ext4"), style, "ext4`ext4_read_[k]");
	assert_text(frame_of(&profile, FRAME_KERNEL, "vfs_read", ""), style, "vfs_read_[k]");
	assert_text(frame_of(&profile, FRAME_NATIVE, "libc.so.6+0x12", "libc.so.6"), style, "libc.so.6+0x12");
}

static void no_name_is_empty(void **state)
{
	for (int kind = 0; kind < FRAME_KIND_MAX; kind++) {
		struct buf text;

		buf_init(&text);
		frame_name(&profile.strings, &(struct frame){.kind = (enum frame_kind)kind}, &(struct frame_style){0},
			   &text);
		assert_string_equal(text.data, kind == FRAME_SPAN ? "[no tag]" : "[unknown]");
		buf_release(&text);
	}
}

static void names_are_one_token(void **state)
{
	assert_text(frame_of(&profile, FRAME_NATIVE, HOSTILE, ""), (struct frame_style){0},
		    "</script><b>\"|\\?[31m????????\xe6\x97\xa5");
	assert_text(java_frame(&profile, FRAME_COMPILED, "a;b\n.C", "m;\r", "", 0), (struct frame_style){0},
		    "a|b?/C.m|?");
}

static void text_is_well_formed(void **state)
{
	assert_line("a;b\tc", "a;b?c");
	assert_line("\xc3\xa9 \xf0\x9f\x94\xa5", "\xc3\xa9 \xf0\x9f\x94\xa5");
	assert_line("\xc0\x80", "??");		 /* NUL of modified UTF-8 */
	assert_line("\xe0\x80\xaf", "???");	 /* overlong */
	assert_line("\xf4\x90\x80\x80", "????"); /* above U+10FFFF */
	assert_line("\xf8\x88\x80\x80\x80", "?????");
	assert_line("\xc2\x9bm", "??m"); /* CSI in one character */
	assert_line("\xe2\x80\xa8|\xe2\x81\xa6", "???|???");
	assert_line("\xe6\x97", "??"); /* ends in the middle */
	assert_line("", "");
}

static void kinds_have_names(void **state)
{
	for (int kind = 0; kind < FRAME_KIND_MAX; kind++)
		assert_true(strlen(frame_kind_name((enum frame_kind)kind)) > 2);
	assert_string_equal(frame_kind_name(FRAME_KIND_MAX), "unknown");
	assert_true(frame_kind_is_java(FRAME_JAVA_NATIVE));
	assert_false(frame_kind_is_java(FRAME_JVM));
}

static void numbers_of_a_run_are_left_out(void **state)
{
	static const struct {
		const char *text, *want;
	} ids[] = {
		{"[main tid=7]", "[main]"}, {"[java pid=12]", "[java]"}, {"[main virtual=33]", "[main virtual]"},
		{"[tid=7]", "[tid]"}, {"[main]", "[main]"}, {"[a=b]", "[a=b]"}, {"[a tid=]", "[a tid=]"},
		{"tid=7", "tid=7"}, {"=7]", "=7]"}, {"", ""},
	};
	static const struct {
		const char *class_name, *want;
	} classes[] = {
		{"a.B$$Lambda/0x00007f80", "a.B$$Lambda.c"}, {"a.B$$Lambda.0x00007f80", "a.B$$Lambda.c"},
		{"a.B$$Lambda$14/0x00007f80", "a.B$$Lambda.c"}, {"a.B$$Lambda$14", "a.B$$Lambda.c"},
		{"a.B$14", "a.B$14.c"}, {"a.LambdaForm$MH/0x12", "a.LambdaForm$MH.c"}, {"14", "14.c"}, {"a.B", "a.B.c"},
	};
	struct intern strings;
	struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		buf_clear(&text);
		buf_add_str(&text, "kept ");
		buf_add_str(&text, ids[i].text);
		frame_cut_id(&text, strlen("kept "));
		assert_string_equal(text.data + strlen("kept "), ids[i].want);
	}
	assert_int_equal(intern_init(&strings), 0);
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		const struct frame frame = {
			.kind = FRAME_COMPILED,
			.class_name = intern_str(&strings, classes[i].class_name),
			.name = intern_str(&strings, "c"),
		};

		buf_clear(&text);
		frame_name(&strings, &frame, &(struct frame_style){.steady = true, .dotted = true}, &text);
		assert_string_equal(text.data, classes[i].want);
	}
	intern_release(&strings);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(java_names_follow_the_style),
		cmocka_unit_test(java_strings_become_utf8),
		cmocka_unit_test(hidden_classes_keep_their_number),
		cmocka_unit_test(kinds_are_annotated),
		cmocka_unit_test(classes_are_written_with_dots),
		cmocka_unit_test(libraries_stand_before_native_names),
		cmocka_unit_test(no_name_is_empty),
		cmocka_unit_test(names_are_one_token),
		cmocka_unit_test(text_is_well_formed),
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(numbers_of_a_run_are_left_out),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
