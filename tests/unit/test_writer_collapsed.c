/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include <errno.h>

#include "writers/shared/filter.h"
#include "writers/shared/tree.h"

static struct profile everything;

static int setup(void **state)
{
	profile_of_everything(&everything);
	return 0;
}

static int teardown(void **state)
{
	profile_release(&everything);
	return 0;
}

static struct writer_options defaults(void)
{
	struct writer_options options;

	writer_options_default(&options);
	return options;
}

static void assert_collapsed(const struct profile *profile, const struct writer_options *options, const char *want)
{
	char *text = written("collapsed", profile, options);

	assert_string_equal(text, want);
	free(text);
}

static void styles_match_golden(void **state)
{
	static const struct {
		const char *golden;
		struct frame_style style;
	} cases[] = {
		{"plain.collapsed", {0}},
		{"simple.collapsed", {.simple = true}},
		{"signatures.collapsed", {.signatures = true}},
		{"annotated.collapsed", {.annotate = true}},
		{"libraries.collapsed", {.libraries = true}},
		{"dotted.collapsed", {.dotted = true, .lines = true}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct writer_options options = defaults();
		char *text;

		options.style = cases[i].style;
		text = written("collapsed", &everything, &options);
		assert_golden(cases[i].golden, text);
		free(text);
	}
}

static void threads_and_processes_lead(void **state)
{
	struct writer_options options = defaults();
	char *text;

	options.threads = options.processes = true;
	text = written("collapsed", &everything, &options);
	assert_golden("threads.collapsed", text);
	free(text);
}

static void groups_lead_in_their_order(void **state)
{
	static const struct {
		const char *by, *first;
	} cases[] = {
		{"process", "evil;"},
		{"container", "</script><b>\"|"},
		{"process,container", "evil;</script><b>\"|"},
		{"container,process,thread", "</script><b>\"|"},
		{"thread,process", "</script><b>\"|"},
	};
	struct writer_options options = defaults();
	char *text;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(writer_groups_parse(&options, cases[i].by), 0);
		text = written("collapsed", &everything, &options);
		assert_memory_equal(text, cases[i].first, strlen(cases[i].first));
		free(text);
	}
	writer_groups_parse(&options, "container,process,thread");
	text = written("collapsed", &everything, &options);
	assert_non_null(strstr(text, "\nprod/pod-1/app;java;main;start_thread 1\n"));
	free(text);
	options.threads = true; /* -t goes on the inside */
	writer_groups_parse(&options, "process");
	text = written("collapsed", &everything, &options);
	assert_non_null(strstr(text, "\njava;[main tid=101];start_thread 1\n"));
	free(text);
}

static void virtual_threads_have_labels(void **state)
{
	struct writer_options options;
	struct profile p;
	uint32_t start;
	char *text;

	assert_int_equal(profile_init(&p), 0);
	start = frame_of(&p, FRAME_NATIVE, "start", "");
	ADD_STACK(&p, profile_virtual_thread(&p, 1, 33, "a;b", "java", 0), 1, start);
	ADD_STACK(&p, profile_virtual_thread(&p, 1, 34, "c", "java", 0), 1, start);
	ADD_STACK(&p, profile_virtual_thread(&p, 1, 35, "c", "java", 0), 1, start);
	ADD_STACK(&p, profile_virtual_thread(&p, 1, 36, "", "java", 0), 1, start);
	ADD_STACK(&p, profile_virtual_thread(&p, 1, 37, "", "java", 0), 1, start);
	writer_options_default(&options);
	options.threads = true;
	text = written("collapsed", &p, &options);
	assert_string_equal(text, "[a|b virtual=33];start 1\n[c virtual];start 2\n[virtual threads];start 2\n");
	free(text);
	options.threads = false;
	assert_int_equal(writer_groups_parse(&options, "thread"), 0);
	text = written("collapsed", &p, &options);
	assert_string_equal(text, "[virtual threads];start 2\na|b;start 1\nc;start 2\n");
	free(text);
	profile_release(&p);
}

static void lists_of_groups(void **state)
{
	static const char *const bad[] = {"", ",", "process,", "proc", "process,process", "container,process,thread,x",
					  "attr:", "attr:,thread", "attr:a,thread,attr:a"};
	struct writer_options options = {.by = {WRITER_BY_THREAD}};
	const enum writer_group *by = options.by;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(writer_groups_parse(&options, bad[i]), -EINVAL);
	assert_int_equal(by[0], WRITER_BY_THREAD);
	assert_int_equal(writer_groups_parse(&options, "thread,container"), 0);
	assert_int_equal(by[0], WRITER_BY_THREAD);
	assert_int_equal(by[1], WRITER_BY_CONTAINER);
	assert_int_equal(by[2], WRITER_BY_NONE);
	assert_int_equal(writer_groups_parse(&options, "attr:http.route,attr:http,thread"), 0);
	assert_int_equal(by[1], WRITER_BY_ATTRIBUTE);
	assert_int_equal(by[2], WRITER_BY_THREAD);
	assert_string_equal(options.by_keys[1], "http,thread");
}

static void total_counts_time(void **state)
{
	struct writer_options options = defaults();
	char *text;

	options.total = true;
	text = written("collapsed", &everything, &options);
	assert_golden("total.collapsed", text);
	free(text);
}

/* -I keeps, -X drops; '.' and '/' are the same, so that a pattern works for every format. */
static void patterns_choose_stacks(void **state)
{
	const char *include[] = {"java.io.*", "com/acme/Main.run"}, *exclude[] = {"*equals"}, *kernel[] = {"vfs_read"};
	struct writer_options options = defaults();

	options.include = (struct opt_strings){include, 2};
	options.exclude = (struct opt_strings){exclude, 1};
	assert_collapsed(&everything, &options,
			 "start_thread;JavaThread::run();com/acme/Main.run 5\n"
			 "start_thread;JavaThread::run();com/acme/Main.run;java/io/FileInputStream.readBytes;"
			 "libc.so.6+0x1234;vfs_read_[k] 2\n");
	options.include = (struct opt_strings){kernel, 1};
	options.exclude = (struct opt_strings){0};
	assert_collapsed(&everything, &options,
			 "start_thread;JavaThread::run();com/acme/Main.run;java/io/FileInputStream.readBytes;"
			 "libc.so.6+0x1234;vfs_read_[k] 2\n");
}

static void assert_match(const char *pattern, const char *name, bool want)
{
	assert_int_equal(filter_match(&(struct opt_strings){&pattern, 1}, name), want);
}

static void stars_stand_at_the_ends(void **state)
{
	assert_match("read", "read", true);
	assert_match("read", "readv", false);
	assert_match("read*", "readv", true);
	assert_match("read*", "pread", false);
	assert_match("*read", "pread", true);
	assert_match("*read", "readv", false);
	assert_match("*read*", "preadv", true);
	assert_match("*read*", "write", false);
	assert_match("re*d", "read", false);
	assert_match("*", "", true);
	assert_match("**", "x", true);
	assert_match("", "", true);
	assert_match("", "x", false);
	assert_match("longer than the name*", "x", false);
	assert_match("a.b/C.*", "a/b.C.run", true);
}

static void deep_stacks_keep_their_leaf(void **state)
{
	struct writer_options options = defaults();
	struct profile deep;

	profile_of_depth(&deep, 6);
	options.max_depth = 6;
	assert_collapsed(&deep, &options, "f0;f1;f2;f3;f4;f5 1\n");
	options.max_depth = 2;
	assert_collapsed(&deep, &options, "[truncated];f4;f5 1\n");
	options.threads = true;
	assert_collapsed(&deep, &options, "[t tid=1];[truncated];f4;f5 1\n");
	profile_release(&deep);
}

static void ten_thousand_frames_are_one_line(void **state)
{
	struct writer_options options = defaults();
	struct profile deep;
	size_t separators = 0;
	char *text;

	profile_of_depth(&deep, 10000);
	options.max_depth = 0;
	text = written("collapsed", &deep, &options);
	for (const char *s = text; *s; s++)
		separators += *s == ';';
	assert_int_equal(separators, 9999);
	assert_non_null(strstr(text, ";f9999 1\n"));
	free(text);
	profile_release(&deep);
}

/* What has no room in memory is under [too_many_stacks]: not the short stacks of others. */
static void deep_stacks_come_last(void **state)
{
	struct writer_options options = defaults();
	struct profile_sample deep = {.thread = 0}, flat = {0};
	struct profile profile;
	struct tree tree;
	uint32_t frame;

	profile_of_depth(&profile, 1000);
	frame = frame_of(&profile, FRAME_NATIVE, "flat", "");
	deep.node = (uint32_t)profile.nodes.len - 1;
	add_stack(&profile, 0, 1, &frame, 1);
	flat.node = (uint32_t)profile.nodes.len - 1;
	assert_int_equal(tree_build(&tree, &profile, &options), 0);
	assert_in_range(tree_leaf(&tree, &flat), 1, tree_leaf(&tree, &deep) - 1000);
	tree_release(&tree);
	profile_release(&profile);
}

static void an_empty_profile_is_an_empty_file(void **state)
{
	struct writer_options options = defaults();
	struct profile empty;

	assert_int_equal(profile_init(&empty), 0);
	assert_collapsed(&empty, &options, "");
	profile_release(&empty);
}

static void a_full_disk_is_reported(void **state)
{
	struct writer_options options = defaults();

	for (size_t i = 0; writers[i]; i++) {
		FILE *full = fopen("/dev/full", "w");

		assert_non_null(full);
		assert_int_equal(writers[i]->write(&everything, &options, full), -ENOSPC);
		fclose(full);
	}
}

static void formats_are_found(void **state)
{
	assert_string_equal(writer_by_name("collapsed")->name, "collapsed");
	assert_string_equal(writer_by_name("html")->name, "flamegraph");
	assert_null(writer_by_name("svg"));
	assert_string_equal(writer_by_path("/tmp/x.html/a.folded")->name, "collapsed");
	assert_string_equal(writer_by_path("a.HTM")->name, "flamegraph");
	assert_string_equal(writer_by_path("a.html.gz")->name, "text");
	assert_string_equal(writer_by_path("/tmp/x.html/a")->name, "text");
	assert_string_equal(writer_by_path("a.")->name, "text");
	assert_string_equal(writer_by_path("-")->name, "text");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(styles_match_golden),
		cmocka_unit_test(threads_and_processes_lead),
		cmocka_unit_test(groups_lead_in_their_order),
		cmocka_unit_test(virtual_threads_have_labels),
		cmocka_unit_test(lists_of_groups),
		cmocka_unit_test(total_counts_time),
		cmocka_unit_test(patterns_choose_stacks),
		cmocka_unit_test(stars_stand_at_the_ends),
		cmocka_unit_test(deep_stacks_keep_their_leaf),
		cmocka_unit_test(ten_thousand_frames_are_one_line),
		cmocka_unit_test(deep_stacks_come_last),
		cmocka_unit_test(an_empty_profile_is_an_empty_file),
		cmocka_unit_test(a_full_disk_is_reported),
		cmocka_unit_test(formats_are_found),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
