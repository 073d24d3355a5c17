/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/opt.h"

struct options {
	bool threads;
	const char *file;
	uint64_t interval_ns;
	uint64_t duration_ns;
	uint32_t depth;
	struct opt_strings include;
	uint64_t memory;
	double share;
	const char *color;
};

#define FIELD(name) .offset = offsetof(struct options, name)

static void colors(struct buf *out)
{
	buf_add_str(out, "red\nblue\n");
}

static const struct opt *more_rows(void)
{
	static const struct opt more[] = {
		{0, "size", "SIZE", "of another table", opt_bytes, FIELD(memory)},
		OPT_END,
	};

	return more;
}

static const struct opt rows[] = {
	{'t', "threads", NULL, "per thread", opt_flag, FIELD(threads)},
	{'f', "file", "FILE", "output", opt_string, FIELD(file)},
	{'i', "interval", "TIME", "period", opt_interval, FIELD(interval_ns)},
	{'d', NULL, "SECONDS", "duration", opt_seconds, FIELD(duration_ns)},
	{'j', NULL, "DEPTH", "depth", opt_u32, FIELD(depth)},
	{0, "include-only-the-stacks-that-match", "PATTERN", "long", opt_strings, FIELD(include)},
	{'m', NULL, "SIZE", "bytes", opt_bytes, FIELD(memory)},
	{'s', NULL, "PCT", "percent", opt_percent, FIELD(share)},
	{.rows = more_rows},
	OPT_GROUP("Others"),
	{0, "color", "NAME", "colour", opt_string, FIELD(color), OPT_OF_FILES, colors},
	OPT_END,
};

static struct options options;
static char *args[32];
static int count, dashdash;
static struct buf why;

/* Parses a command line that is split at spaces. */
static int parse(const char *line)
{
	static char copy[256];
	char *argv[32] = {"duet"};
	int argc = 1;

	free(options.include.items);
	options = (struct options){0};
	buf_clear(&why);
	strcpy(copy, line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return opt_parse(rows, argc, argv, &options, args, &count, &dashdash, &why);
}

static void test_spellings(void **state)
{
	static const char *const lines[] = {"-i5ms", "-i 5ms", "--interval 5ms", "--interval=5ms"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		assert_int_equal(parse(lines[i]), 0);
		assert_int_equal(options.interval_ns, 5 * NS_PER_MS);
		assert_int_equal(count, 0);
		assert_int_equal(dashdash, -1);
	}
}

static void test_anywhere_and_dashdash(void **state)
{
	assert_int_equal(parse("record -t 123 --file=a=b -- java -f x -- y"), 0);
	assert_true(options.threads);
	assert_string_equal(options.file, "a=b");
	assert_int_equal(count, 7);
	assert_int_equal(dashdash, 2);
	assert_string_equal(args[1], "123");
	assert_string_equal(args[2], "java");
	assert_string_equal(args[5], "--");
	assert_int_equal(parse("-f - -"), 0);
	assert_string_equal(options.file, "-");
	assert_string_equal(args[0], "-");
}

static void test_lists(void **state)
{
	assert_int_equal(parse("--include-only-the-stacks-that-match a --include-only-the-stacks-that-match=b"), 0);
	assert_int_equal(options.include.len, 2);
	assert_string_equal(options.include.items[1], "b");
	assert_int_equal(parse("--include-only-the-stacks-that-match="), -EINVAL);
}

static void refuses(const char *line, const char *expected)
{
	assert_int_equal(parse(line), -EINVAL);
	if (!strstr(why.data, expected))
		fail_msg("'%s' answers '%s', not '%s'", line, why.data, expected);
}

static void test_wrong_usage_is_named(void **state)
{
	refuses("--intervall 1ms", "unknown option '--intervall': did you mean --interval?");
	refuses("-interval 1ms", "unknown option '-interval': did you mean --interval?");
	refuses("-file=x", "unknown option '-file=x': did you mean --file?");
	refuses("--szie=5", "did you mean --size?");
	refuses("-x", "unknown option '-x': --help lists the options");
	refuses("-tf out", "unknown option '-tf': --help");
	refuses("-5", "unknown option '-5'");
	refuses("--=5", "unknown option '--=5'");
	refuses("--interva=5", "unknown option '--interva=5'");
	refuses("--threads=yes", "option '--threads' takes no value");
	refuses("-i", "option '-i' needs a value (TIME)");
	refuses("--file -- java", "option '--file' needs a value (FILE)");
	refuses("--file=", "must not be empty");
}

static void test_values(void **state)
{
	static const char *const bad_intervals[] = {
		"0", "0ms", "-1", "+1", "1.ms", ".5ms", "1.5.5ms", "1,5ms", "0.0ms",
		"0.9ns", "ms", "5m", "5msx", "0x10", "1e3", "18446744073709551616",
		"18446744073709551615.5us", "18446744073710s",
	};
	static const char *const bad_seconds[] = {"0",   "0h",   "0.0000000001", "1us", "x",
						  "1hh", "1.5.", "1000000000d",  "99999999999999999999"};
	static const char *const bad_depths[] = {"0", "-1", "4294967296", "12k", "nan"};
	char line[64];

	assert_int_equal(parse("-i 100000 -d 10m -j 4294967295"), 0);
	assert_int_equal(options.interval_ns, 100000);
	assert_int_equal(options.duration_ns, 600 * NS_PER_SEC);
	assert_int_equal(options.depth, UINT32_MAX);
	assert_int_equal(parse("-i 1s -d 1d"), 0);
	assert_int_equal(options.interval_ns, NS_PER_SEC);
	assert_int_equal(options.duration_ns, 86400 * NS_PER_SEC);
	assert_int_equal(parse("-d 500ms"), 0);
	assert_int_equal(options.duration_ns, 500 * NS_PER_MS);
	assert_int_equal(parse("-i 1.5ms -d 0.5"), 0);
	assert_int_equal(options.interval_ns, 1500 * NS_PER_US);
	assert_int_equal(options.duration_ns, 500 * NS_PER_MS);
	assert_int_equal(parse("-i 0.1us -d 1.25h"), 0);
	assert_int_equal(options.interval_ns, 100);
	assert_int_equal(options.duration_ns, 4500 * NS_PER_SEC);
	assert_int_equal(parse("-i 10.999999999999s -d 213503.5d"), 0);
	assert_int_equal(options.interval_ns, 10999999999);
	assert_int_equal(options.duration_ns, 18446702400 * NS_PER_SEC);
	for (size_t i = 0; i < sizeof(bad_intervals) / sizeof(*bad_intervals); i++) {
		snprintf(line, sizeof(line), "--interval=%s", bad_intervals[i]);
		refuses(line, "10ms, 0.5ms");
		assert_int_equal(options.interval_ns, 0);
	}
	for (size_t i = 0; i < sizeof(bad_seconds) / sizeof(*bad_seconds); i++) {
		snprintf(line, sizeof(line), "-d%s", bad_seconds[i]);
		refuses(line, "is accepted");
	}
	for (size_t i = 0; i < sizeof(bad_depths) / sizeof(*bad_depths); i++) {
		snprintf(line, sizeof(line), "-j%s", bad_depths[i]);
		refuses(line, "from 1 to 4294967295");
	}
	refuses("-i 5x", "-i '5x': a number");
}

static void test_sizes_and_shares(void **state)
{
	static const char *const bad_sizes[] = {"0", "0m", "1x", "-1", "1mm", "m", "0.1", "99999999999g"};
	static const char *const bad_shares[] = {"0", "-1", "101", "1%%", "x", "nan", "inf", ".5"};
	char line[64];

	assert_int_equal(parse("-m 128m -s 0.5"), 0);
	assert_int_equal(options.memory, 128 << 20);
	assert_true(options.share == 0.5);
	assert_int_equal(parse("-m 2G -s 100%"), 0);
	assert_int_equal(options.memory, 2ull << 30);
	assert_true(options.share == 100);
	assert_int_equal(parse("-m 1.5g"), 0);
	assert_int_equal(options.memory, 3ull << 29);
	assert_int_equal(parse("-m 1000"), 0);
	assert_int_equal(options.memory, 1000);
	for (size_t i = 0; i < sizeof(bad_sizes) / sizeof(*bad_sizes); i++) {
		snprintf(line, sizeof(line), "-m%s", bad_sizes[i]);
		refuses(line, "k, m or g");
	}
	for (size_t i = 0; i < sizeof(bad_shares) / sizeof(*bad_shares); i++) {
		snprintf(line, sizeof(line), "-s%s", bad_shares[i]);
		refuses(line, "at most 100");
	}
}

/* As a configuration file has them. */
static void test_one_by_its_word(void **state)
{
	struct options set = {0};
	uint64_t bytes = 0;

	buf_clear(&why);
	assert_int_equal(opt_set(rows, "threads", "no", &set, &why), 0);
	assert_false(set.threads);
	assert_int_equal(opt_set(rows, "threads", "yes", &set, &why), 0);
	assert_true(set.threads);
	assert_int_equal(opt_set(rows, "interval", "5ms", &set, &why), 0);
	assert_int_equal(set.interval_ns, 5 * NS_PER_MS);
	assert_int_equal(opt_set(rows, "threads", "maybe", &set, &why), -EINVAL);
	assert_string_equal(why.data, "threads 'maybe': yes or no is accepted");
	buf_clear(&why);
	assert_int_equal(opt_set(rows, "interva", "5ms", &set, &why), -EINVAL);
	assert_int_equal(opt_set(rows, "", "5ms", &set, &why), -EINVAL);
	assert_int_equal(opt_set(rows, "interval", "", &set, &why), -EINVAL);
	assert_int_equal(opt_bytes(&bytes, "2g", &why), 0);
	assert_int_equal(bytes, 2ull << 30);
	assert_int_equal(opt_bytes(&bytes, "2x", &why), -EINVAL);
	assert_int_equal(opt_bytes(&bytes, "0", &why), -EINVAL);
	assert_int_equal(opt_bytes(&bytes, "99999999999999g", &why), -EINVAL);
}

static void test_help(void **state)
{
	struct buf help;

	buf_init(&help);
	opt_help(rows, false, &help);
	assert_non_null(strstr(help.data, "  -t, --threads               per thread\n"));
	assert_non_null(strstr(help.data, "  -f, --file FILE             output\n"));
	assert_non_null(strstr(help.data, "  -d SECONDS                  duration\n"));
	assert_non_null(strstr(help.data, "match PATTERN\n                              long\n"));
	assert_non_null(strstr(help.data, "      --size SIZE             of another table\n\nOthers:\n"));
	assert_non_null(strstr(help.data, "\nOthers:\n      --color NAME            colour (red, blue)\n"));
	buf_release(&help);
}

/* A terminal counts characters, not bytes. */
static void test_help_in_columns(void **state)
{
	static const struct opt some[] = {{0, "one", "A[,…]", "first", opt_string, FIELD(file)}, OPT_END};
	struct buf help;

	buf_init(&help);
	opt_help(some, false, &help);
	assert_string_equal(help.data, "      --one A[,…]             first\n");
	buf_release(&help);
}

static void test_spellings_for_shells(void **state)
{
	struct buf words;

	buf_init(&words);
	opt_spellings(rows, &words);
	assert_non_null(strstr(words.data, "-t\tper thread\n--threads\tper thread\n-f\toutput\n"));
	assert_non_null(strstr(words.data, "--size\tof another table\n--color\tcolour\n"));
	assert_null(strstr(words.data, "Others"));
	buf_release(&words);
}

static void test_rows_are_found(void **state)
{
	struct buf words;

	assert_ptr_equal(opt_by_spelling(rows, "--file"), opt_by_word(rows, "file"));
	assert_ptr_equal(opt_by_spelling(rows, "-f"), opt_by_word(rows, "file"));
	assert_null(opt_by_spelling(rows, "file"));
	assert_null(opt_by_spelling(rows, "-"));
	assert_null(opt_by_spelling(rows, "--"));
	assert_null(opt_by_spelling(rows, "-file"));
	assert_string_equal(opt_by_spelling(rows, "--size")->help, "of another table");
	assert_null(opt_by_word(rows, "fil"));
	assert_null(opt_by_word(rows, ""));
	assert_null(opt_by_word(rows, "f"));
	assert_true(opt_is_repeated(opt_by_word(rows, "include-only-the-stacks-that-match")));
	assert_false(opt_is_repeated(opt_by_word(rows, "file")));
	buf_init(&words);
	opt_by_word(rows, "color")->choices(&words);
	assert_string_equal(words.data, "red\nblue\n");
	buf_release(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings), cmocka_unit_test(test_anywhere_and_dashdash),
		cmocka_unit_test(test_lists),	  cmocka_unit_test(test_wrong_usage_is_named),
		cmocka_unit_test(test_values),	  cmocka_unit_test(test_one_by_its_word),
		cmocka_unit_test(test_help),	  cmocka_unit_test(test_sizes_and_shares),
		cmocka_unit_test(test_help_in_columns), cmocka_unit_test(test_spellings_for_shells),
		cmocka_unit_test(test_rows_are_found),
	};
	int failed;

	buf_init(&why);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(options.include.items);
	buf_release(&why);
	return failed;
}
