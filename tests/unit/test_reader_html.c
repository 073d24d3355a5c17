/* SPDX-License-Identifier: MIT */
/* Flame graphs in HTML, of duet and of async-profiler. */
#include "fixtures/read_back.h"

#include <errno.h>

/* async-profiler 4: the root is the first sibling, 'all' the first name. */
static const char newest[] = "<!DOCTYPE html>\n<html lang='en'>\n<h1>CPU profile</h1>\n<script>\n"
			     "\tconst units = 'samples';\n\tfunction f(key, level, left, width) {\n\t}\n"
			     "const cpool = [\n'all',\n' [main tid=7]',\n' a/Main.main',\n'&.helper',\n"
			     "' it\\'s\\\\C',\n' vfs_read'\n];\nunpack(cpool);\n\n"
			     "n(3,20)\nu(11,12)\nu(17)\nf(26,3,0,5)\nn(45,3)\nf(35,1,12,8)\nu(20,2)\nd=U\n\n"
			     "search();\n</script></body></html>\n";
static const char newest_stacks[] = "[main tid=7];a/Main.main 4\n[main tid=7];a/Main.main;a/Main.helper 5\n"
				    "[main tid=7];a/Main.main;vfs_read_[k] 3\nit's\\C 6\nit's\\C;a/Main.main 2\n";

/* 2.9: types are those of today. 2.0: colours. */
static const char older[] = "<!DOCTYPE html>\n<script>\n// frames\nf(0,0,10,3,'all')\nf(1,0,7,1,'a/Main.main',2,0,0)\n"
			    "f(2,0,4,2,'a/B.it\\'s')\nf(1,7,3,5,'vfs_read')\nsearch();\n";
static const char oldest[] = "<!DOCTYPE html>\n<script>\nf(0,0,10,4,'all')\nf(1,0,7,0,'a/Main.main')\n"
			     "f(2,0,4,1,'a/B.it\\'s')\nf(1,7,3,2,'vfs_read')\nsearch();\n";
static const char older_stacks[] = "a/Main.main_[j] 3\na/Main.main_[j];a/B.it's_[i] 4\nvfs_read_[k] 3\n";

static void assert_read(const char *text, bool annotate, const char *want)
{
	struct writer_options options;
	struct profile profile;
	struct buf why;
	char *got;

	buf_init(&why);
	assert_int_equal(read_bytes(&profile, text, strlen(text), &why), 0);
	assert_string_equal(why.data, "");
	writer_options_default(&options);
	options.style.annotate = annotate;
	got = written("collapsed", &profile, &options);
	assert_string_equal(got, want);
	free(got);
	profile_release(&profile);
	buf_release(&why);
}

static void pages_of_async_profiler(void **state)
{
	assert_read(newest, false, newest_stacks);
	assert_read(older, true, older_stacks);
	assert_read(oldest, true, older_stacks);
}

/* In the styles that a page keeps: how each single sample of a frame ran is not in it. */
static void round_trip(void **state)
{
	struct writer_options options;
	struct profile first, second;

	profile_of_everything(&first);
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	read_back("flamegraph", &first, &second);
	assert_int_equal(second.samples.len, first.samples.len);
	assert_int_equal(second.facts.len, first.facts.len);
	assert_int_equal(second.losses.items[0].count, 7);
	assert_int_equal(second.events.items[0].interval, 10 * MS);
	assert_int_equal(second.start_ns, first.start_realtime_ns);
	writer_options_default(&options);
	assert_same_stacks(&first, &second, &options);
	options.threads = options.total = options.style.libraries = true;
	assert_same_stacks(&first, &second, &options);
	profile_release(&second);
	profile_release(&first);
}

static char *page_of(const struct profile *profile, const struct writer_options *options, size_t *ret_len)
{
	char *file = written("flamegraph", profile, options);

	*ret_len = strlen(file);
	return file;
}

/* From the leaves; and with frames too narrow to be drawn, whose samples are their callers'. */
static void other_shapes(void **state)
{
	struct writer_options options, plain;
	struct profile first, second;
	struct buf why;
	size_t len;
	char *file;

	buf_init(&why);
	profile_of_everything(&first);
	writer_options_default(&plain);
	options = plain;
	options.reverse = options.processes = true;
	file = page_of(&first, &options, &len);
	assert_int_equal(read_bytes(&second, file, len, &why), 0);
	free(file);
	plain.processes = true;
	file = written("collapsed", &first, &plain);
	plain.processes = false; /* they are frames now */
	options = plain;
	{
		char *again = written("collapsed", &second, &plain);

		assert_string_equal(again, file);
		free(again);
	}
	free(file);
	profile_release(&second);
	options.grain = 1; /* no single samples */
	options.min_width = 20;
	file = page_of(&first, &options, &len);
	assert_int_equal(read_bytes(&second, file, len, &why), 0);
	assert_true(second.samples.len && second.samples.len < 10);
	free(file);
	profile_release(&second);
	profile_release(&first);
	buf_release(&why);
}

static void assert_refused(const char *text, const char *cause)
{
	struct profile profile;
	struct buf why;

	buf_init(&why);
	assert_int_equal(read_bytes(&profile, text, strlen(text), &why), -EINVAL);
	if (!strstr(why.data, cause))
		fail_msg("\"%s\" does not say \"%s\"", why.data, cause);
	profile_release(&profile);
	buf_release(&why);
}

static void other_pages_are_refused(void **state)
{
	static const char duet[] = "<!DOCTYPE html><script type=\"application/json\" id=\"profiles\">";
	static const struct {
		const char *text, *cause;
	} rows[] = {
		{"[{\"event\":\"e\",\"depth\":[1],\"label\":[0]}]</script>",
		 "the event e: its columns have different lengths"},
		{"[{\"event\":\"e\",\"depth\":[1],\"label\":[0],\"width\":[1],\"kind\":\"a\"}]</script>",
		 "a frame is not whole"},
		{"[{\"event\":\"e\",\"depth\":[1],\"label\":[0],\"width\":[1],\"kind\":\"a\","
		 "\"labels\":[0,\"x\"]}]</script>",
		 "wider than its caller"},
		{"[{\"event\":\"e\",\"samples\":1,\"depth\":[2],\"label\":[0],\"width\":[1],\"kind\":\"a\","
		 "\"labels\":[0,\"x\"]}]</script>",
		 "a frame is not whole"},
		{"[{\"event\":1}]</script>", "not as duet writes them, at byte 10"},
		{"[{]</script>", "not as duet writes them"},
		{"[", "the page ends within its data"},
	};
	char page[1024];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(page, sizeof(page), "%s%s", duet, rows[i].text);
		assert_refused(page, rows[i].cause);
	}
	assert_refused("<html><body>nothing", "neither a page of duet");
	assert_refused("<html>\nf(0,0,10,3,'all')\nf(2,0,1,1,'x')\n", "a frame has no caller");
	assert_refused("<html>\nconst cpool = [\n'all',\n'\x7fx'\n];\nn(3,1)\n", "line 4 shares more");
	assert_refused("<html>\nconst cpool = [\n'all'\n];\nn(3,1)\nu(8,1)\n", "line 6 has no such name");
	assert_refused("<html>\nconst cpool = [\n'all',\n' x'\n];\nn(3,1)\nu(8,2)\n", "wider than its caller");
	assert_refused("<html>\nconst cpool = [\n'all',\n' x'\n];\nn(3,1)\nf(8,3,0,1)\n", "a frame without a caller");
}

/* A page that ends anywhere, or has a byte changed, is read or refused with a cause. */
static void damaged_pages(void **state)
{
	struct writer_options options;
	struct profile profile, first;
	struct buf why;
	size_t len, at;
	char *file;

	buf_init(&why);
	profile_of_everything(&first);
	writer_options_default(&options);
	file = page_of(&first, &options, &len);
	at = (size_t)(strstr(file, "id=\"profiles\"") - file);
	for (size_t i = at; i < len && i < at + 3000; i++) {
		char kept = file[i];
		int err;

		buf_clear(&why);
		file[i] = (char)(kept ^ 1 << (i % 7));
		err = read_bytes(&profile, file, len, &why);
		assert_true(err <= 0 && !err == !why.len);
		profile_release(&profile);
		file[i] = kept;
	}
	for (size_t i = 0; i < sizeof(newest); i++) {
		int err;

		buf_clear(&why);
		err = read_bytes(&profile, newest, i, &why);
		assert_true(err <= 0 && !err == !why.len);
		profile_release(&profile);
	}
	profile_release(&first);
	free(file);
	buf_release(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_async_profiler),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(other_shapes),
		cmocka_unit_test(other_pages_are_refused),
		cmocka_unit_test(damaged_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
