/* SPDX-License-Identifier: MIT */
/*
 * Short files, made by hand, that cost much CPU time or many rows to read or to write again. Each is read in a moment,
 * or is refused in one sentence. The bounds are a small part of the cost without a limit.
 */
#include "fixtures/made_file.h"

#include "base/text.h"
#include "profile/layout.h"
#include "profile/perf_text.h"
#include "profile/pprof.h"
#include "writers/shared/path.h"
#include "writers/writer.h"

#define LONG_TEXT (4u << 20)

static void repeat(struct buf *to, char letter, size_t count)
{
	for (char letters[4096]; count; count -= count < sizeof(letters) ? count : sizeof(letters)) {
		memset(letters, letter, sizeof(letters));
		buf_add(to, letters, count < sizeof(letters) ? count : sizeof(letters));
	}
}

/* ---- the text of perf script ---- */

/* The name of the process is given once, and each sample belongs to it. */
static void perf_names_of_processes(void **state)
{
	buf_add_str(&file, PERF_TEXT_START "1 1\n" PERF_TEXT_PROCESS "5 ");
	repeat(&file, 'p', LONG_TEXT);
	for (int i = 0; i < 60000; i++)
		buf_add_str(&file, "\nx 5/5 1.0: 1 c:\n");
	expect_read(NULL);
	assert_int_equal(profile.samples.len, 60000);
	assert_int_equal(strlen(intern_text(&profile.strings, profile.threads.items[0].process)), PROFILE_NAME_MAX);
}

static void perf_events(void **state)
{
	for (int i = 0; i < 300000; i++)
		buf_printf(&file, "x 5/5 1.0: 1 c%d:\n\n", i);
	expect_read("line 2049 has an event after 1024 others");
}

/* ---- pprof ---- */

/* A string takes two bytes, which compress to nothing, and 44 bytes of ours. */
static void pprof_strings(void **state)
{
	put_field(&file, 1, "\x08\x01\x10\x02", 4);
	for (int i = 0; i < 4000000; i++)
		put_field(&file, 6, "", 0);
	compress_file();
	assert_true(file.len < 20000);
	expect_read("rows, too many for so short a file");
}

/* A location stands for 60,000 frames, and a sample of some bytes for a location. */
static void pprof_frames(void **state)
{
	static const char *const texts[] = {"", "cpu", "nanoseconds", "f"};
	struct buf location = BUF_NONE;

	put_field(&file, 1, "\x08\x01\x10\x02", 4); /* value type: cpu, nanoseconds */
	for (size_t i = 0; i < 4; i++)
		put_field(&file, 6, texts[i], strlen(texts[i]));
	put_field(&file, 5, "\x08\x01\x10\x03", 4); /* function 1: f */
	buf_add(&location, "\x08\x01", 2);
	for (int i = 0; i < 60000; i++)
		put_field(&location, 4, "\x08\x01", 2); /* line: function 1 */
	put_field(&file, 4, location.data, location.len);
	for (int i = 0; i < 30000; i++)
		put_field(&file, 2, "\x08\x01\x10\x05", 4); /* sample: location 1, value 5 */
	buf_release(&location);
	expect_read("frames, too many for so short a file");
}

/* ---- duet's own ---- */

/* `rows` equal rows, compressed. */
static void put_section(struct buf *to, enum layout_type type, uint32_t row_bytes, uint32_t rows, const void *row)
{
	struct layout_section head = {.type = (uint16_t)type,
				      .coding = LAYOUT_DEFLATE,
				      .row_bytes = row_bytes,
				      .raw_bytes = rows * row_bytes};
	unsigned char *raw = malloc(head.raw_bytes), *columns = malloc(head.raw_bytes);
	uLongf len = compressBound(head.raw_bytes);
	unsigned char *stored = malloc(len);

	for (uint32_t i = 0; i < rows; i++)
		memcpy(raw + i * row_bytes, row, row_bytes);
	layout_to_columns(columns, raw, rows, row_bytes);
	assert_int_equal(compress(stored, &len, columns, head.raw_bytes), Z_OK);
	head.stored_bytes = (uint32_t)len;
	buf_add(to, &head, sizeof(head));
	buf_add(to, stored, len);
	free(raw);
	free(columns);
	free(stored);
}

static void put_chunk(const struct buf *body, uint32_t part, uint32_t sections)
{
	struct layout_chunk chunk = {.magic = LAYOUT_CHUNK_MAGIC,
				     .part = part,
				     .flags = LAYOUT_END,
				     .sections = sections,
				     .body_bytes = body->len};

	chunk.body_crc = (uint32_t)crc32(crc32(0, NULL, 0), (const unsigned char *)body->data, (uInt)body->len);
	chunk.crc =
		(uint32_t)crc32(crc32(0, NULL, 0), (const unsigned char *)&chunk, offsetof(struct layout_chunk, crc));
	buf_add(&file, &chunk, sizeof(chunk));
	buf_add(&file, body->data, body->len);
}

static void put_start(void)
{
	struct layout_start start = {.version = LAYOUT_VERSION, .bytes = sizeof(start)};

	memcpy(start.magic, LAYOUT_MAGIC, LAYOUT_MAGIC_BYTES);
	buf_add(&file, &start, sizeof(start));
}

/* Samples that are all alike, a million in 32 kB; each takes 32 bytes of the timeline's file. */
static void duet_samples(void **state)
{
	const uint32_t event[] = {0, 0, 0, 0}, thread[8] = {0}, sample[] = {0, 0, 0, 0, 0, 0, 1, 0};
	struct buf body = BUF_NONE;

	put_start();
	put_section(&body, LAYOUT_EVENTS, sizeof(event), 1, event);
	put_section(&body, LAYOUT_THREADS, sizeof(thread), 1, thread);
	put_section(&body, LAYOUT_SAMPLES, sizeof(sample), 1 << 20, sample);
	put_chunk(&body, 0, 3);
	for (uint32_t part = 1; part < 3; part++) {
		buf_clear(&body);
		put_section(&body, LAYOUT_SAMPLES, sizeof(sample), 1 << 20, sample);
		put_chunk(&body, part, 1);
	}
	buf_release(&body);
	assert_true(file.len < 200000);
	expect_read("it has too many rows");
	assert_true(profile.samples.len <= 3u << 20);
}

static void duet_facts(void **state)
{
	const uint32_t fact[2] = {0};
	struct buf body = BUF_NONE;

	put_start();
	put_section(&body, LAYOUT_FACTS, sizeof(fact), 100000, fact);
	put_chunk(&body, 0, 1);
	expect_read(NULL);
	assert_int_equal(profile.facts.len, PROFILE_FACTS_MAX);
	profile_release(&profile);
	buf_clear(&file);
	buf_clear(&body);
	put_start();
	put_section(&body, LAYOUT_FACTS, sizeof(fact), 4 << 20, fact);
	put_chunk(&body, 0, 1);
	expect_read("is invalid");
	buf_release(&body);
}

/* ---- JFR ---- */

static const struct type types[] = {
	{"int", "10", {{NULL}}},
	{"java.lang.String", "11", {{NULL}}},
	{"jdk.types.Symbol", "12", {{"string", "11", ""}}},
	{"java.lang.Class", "13", {{"name", "12", "pool"}, {"more", "10", "array"}}},
	{"jdk.types.Method", "14", {{"type", "13", "pool"}, {"name", "12", "pool"}, {"more", "10", "array"}}},
	{"jdk.types.StackFrame", "15", {{"method", "14", "pool"}, {"lineNumber", "10", ""}}},
	{"jdk.types.StackTrace", "16", {{"frames", "15", "array"}}},
	{"jdk.ExecutionSample", "17", {{"startTime", "10", ""}, {"stackTrace", "16", "pool"}}},
	{"jdk.ActiveSetting", "18", {{"id", "10", ""}, {"name", "11", ""}, {"value", "11", ""}}},
};

enum { INT = 10, STRING, SYMBOL, CLASS, METHOD, STACK_FRAME, STACK_TRACE, SAMPLE, SETTING };

#define TYPES (sizeof(types) / sizeof(*types))

/* Begins an event of constants, in which `count` pools follow. */
static void begin_pools(struct buf *body, uint64_t count)
{
	buf_clear(body);
	buf_add(body, "\x01\0\0\0\0", 5); /* type, start, duration, place of the one before, kind */
	jfr_put_number(body, count);
}

static void begin_pool(struct buf *body, uint64_t type, uint64_t count)
{
	jfr_put_number(body, type);
	jfr_put_number(body, count);
}

static void put_long(struct buf *to, size_t len)
{
	buf_add_char(to, JFR_LATIN1);
	jfr_put_number(to, len);
	repeat(to, '1', len);
}

static void put_sample(struct buf *to, uint64_t stack)
{
	struct buf body = BUF_NONE;

	jfr_put_number(&body, SAMPLE);
	jfr_put_number(&body, 0);
	jfr_put_number(&body, stack);
	jfr_put_event(to, &body);
	buf_release(&body);
}

static void put_chunk_of(const struct buf *events)
{
	struct buf elements = BUF_NONE;

	for (size_t i = 0; i < TYPES; i++)
		put_type(&elements, &types[i]);
	put_jfr(&elements, TYPES, events);
	buf_release(&elements);
}

/* Many settings and facts whose text is one constant. */
static void jfr_settings(void **state)
{
	struct buf events = BUF_NONE, body = BUF_NONE;

	begin_pools(&body, 1);
	begin_pool(&body, STRING, 1);
	jfr_put_number(&body, 1);
	put_long(&body, LONG_TEXT);
	jfr_put_event(&events, &body);
	for (int i = 0; i < 100000; i++) {
		buf_clear(&body);
		jfr_put_number(&body, SETTING);
		jfr_put_number(&body, SAMPLE);
		jfr_put_text(&body, JFR_SETTING_INTERVAL);
		buf_add_char(&body, JFR_OF_POOL);
		jfr_put_number(&body, 1);
		jfr_put_event(&events, &body);
	}
	put_chunk_of(&events);
	expect_read(NULL);
	buf_release(&events);
	buf_release(&body);
}

/* One method, whose class has a long name and is a long array; many frames are of this method. */
static void jfr_methods(void **state)
{
	struct buf events = BUF_NONE, body = BUF_NONE;

	begin_pools(&body, 4);
	begin_pool(&body, SYMBOL, 1);
	jfr_put_number(&body, 1);
	put_long(&body, LONG_TEXT);
	begin_pool(&body, CLASS, 1);
	jfr_put_number(&body, 1);
	jfr_put_number(&body, 1); /* name */
	jfr_put_number(&body, LONG_TEXT);
	repeat(&body, 1, LONG_TEXT);
	begin_pool(&body, METHOD, 1);
	jfr_put_number(&body, 1);
	jfr_put_number(&body, 1); /* class */
	jfr_put_number(&body, 1); /* name */
	jfr_put_number(&body, LONG_TEXT);
	repeat(&body, 1, LONG_TEXT);
	begin_pool(&body, STACK_TRACE, 1);
	jfr_put_number(&body, 1);
	jfr_put_number(&body, 60000);
	for (uint64_t i = 0; i < 60000; i++) {
		jfr_put_number(&body, 1);
		jfr_put_number(&body, i);
	}
	jfr_put_event(&events, &body);
	put_sample(&events, 1);
	put_chunk_of(&events);
	expect_read(NULL);
	assert_int_equal(profile.nodes.len, 60001);
	buf_release(&events);
	buf_release(&body);
}

/* Each of many stacks claims to have all frames that follow it. */
static void jfr_stacks_in_each_other(void **state)
{
	struct buf events = BUF_NONE, body = BUF_NONE;
	int err;

	begin_pools(&body, 1);
	begin_pool(&body, STACK_TRACE, 20000);
	for (uint64_t i = 0; i < 20000; i++) {
		jfr_put_number(&body, i + 1);
		jfr_put_number(&body, 1000); /* of frames; by the file's own word, the key of a method */
		jfr_put_number(&body, i); /* line */
	}
	jfr_put_event(&events, &body);
	for (uint64_t i = 0; i < 10000; i++)
		put_sample(&events, i + 1);
	put_chunk_of(&events);
	/* The frames of a stack become one that is no array. */
	for (char *at = file.data; (at = memmem(at, file.len - (size_t)(at - file.data), "dimension", 9)) != NULL;)
		memcpy(at, "dimensiom", 9);
	err = read_bytes(&profile, file.data, file.len, &why);
	assert_true(err < 0);
	assert_true(profile.nodes.len < 100000);
	buf_release(&events);
	buf_release(&body);
}

/* ---- writing ---- */

/* Frames that share the longest name a profile can have, in all formats. */
static void long_names_are_written_fast(void **state)
{
	const struct profile_sample sample = {.count = 1, .weight = 1};
	struct writer_options options;
	uint32_t node = 0;
	char *text = malloc(LONG_TEXT + 1);

	memset(text, 'n', LONG_TEXT);
	text[LONG_TEXT] = '\0';
	assert_int_equal(profile_init(&profile), 0);
	profile_event(&profile, "cpu", PROFILE_COUNT, 1);
	profile_thread(&profile, 1, 1, "", "", 0);
	for (int32_t i = 0; i < 500; i++) {
		const struct frame frame = {.kind = FRAME_COMPILED,
					    .name = intern_str(&profile.strings, text),
					    .class_name = intern_str(&profile.strings, text),
					    .line = i + 1,
					    .bci = -1};

		node = profile_child(&profile, node, profile_frame(&profile, &frame));
	}
	assert_int_equal(profile_add(&profile, &sample), 0);
	profile.samples.recent.items[0].node = node;
	writer_options_default(&options);
	for (size_t i = 0; writers[i]; i++) {
		double begin = cpu_s();

		free(written(writers[i]->name, &profile, &options));
		assert_true(cpu_s() - begin < MUCH_S);
	}
	free(text);
}

/* ---- stacks that are long for each sample ---- */

/* A chain of frames with a sample at each: the frames of all stacks are the square of its length. */
static void make_chain(uint32_t length, size_t name_bytes)
{
	uint32_t node = 0, thread;

	assert_int_equal(profile_init(&profile), 0);
	assert_int_equal(profile_event(&profile, "cpu", PROFILE_NS, 1), 0);
	thread = profile_thread(&profile, 1, 1, "t", "p", 0);
	for (uint32_t i = 0; i < length; i++) {
		char name[1024];

		snprintf(name, sizeof(name), "%0*u", (int)name_bytes, i);
		node = profile_child(&profile, node,
				     profile_frame(&profile, &(struct frame){.kind = FRAME_NATIVE,
									     .name = intern_str(&profile.strings, name),
									     .bci = -1}));
		assert_int_equal(profile_add(&profile, &(struct profile_sample){.time_ns = i,
										 .weight = 1,
										 .thread = thread,
										 .node = node,
										 .count = 1}),
				 0);
	}
}

static ssize_t count_bytes(void *cookie, const char *bytes, size_t len)
{
	*(uint64_t *)cookie += len;
	return (ssize_t)len;
}

static uint64_t bytes_as(const char *format)
{
	struct writer_options options;
	uint64_t bytes = 0;
	FILE *out = fopencookie(&bytes, "w", (cookie_io_functions_t){.write = count_bytes});
	char buffer[1 << 16];

	assert_non_null(out);
	setvbuf(out, buffer, _IOFBF, sizeof(buffer));
	writer_options_default(&options);
	assert_int_equal(writer_by_name(format)->write(&profile, &options, out), 0);
	fclose(out);
	return bytes;
}

/* 2.4 GB in each of these formats without a limit; less than the half more than the limit of a file that was read. */
static void chain_of_long_names(void **state)
{
	static const char *const formats[] = {"collapsed", "col", "perf"};
	const uint64_t length = 4000, more = STACK_ROOM_ALL / 4, small = 16u << 20;

	make_chain((uint32_t)length, 300);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		profile.most_text = 0;
		assert_in_range(bytes_as(formats[i]), more / 2, more + (length + 1) * (STACK_ROOM_EACH + 1024));
		profile.most_text = small;
		assert_in_range(bytes_as(formats[i]), small, small / 2 * 3 + (length + 1) * 1024);
	}
}

/* A stack that has room is whole; the frames nearest the leaf stay of one that has none. */
static void chain_of_short_names(void **state)
{
	struct path_labels labels;
	struct writer_options options;
	struct path_maker path;
	uint64_t frames = 0;
	double begin = cpu_s();

	make_chain(14000, 1);
	writer_options_default(&options);
	assert_int_equal(path_labels_init(&labels), 0);
	assert_int_equal(path_maker_init(&path, &labels, &profile, &options), 0);
	for (uint32_t node = 1; node < profile.nodes.len; node++) {
		assert_int_equal(path_make(&path, 0, node), 1);
		frames += path.depth;
	}
	assert_in_range(frames, PATH_DEEP_FRAMES, PATH_DEEP_FRAMES + (PATH_DEEP + 1) * profile.nodes.len);
	assert_int_equal(path.depth, PATH_DEEP + 1);
	assert_string_equal(labels.items[path.steps.items[0].label].text, "13999");
	assert_string_equal(labels.items[path.steps.items[PATH_DEEP].label].text, PATH_TRUNCATED);
	assert_true(cpu_s() - begin < MUCH_S);
	path_maker_release(&path);
	path_labels_release(&labels);
}

/* The file has the numbers of 16 million frames, 41 MB. Nothing else in memory grows with them. */
static void chain_in_binary_tables(void **state)
{
	long before_kb = most_memory_kb();

	make_chain(5657, 1);
	assert_in_range(bytes_as("otlp"), 25 << 20, 50 << 20);
	assert_true(bytes_as("otlp-json") > 70 << 20);
	assert_true(most_memory_kb() - before_kb < 100 << 10);
}

/* A line of collapsed stacks that stands for billions of samples. */
static void one_line_for_all(void **state)
{
	make_chain(3, 3);
	profile.samples.recent.items[2].count = UINT32_MAX;
	profile.samples.recent.items[2].weight = UINT32_MAX;
	assert_true(bytes_as("perf") < STACK_ROOM_ALL / 4 + 10 * STACK_ROOM_EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(chain_in_binary_tables,
					  tear_down), /* first: the most memory never gets less */
		cmocka_unit_test_teardown(perf_names_of_processes, tear_down),
		cmocka_unit_test_teardown(perf_events, tear_down),
		cmocka_unit_test_teardown(pprof_strings, tear_down),
		cmocka_unit_test_teardown(pprof_frames, tear_down),
		cmocka_unit_test_teardown(duet_samples, tear_down),
		cmocka_unit_test_teardown(duet_facts, tear_down),
		cmocka_unit_test_teardown(jfr_settings, tear_down),
		cmocka_unit_test_teardown(jfr_methods, tear_down),
		cmocka_unit_test_teardown(jfr_stacks_in_each_other, tear_down),
		cmocka_unit_test_teardown(long_names_are_written_fast, tear_down),
		cmocka_unit_test_teardown(chain_of_long_names, tear_down),
		cmocka_unit_test_teardown(chain_of_short_names, tear_down),
		cmocka_unit_test_teardown(one_line_for_all, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
