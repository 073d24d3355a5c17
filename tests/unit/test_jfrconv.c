/* SPDX-License-Identifier: MIT */
/* What the command line of async-profiler's converter becomes. */
#include "asprof/jfrconv.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WORDS_MAX 12

static void expect_words(const char *const *argv, const char *expected)
{
	struct jfrconv_words words = {0};
	struct jfrconv jfrconv;
	struct buf why, text;
	int argc = 0;

	buf_init(&why);
	buf_init(&text);
	while (argv[argc])
		argc++;
	assert_int_equal(jfrconv_parse(&jfrconv, argc, (char **)argv, &why), 0);
	assert_true(jfrconv.files.len > 1);
	assert_int_equal(compose(&jfrconv, (char **)jfrconv.files.items, jfrconv.files.len - 1,
				 jfrconv.files.items[jfrconv.files.len - 1], &words),
			 0);
	for (size_t i = 0; i < words.len; i++)
		buf_printf(&text, "%s%s", i ? " " : "", words.items[i]);
	assert_string_equal(text.data, expected);
	release_words(&words);
	jfrconv_release(&jfrconv);
	buf_release(&text);
	buf_release(&why);
}

static void words_become_duets(void **state)
{
	static const struct {
		const char *argv[WORDS_MAX];
		const char *expected;
	} cases[] = {
		{{"jfrconv", "a.jfr", "a.html"}, "convert --regex -- a.jfr a.html"},
		{{"jfrconv", "--cpu", "-o", "html", "a.jfr", "b"}, "convert --cpu --regex --output=html -- a.jfr b"},
		{{"jfrconv", "a.jfr", "a.collapsed"}, "convert --regex --execution --ann -- a.jfr a.collapsed"},
		{{"jfrconv", "--alloc", "a.jfr", "a.collapsed"}, "convert --alloc --regex --ann -- a.jfr a.collapsed"},
		{{"jfrconv", "a.jfr", "b.jfr", "c.unknown"}, "convert --regex --output=html -- a.jfr b.jfr c.unknown"},
		{{"jfrconv", "-r", "-i", "-t", "-I", "a.*b", "-X", ".*", "a.jfr", "a.html"},
		 "convert --reverse --inverted --threads --include=a.*b --exclude=.* --regex -- a.jfr a.html"},
		{{"jfrconv", "--from", "1500", "--to", "-20", "a.jfr", "a.html"},
		 "convert --from=1500ms --to=-20ms --regex -- a.jfr a.html"},
		{{"jfrconv", "--from", "1700000000000", "a.jfr", "a.html"},
		 "convert --from=2023-11-14T22:13:20 --regex -- a.jfr a.html"},
		{{"jfrconv", "--leak", "--tail", "0.1", "a.jfr", "a.html"},
		 "convert --leak --tail=10.000000 --regex -- a.jfr a.html"},
		{{"jfrconv", "--nativemem", "--leak", "a.jfr", "a.html"},
		 "convert --nativemem --leak --tail=10 --regex -- a.jfr a.html"},
		{{"jfrconv", "--leak", "--tail", "0", "a.jfr", "a.html"}, "convert --leak --regex -- a.jfr a.html"},
		{{"jfrconv", "--tail", "0.2", "a.jfr", "a.html"}, "convert --regex -- a.jfr a.html"},
		{{"jfrconv", "--leak", "--tail", "5%", "a.jfr", "a.html"},
		 "convert --leak --tail=5.000000 --regex -- a.jfr a.html"},
		{{"jfrconv", "--skip", "2", "--grain", "0", "a.jfr", "a.html"},
		 "convert --skip=2 --regex -- a.jfr a.html"},
		{{"jfrconv", "--diff", "a.jfr", "b.jfr", "c.html"},
		 "diff --regex --no-normalize --norm -- a.jfr b.jfr c.html"},
		{{"jfrconv", "-s", "r,s", "--latency", "25", "--tag", "GET", "a.jfr", "a.html"},
		 "convert --state=r,s --latency=25ms --tag=GET --regex -- a.jfr a.html"},
		{{"jfrconv", "--latency", "0", "a.jfr", "a.html"}, "convert --latency=1 --regex -- a.jfr a.html"},
		{{"jfrconv", "--tree", "a.jfr", "a.html"}, "convert --regex --output=tree -- a.jfr a.html"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_words(cases[i].argv, cases[i].expected);
}

/* Without an option each of these would be understood otherwise than by async-profiler. */
static void others_are_refused(void **state)
{
	static const struct {
		const char *argv[WORDS_MAX], *why;
	} cases[] = {
		{{"jfrconv", "--nothing", "a.jfr"}, "unknown option --nothing"},
		{{"jfrconv", "--latency", "1.5", "a.jfr"}, "--latency 1.5: the value is not understood"},
		{{"jfrconv", "a.jfr", "-o"}, "-o: a value is missing"},
		{{"jfrconv", "a.jfr", "--skip"}, "--skip: a value is missing"},
		{{"jfrconv", "--skip", "many", "a.jfr"}, "--skip many: the value is not understood"},
		{{"jfrconv", "--from", "yesterday", "a.jfr"}, "--from yesterday: the value is not understood"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct jfrconv jfrconv;
		struct buf why;
		int argc = 0;

		buf_init(&why);
		while (cases[i].argv[argc])
			argc++;
		assert_int_equal(jfrconv_parse(&jfrconv, argc, (char **)cases[i].argv, &why), -EINVAL);
		assert_string_equal(why.data, cases[i].why);
		jfrconv_release(&jfrconv);
		buf_release(&why);
	}
}

static void outputs_are_named_by_inputs(void **state)
{
	struct jfrconv jfrconv = {.format = NULL};
	struct buf name;

	buf_init(&name);
	output_name(&jfrconv, ".", "in/foo.jfr", &name);
	assert_string_equal(name.data, "./foo.html");
	buf_clear(&name);
	jfrconv.format = "pb.gz";
	output_name(&jfrconv, "out", "foo", &name);
	assert_string_equal(name.data, "out/foo.pb.gz");
	buf_clear(&name);
	jfrconv = (struct jfrconv){.format = "collapsed", .is_diff = true};
	output_name(&jfrconv, "out", "b.jfr", &name);
	assert_string_equal(name.data, "out/b.diff.collapsed");
	buf_release(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_become_duets),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(outputs_are_named_by_inputs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
