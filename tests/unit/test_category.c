/* SPDX-License-Identifier: MIT */
/* The kind of work of a stack, and the other options that shape stacks: --skip, --grain, --regex. */
#include <errno.h>

#include "fixtures/profiles.h"
#include "writers/shared/filter.h"
#include "writers/shared/path.h"

struct row {
	const char *category;
	const char *frames[4]; /* root first; a name with '/' is Java, with '!' of libjvm, with '^' a stub */
};

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

static uint32_t frame_named(const char *text)
{
	const char *dot = strrchr(text, '.');
	char class_name[64];

	if (text[0] == '!' || text[0] == '^')
		return frame_of(&profile, FRAME_JVM, text + 1, text[0] == '!' ? "libjvm.so" : "");
	if (!dot || strncmp(text, "java:", 5))
		return frame_of(&profile, FRAME_NATIVE, text, "libc.so.6");
	snprintf(class_name, sizeof(class_name), "%.*s", (int)(dot - text - 5), text + 5);
	return java_frame(&profile, FRAME_COMPILED, class_name, dot + 1, "()V", 1);
}

static void categories(void **state)
{
	static const struct row rows[] = {
		{"[jit]", {"!thread_native_entry", "!CompileBroker::compiler_thread_loop", "!Compile::Optimize", NULL}},
		{"[gc]", {"clone3", "!thread_native_entry", "!WorkerThread::run", "!G1ParScanThreadState::copy"}},
		{"[vm]", {"clone3", "!thread_native_entry", "!VMThread::run", NULL}},
		{"[compiled]", {"clone3", "!thread_native_entry", "java:a.B.run", NULL}},
		{"[compiled]", {"java:a.B.run", "^jlong_disjoint_arraycopy", NULL, NULL}},
		{"[native]", {"java:a.B.run", "read", NULL, NULL}},
		{"[vm]", {"java:a.B.run", "!JVM_Sleep", NULL, NULL}},
		{"[class_load]", {"java:java.lang.ClassLoader.loadClass", "java:a.B.run", NULL, NULL}},
		{"[class_verify]", {"java:a.B.run", "!Verifier::verify", "!ClassVerifier::verify_method", NULL}},
		{"[lambda_init]", {"java:java.lang.invoke.LambdaMetafactory.metafactory", "java:a.B.run", NULL, NULL}},
		{"[vtable_stubs]", {"java:a.B.run", "^itable stub", NULL, NULL}},
		{"[native]", {"main", "read", NULL, NULL}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t frames[4];
		struct path_step steps[4];
		size_t depth = 0;

		while (depth < 4 && rows[i].frames[depth]) {
			frames[depth] = frame_named(rows[i].frames[depth]);
			depth++;
		}
		for (size_t j = 0; j < depth; j++)
			steps[j] = (struct path_step){.frame = &profile.frames.items[frames[depth - 1 - j]]};
		assert_string_equal(category_of(&profile.strings, steps, depth), rows[i].category);
	}
}

static void expressions_match_whole_names(void **state)
{
	const char *items[] = {"a\\.B.*", "x|y"}, *wrong[] = {"a(b"};
	struct opt_strings patterns = {items, 2}, bad = {wrong, 1};
	struct filter filter;
	struct buf why;

	buf_init(&why);
	assert_int_equal(filter_init(&filter, &patterns, true, &why), 0);
	assert_true(filter_has(&filter, "a.B.run"));
	assert_false(filter_has(&filter, "a/B.run"));
	assert_true(filter_has(&filter, "y"));
	assert_false(filter_has(&filter, "xy"));
	filter_release(&filter);
	assert_int_equal(filter_init(&filter, &bad, true, &why), -EINVAL);
	assert_non_null(strstr(why.data, "'a(b' is not a regular expression"));
	patterns.len = 0;
	assert_int_equal(filter_init(&filter, &patterns, true, &why), 0);
	assert_false(filter_has(&filter, "a"));
	filter_release(&filter);
	buf_release(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(categories, setup, teardown),
		cmocka_unit_test(expressions_match_whole_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
