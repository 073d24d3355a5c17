/* SPDX-License-Identifier: MIT */
/* Collapsed stacks as duet and other programs write them, and malformed ones. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixtures/profiles.h"
#include "readers/reader.h"

static int read_bytes(struct profile *profile, const char *bytes, size_t len, struct buf *why)
{
	int fd = memfd_create("collapsed", MFD_CLOEXEC), err;
	struct reader_source source;
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, bytes, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(profile_init(profile), 0);
	assert_int_equal(reader_begin(&source, path, reader_open_file(path), why), 0);
	err = reader_read(&source, profile, why);
	reader_close(&source);
	close(fd);
	return err;
}

static void read_text(struct profile *profile, const char *text)
{
	struct buf why;

	buf_init(&why);
	if (read_bytes(profile, text, strlen(text), &why))
		fail_msg("%s", why.data);
	buf_release(&why);
}

static char *rewritten(const char *text, const struct writer_options *options)
{
	struct profile profile;
	char *again;

	read_text(&profile, text);
	again = written("collapsed", &profile, options);
	profile_release(&profile);
	return again;
}

/* What duet writes comes back byte for byte, with the same options. */
static void what_duet_writes_comes_back(void **state)
{
	static const struct frame_style styles[] = {
		{0}, {.simple = true}, {.signatures = true}, {.annotate = true}, {.libraries = true},
		{.dotted = true, .lines = true, .annotate = true},
		{.signatures = true, .annotate = true, .libraries = true, .lines = true},
	};
	struct writer_options options, plain;
	struct profile profile;

	profile_of_everything(&profile);
	writer_options_default(&options);
	for (size_t i = 0; i < 2 * sizeof(styles) / sizeof(*styles); i++) {
		char *first, *second;

		options.style = styles[i / 2];
		options.threads = options.processes = i % 2;
		plain = options;
		plain.threads = plain.processes = false; /* they are frames now */
		first = written("collapsed", &profile, &options);
		second = rewritten(first, &plain);
		assert_string_equal(second, first);
		free(first);
		free(second);
	}
	profile_release(&profile);
}

static const struct frame *frame_read(struct profile *profile, const char *token)
{
	char line[256];

	snprintf(line, sizeof(line), "%s 1\n", token);
	read_text(profile, line);
	return &profile->frames.items[profile->nodes.items[1].frame];
}

static void frames_are_taken_apart(void **state)
{
	static const struct {
		const char *token;
		enum frame_kind kind;
		const char *class_name, *name, *signature, *module;
		int32_t line;
	} cases[] = {
		{"java/lang/String.length_[j]", FRAME_COMPILED, "java.lang.String", "length", "", "", 0},
		{"java.lang.String.length_[0]", FRAME_INTERPRETED, "java.lang.String", "length", "", "", 0},
		{"String.length_[i]", FRAME_INLINED, "String", "length", "", "", 0},
		{"java.lang.String_[i]", FRAME_CLASS, "", "java.lang.String", "", "", 0},
		{"byte[]_[i]", FRAME_CLASS, "", "byte[]", "", "", 0},
		{"a.B$$Lambda.0x00007f80_[i]", FRAME_CLASS, "", "a.B$$Lambda.0x00007f80", "", "", 0},
		{"a.B.call_[i]", FRAME_INLINED, "a.B", "call", "", "", 0},
		{"a/B.Call_[i]", FRAME_INLINED, "a.B", "Call", "", "", 0},
		{"a/B.c_[1]", FRAME_COMPILED, "a.B", "c", "", "", 0},
		{"java/lang/String.length", FRAME_COMPILED, "java.lang.String", "length", "", "", 0},
		{"a/B.c(I[Ljava/lang/String|)Z:17", FRAME_COMPILED, "a.B", "c", "(I[Ljava/lang/String;)Z", "", 17},
		{"a/B$$Lambda/0x00007f80.<init>_[j]", FRAME_COMPILED, "a.B$$Lambda/0x00007f80", "<init>", "", "", 0},
		{"a/B$$Lambda.0x00007f80.run", FRAME_COMPILED, "a.B$$Lambda.0x00007f80", "run", "", "", 0},
		{"Interpreter_[j]", FRAME_COMPILED, "", "Interpreter", "", "", 0},
		{"foo.part.0_[i]", FRAME_INLINED, "", "foo.part.0", "", "", 0},
		{"LazyCompile:*f /app/x.js:12_[j]", FRAME_COMPILED, "", "LazyCompile:*f /app/x.js:12", "", "", 0},
		{"net/http.HandlerFunc.ServeHTTP", FRAME_NATIVE, "", "net/http.HandlerFunc.ServeHTTP", "", "", 0},
		{"main.Foo.Bar", FRAME_NATIVE, "", "main.Foo.Bar", "", "", 0},
		{"vfs_read_[k]", FRAME_KERNEL, "", "vfs_read", "", "", 0},
		{"libc.so.6`read", FRAME_NATIVE, "", "read", "", "libc.so.6", 0},
		{"libc.so.6+0x1234", FRAME_NATIVE, "", "libc.so.6+0x1234", "", "", 0},
		{"libjvm.so`JavaThread::run()", FRAME_JVM, "", "JavaThread::run()", "", "libjvm.so", 0},
		{"std::list<int>::at(unsigned long)", FRAME_NATIVE, "", "std::list<int>::at(unsigned long)", "", "", 0},
		{"[main tid=12]", FRAME_THREAD, "", "[main tid=12]", "", "", 0},
		{"[tid=12]", FRAME_THREAD, "", "[tid=12]", "", "", 0},
		{"[java pid=12]", FRAME_PROCESS, "", "[java pid=12]", "", "", 0},
		{"[unknown_Java]", FRAME_MARK, "", "[unknown_Java]", "", "", 0},
		{"[anon]+0x12", FRAME_NATIVE, "", "[anon]+0x12", "", "", 0},
		{"a b c", FRAME_NATIVE, "", "a b c", "", "", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile profile;
		const struct frame *frame = frame_read(&profile, cases[i].token);

		assert_string_equal(intern_text(&profile.strings, frame->name), cases[i].name);
		assert_string_equal(intern_text(&profile.strings, frame->class_name), cases[i].class_name);
		assert_string_equal(intern_text(&profile.strings, frame->signature), cases[i].signature);
		assert_string_equal(intern_text(&profile.strings, frame->module), cases[i].module);
		assert_int_equal(frame->kind, cases[i].kind);
		assert_int_equal(frame->line, cases[i].line);
		profile_release(&profile);
	}
}

static void lines_of_all_sorts(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"a;b 1\r\na;b 2\r\na 3", "a 3\na;b 3\n"},
		{"# made by hand\n\na;b 1\n#\n# and more\n", "a;b 1\n"},
		{"#x 1\n", "#x 1\n"},
		{"#{\"a\": 1}\n1;pod;java;a 1\n0;;sh;1;b 2\n7 3\n7;x 4\n", "7 3\n7;x 4\npod;java;a 1\nsh;1;b 2\n"},
		{"# {}\n12;;a 1\n", "a 1\n"},
		{"1;pod;a 1\n#{\"a\": 1}\n", "1;pod;a 1\n"},
		{"b 2\na;b 0\n", "b 2\n"},
		{"a;;b 1\n", "a;[unknown];b 1\n"},
		{"a;b 9007199254740992\n", "a;b 9007199254740992\n"},
		{"a;b 8589934590\n", "a;b 8589934590\n"}, /* more than a sample's count holds */
	};
	struct writer_options options;

	writer_options_default(&options);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = rewritten(cases[i].text, &options);

		assert_string_equal(text, cases[i].want);
		free(text);
	}
}

/* Sums stay: in thousandths, in more decimals where the counts have them, in fewer where the sum has no room. */
static void decimals(void **state)
{
	static const struct {
		const char *text, *event, *want;
	} cases[] = {
		{"a 0.5\nb 1\na .25\n", "samples of 0.001", "a 750\nb 1000\n"},
		{"a 1.5e-3\nb 2E+3\n", "samples of 0.000001", "a 1500\nb 2000000000\n"},
		{"a 1e3\nb 2.50e1\nc 3.\n", "samples of 0.001", "a 1000000\nb 25000\nc 3000\n"},
		{"a 1e3\nb 2\n", "samples", "a 1000\nb 2\n"},
		{"a 0.3333\nb 0.3333\nc 0.3334\n", "samples of 0.000001", "a 333300\nb 333300\nc 333400\n"},
		{"a 4000000000000.4\nb 0.4\nc 0.2\n", "samples of 0.001", "a 4000000000000400\nb 400\nc 200\n"},
		{"a 9000000000000000.0\nb 0.4\nc 0.3\nd 0.3\n", "samples", "a 9000000000000000\nc 1\n"},
		{"a 0.25e-18\nb 0.5e-18\nc 0.25e-18\n", "samples of 0.000000000000000001", "b 1\n"},
	};
	struct writer_options options;

	writer_options_default(&options);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile profile;
		char *text;

		read_text(&profile, cases[i].text);
		text = written("collapsed", &profile, &options);
		assert_string_equal(text, cases[i].want);
		assert_int_equal(profile.events.len, 1);
		assert_string_equal(intern_text(&profile.strings, profile.events.items[0].name), cases[i].event);
		free(text);
		profile_release(&profile);
	}
}

#define NO_TEXT                                                                                              \
	"not a profile in a format that duet reads; of texts, these are collapsed stacks and perf script's, with " \
	"addresses or events (perf script -F ip,sym)"

static void one_sentence_for_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"a;b 1\na;b\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\na;b 1.5.2\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\na;b -5\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\na;b 1e\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\na;b .\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\na;b nan\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\na;b 0x10\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\na;b 1e999\n", "line 2: more than 9007199254740992 samples in all"},
		{"a;b 1\n 5\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a;b 1\n12\n", "line 2 is not a stack and a count, as \"a;b;c 12\""},
		{"a 9007199254740991\nb 1\nc 1\n", "line 3: more than 9007199254740992 samples in all"},
		{"a 1\nb 18446744073709551617\n", "line 2: more than 9007199254740992 samples in all"},
		{"", "the file is empty"},
		{"# nothing\n", NO_TEXT},
		{"<svg>\n", NO_TEXT},
		{"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", NO_TEXT}, /* perf script -F sym */
	};
	struct profile profile;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf why;

		buf_init(&why);
		assert_true(read_bytes(&profile, cases[i].text, strlen(cases[i].text), &why) < 0);
		assert_string_equal(why.data, cases[i].why);
		buf_release(&why);
		profile_release(&profile);
	}
}

static void assert_refused(struct buf *text, const char *want)
{
	struct profile profile;
	struct buf why;

	buf_init(&why);
	assert_false(text->failed);
	assert_true(read_bytes(&profile, text->data, text->len, &why) < 0);
	assert_string_equal(why.data, want);
	buf_release(&why);
	buf_release(text);
	profile_release(&profile);
}

static void sizes_are_bounded(void **state)
{
	struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < 65536; i++)
		buf_add_str(&text, "f;");
	buf_add_str(&text, "f 1\n");
	assert_refused(&text, "line 1 has more than 65536 frames");
	buf_init(&text);
	buf_add_str(&text, "a 1\n");
	for (size_t i = 0; i < 9 << 16; i++)
		buf_add_str(&text, "0123456789abcdef");
	assert_refused(&text, "line 2 is longer than 8 MB");
	buf_init(&text);
	buf_add(&text, "a 1\nb\0c 1\n", 10);
	assert_refused(&text, "not a profile in a format that duet reads");
}

/* Longer than a piece that is read at once, and than what a format is recognised by. */
static void long_lines_are_read(void **state)
{
	struct writer_options options;
	struct profile deep;
	char *first, *second;

	writer_options_default(&options);
	profile_of_depth(&deep, 20000);
	first = written("collapsed", &deep, &options);
	second = rewritten(first, &options);
	assert_true(strlen(first) > 100000);
	assert_string_equal(second, first);
	free(first);
	free(second);
	profile_release(&deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_duet_writes_comes_back),
		cmocka_unit_test(frames_are_taken_apart),
		cmocka_unit_test(lines_of_all_sorts),
		cmocka_unit_test(decimals),
		cmocka_unit_test(one_sentence_for_what_is_wrong),
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(long_lines_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
