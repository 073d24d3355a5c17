/* SPDX-License-Identifier: MIT */
/*
 * Files whose rows refer to long texts, to constants that mean nothing, or to each other. What rows refer to is made
 * once; a file that would become far more than its bytes is refused in one sentence.
 */
#include "fixtures/made_file.h"

#include "profile/merge.h"
#include "writers/text/annotation.h"
#include "writers/writer.h"

/* ---- names ---- */

/* Each frame is a pair of `count` texts of so many bytes. */
static void put_pairs(int count, int bytes)
{
	struct profile pairs;
	char *written, text[PROFILE_TEXT_MAX + 1];
	uint32_t ids[200];
	size_t len;

	assert_int_equal(profile_init(&pairs), 0);
	memset(text, 'A', sizeof(text));
	for (int i = 0; i < count; i++) {
		snprintf(text + bytes - 5, 6, "%05d", i);
		ids[i] = intern_str(&pairs.strings, text);
	}
	for (int i = 0; i < count * count; i++)
		(void)profile_frame(&pairs, &(struct frame){.kind = FRAME_COMPILED,
							    .class_name = ids[i / count],
							    .name = ids[i % count],
							    .bci = -1});
	add_cpu_sample(&pairs, profile_child(&pairs, 0, 0), profile_thread(&pairs, 1, 1, "t", "p", 0), 1, 1);
	written = written_file("duet", &pairs, &len);
	buf_add(&file, written, len);
	free(written);
	profile_release(&pairs);
}

static void pairs_of_long_names(void **state)
{
	put_pairs(200, PROFILE_TEXT_MAX);
	assert_in_range(file.len, 1, 1 << 20);
	expect_read("its names would be 625 MB, written out, too long for so short a file");
}

static void pairs_of_names(void **state)
{
	put_pairs(200, 100);
	expect_read(NULL);
	assert_int_equal(profile.frames.len, 200 * 200);
}

/* Formats repeat these names: with each sample, or with each thread of each event. */
static void names_of_threads_and_events_are_cut(void **state)
{
	char name[400];
	uint64_t id = 7;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(profile_init(&profile), 0);
	assert_int_equal(profile_event(&profile, name, PROFILE_NS, 1), 0);
	name[300] = 'x';
	assert_int_equal(profile_event(&profile, name, PROFILE_NS, 1), 0);
	assert_int_equal(strlen(profile_event_name(&profile, 0)), PROFILE_NAME_MAX);
	for (int i = 0; i < 2; i++) {
		struct profile_thread row = {.pid = 1, .tid = 2, .name = intern_str(&profile.strings, name)};

		assert_int_equal(profile_thread_row(&profile, row, NULL), 0);
		row.tid = PROFILE_VIRTUAL;
		assert_int_equal(profile_thread_row(&profile, row, &id), 1);
		name[301] = 'y';
	}
	assert_int_equal(profile_thread(&profile, 1, 2, name, "", 0), 0);
	assert_int_equal(profile_virtual_thread(&profile, 1, id, name, "", 0), 1);
	assert_int_equal(strlen(profile_text(&profile, profile.threads.items[0].name)), PROFILE_NAME_MAX);
	assert_int_equal(profile_virtual_id(&profile, 1), id);
}

/* ---- lists of nothing ---- */

static void put_empty_resources(size_t count)
{
	buf_add_str(&file, "{\"resourceProfiles\":[{}");
	while (count--)
		buf_add_str(&file, ",{}");
	buf_add_str(&file, "]}");
}

static void json_of_empty_objects(void **state)
{
	long before = most_memory_kb();

	put_empty_resources(3000000);
	expect_read("the file has no dictionary");
	assert_in_range(most_memory_kb() - before, 0, 120 << 10); /* a tree of the objects has 700 MB */
}

static void small_file_of_large_contents(void **state)
{
	put_empty_resources(20 << 20);
	compress_file();
	expect_read("unpacked, it is more than 40 times as long: unpack it first");
}

/* ---- sums ---- */

static void put_number(struct buf *to, unsigned int field, uint64_t number)
{
	jfr_put_number(to, field << 3);
	if (number >> 56) { /* JFR's ninth byte is another */
		for (; number >= 0x80; number >>= 7)
			buf_add_char(to, (char)(number | 0x80));
		buf_add_char(to, (char)number);
	} else {
		jfr_put_number(to, number);
	}
}

/* pprof: so many samples that weigh 2^53 ns. */
static void put_heavy(int samples)
{
	static const char *const texts[] = {"", "cpu", "nanoseconds"};
	struct buf message = BUF_NONE;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		put_field(&file, 6, texts[i], strlen(texts[i]));
	put_number(&message, 1, 1);
	put_number(&message, 2, 2);
	put_field(&file, 1, message.data, message.len);
	buf_clear(&message);
	put_number(&message, 2, 1ull << 53);
	while (samples--)
		put_field(&file, 2, message.data, message.len);
	buf_release(&message);
}

static void sum_of_weights(void **state)
{
	size_t len;

	put_heavy(1023);
	expect_read(NULL);
	assert_true(profile.weight == 1023ull << 53);
	free(written_file("pprof", &profile, &len));
}

/* The sum is one more than signed numbers have. */
static void sum_of_weights_that_is_too_large(void **state)
{
	put_heavy(1024);
	expect_read("the values of the samples are too large");
}

/* ---- JFR ---- */

/* "duet.Fact" is looked for with each type, and none has the name. */
static void jfr_types(void **state)
{
	struct buf elements = BUF_NONE, none = BUF_NONE;

	string_of("duet.Fact");
	for (int i = 0; i < 400000; i++)
		put_type(&elements, &(struct type){.name = "X", .id = "1"});
	put_jfr(&elements, 400000, &none);
	expect_read(NULL);
	assert_int_equal(profile.events.len, 0);
	buf_release(&elements);
}

/* clang-format off */
static const struct type object_types[] = {
	{"long", "4", {{NULL}}},
	{"byte", "5", {{NULL}}},
	{"java.lang.Class", "11", {{"name", "5", ""}}},
	{"jdk.types.OldObject", "23", {{"type", "11", "pool"}, {"junk", "5", "array"}}},
	{"jdk.OldObjectSample", "30",
	 {{"startTime", "4", ""}, {"stackTrace", "4", "pool"}, {"objectSize", "4", ""}, {"object", "23", "pool"}}},
};
/* clang-format on */

#define OBJECT_TYPES (sizeof(object_types) / sizeof(*object_types))

/* Each sample refers to one object, which is long and whose class the chunk does not have. */
static void jfr_object_without_a_class(void **state)
{
	struct buf elements = BUF_NONE, events = BUF_NONE, body = BUF_NONE;

	for (size_t i = 0; i < OBJECT_TYPES; i++)
		put_type(&elements, &object_types[i]);
	buf_add(&body, "\x01\0\0\0\0\x01\x17\x01\x01\0", 10); /* a pool of type 23: the object 1, of class 0 */
	jfr_put_number(&body, 4 << 20);
	for (int i = 0; i < 4 << 20; i++)
		buf_add_char(&body, 0);
	jfr_put_event(&events, &body);
	buf_clear(&body);
	buf_add(&body, "\x1e\x05\0\x08\x01", 5); /* start, stack, size, object */
	for (int i = 0; i < 20000; i++)
		jfr_put_event(&events, &body);
	put_jfr(&elements, OBJECT_TYPES, &events);
	expect_read(NULL);
	assert_int_equal(profile.samples.len, 20000);
	assert_true(profile.weight == 20000 * 8);
	buf_release(&elements);
	buf_release(&events);
	buf_release(&body);
}

/* ---- stacks ---- */

#define CHAIN 60000

/* A chain of one method, with a sample at each of its frames. */
static void make_chain(void)
{
	uint32_t frame, thread, node = 0;

	assert_int_equal(profile_init(&profile), 0);
	frame = java_frame(&profile, FRAME_COMPILED, "acme.Main", "run", "()V", 7);
	thread = profile_thread(&profile, 1, 1, "t", "p", 0);
	for (int i = 0; i < CHAIN; i++) {
		node = profile_child(&profile, node, frame);
		add_cpu_sample(&profile, node, thread, 1, 10);
	}
}

static void chain_that_is_annotated(void **state)
{
	struct annotation annotation = {0};
	struct writer_options options;
	double begin = cpu_s();

	make_chain();
	writer_options_default(&options);
	assert_int_equal(annotation_build(&annotation, &profile, "acme.Main", &options), 0);
	assert_int_equal(annotation.lines.len, 1);
	assert_int_equal(annotation.lines.items[0].self.samples, CHAIN);
	assert_int_equal(annotation.lines.items[0].total.samples, CHAIN);
	assert_int_equal(annotation.codes.items[0].total.amount, 10 * CHAIN);
	assert_int_equal(annotation.all.samples, CHAIN);
	annotation_release(&annotation);
	assert_true(cpu_s() - begin < MUCH_S);
}

/* The parts share no frame of the chain that was moved before. */
static void chain_that_is_merged(void **state)
{
	const struct profile_part all = {.until_ns = UINT64_MAX, .event = UINT32_MAX, .also = UINT32_MAX};
	double begin = cpu_s();
	struct profile moved;

	make_chain();
	assert_int_equal(profile_init(&moved), 0);
	assert_int_equal(profile_cut(&moved, &profile, &all, &why), 0);
	assert_int_equal(moved.nodes.len, CHAIN + 1);
	assert_int_equal(moved.samples.len, CHAIN);
	for (uint32_t i = 1; i <= CHAIN; i++)
		assert_int_equal(moved.nodes.items[i].parent, i - 1);
	profile_release(&moved);
	assert_true(cpu_s() - begin < MUCH_S);
}

/* In a;b;a;b the inner call of b is within the outer one, and does not count twice. */
static void calls_within_calls(void **state)
{
	uint32_t a, b, thread;
	char *text;
	size_t len;

	assert_int_equal(profile_init(&profile), 0);
	a = frame_of(&profile, FRAME_NATIVE, "a", "");
	b = frame_of(&profile, FRAME_NATIVE, "b", "");
	thread = profile_thread(&profile, 1, 1, "t", "p", 0);
	ADD_STACK(&profile, thread, 3, a, b, a, b);
	ADD_STACK(&profile, thread, 2, a, b);
	ADD_STACK(&profile, thread, 1, b, a, b);
	text = written_file("callgrind", &profile, &len);
	assert_non_null(strstr(text, "b\ncalls=6 0\n0 60000000 6\n"));
	assert_non_null(strstr(text, "a\ncalls=4 0\n0 40000000 4\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pairs_of_long_names, tear_down),
		cmocka_unit_test_teardown(pairs_of_names, tear_down),
		cmocka_unit_test_teardown(names_of_threads_and_events_are_cut, tear_down),
		cmocka_unit_test_teardown(json_of_empty_objects, tear_down),
		cmocka_unit_test_teardown(small_file_of_large_contents, tear_down),
		cmocka_unit_test_teardown(sum_of_weights, tear_down),
		cmocka_unit_test_teardown(sum_of_weights_that_is_too_large, tear_down),
		cmocka_unit_test_teardown(jfr_types, tear_down),
		cmocka_unit_test_teardown(jfr_object_without_a_class, tear_down),
		cmocka_unit_test_teardown(chain_that_is_annotated, tear_down),
		cmocka_unit_test_teardown(chain_that_is_merged, tear_down),
		cmocka_unit_test_teardown(calls_within_calls, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
