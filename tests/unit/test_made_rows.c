/* SPDX-License-Identifier: MIT */
/*
 * Files whose rows refer to long texts, to constants that mean nothing, or to each other. What rows refer to is made
 * once; a file that would become far more than its bytes is refused in one sentence.
 */
#include "fixtures/read_back.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <zlib.h>

#include "profile/jfr.h"
#include "profile/merge.h"
#include "writers/jfr/bytes.h"
#include "writers/text/annotation.h"
#include "writers/writer.h"

#define MUCH_S 6.0 /* on a busy machine, under a sanitizer */

static struct buf file, why;
static struct profile profile;

static int set_up(void **state)
{
	buf_init(&file);
	buf_init(&why);
	return 0;
}

static int tear_down(void **state)
{
	buf_release(&file);
	buf_release(&why);
	profile_release(&profile);
	return 0;
}

static double cpu_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void expect_read(const char *cause)
{
	double begin = cpu_s();
	int err = read_bytes(&profile, file.data, file.len, &why);

	assert_true(cpu_s() - begin < MUCH_S);
	if (cause && !strstr(why.data, cause))
		assert_string_equal(why.data, cause);
	assert_true(cause ? err < 0 : !err);
}

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
		const struct profile_thread row = {.pid = 1, .tid = 2, .name = intern_str(&profile.strings, name)};

		assert_int_equal(profile_thread_row(&profile, row, NULL), 0);
		assert_int_equal(profile_thread_row(&profile, row, &id), 1);
		name[301] = 'y';
	}
	assert_int_equal(profile_thread(&profile, 1, 2, name, "", 0), 0);
	assert_int_equal(profile_virtual_thread(&profile, 1, id, name, "", 0), 1);
	assert_int_equal(strlen(profile_text(&profile, profile.threads.items[0].name)), PROFILE_NAME_MAX);
	assert_int_equal(profile_virtual_id(&profile, 1), id);
}

/* ---- lists of nothing ---- */

static long most_memory_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

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
	uLongf len = compressBound(60 << 20);
	struct buf packed = BUF_NONE;
	z_stream stream = {0};

	put_empty_resources(20 << 20);
	assert_true(buf_reserve(&packed, len));
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (unsigned char *)file.data, stream.avail_in = (uInt)file.len;
	stream.next_out = (unsigned char *)packed.data, stream.avail_out = (uInt)len;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	packed.len = stream.total_out;
	deflateEnd(&stream);
	buf_release(&file);
	file = packed;
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

static void put_message(unsigned int field, const struct buf *message)
{
	jfr_put_number(&file, field << 3 | 2);
	jfr_put_number(&file, message->len);
	buf_add(&file, message->data, message->len);
}

/* pprof: so many samples that weigh 2^53 ns. */
static void put_heavy(int samples)
{
	static const char *const texts[] = {"", "cpu", "nanoseconds"};
	struct buf message = BUF_NONE;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_clear(&message);
		buf_add_str(&message, texts[i]);
		put_message(6, &message);
	}
	buf_clear(&message);
	put_number(&message, 1, 1);
	put_number(&message, 2, 2);
	put_message(1, &message);
	buf_clear(&message);
	put_number(&message, 2, 1ull << 53);
	while (samples--)
		put_message(2, &message);
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

static void put_element(struct buf *to, uint32_t name, const uint32_t (*attributes)[2], size_t count, size_t elements)
{
	jfr_put_number(to, name);
	jfr_put_number(to, count);
	for (size_t i = 0; i < count; i++) {
		jfr_put_number(to, attributes[i][0]);
		jfr_put_number(to, attributes[i][1]);
	}
	jfr_put_number(to, elements);
}

/* A chunk of these elements below "metadata", whose texts are numbers in the list. */
static void put_chunk(const char *const *texts, size_t count, size_t types, const struct buf *elements,
		      const struct buf *events)
{
	struct buf body = BUF_NONE, metadata = BUF_NONE;
	struct jfr_header header = {
		.magic = JFR_MAGIC,
		.major = __builtin_bswap16(JFR_MAJOR),
		.ticks_per_second = __builtin_bswap64(1000),
		.features = __builtin_bswap32(JFR_COMPRESSED),
		.pools_at = __builtin_bswap64(1),
		.metadata_at = __builtin_bswap64(sizeof(header)),
	};

	buf_add(&body, "\0\0\0\0", 4); /* type, start, duration, id */
	jfr_put_number(&body, count);
	for (size_t i = 0; i < count; i++)
		jfr_put_text(&body, texts[i]);
	put_element(&body, 0, NULL, 0, 1);
	put_element(&body, 0, NULL, 0, types);
	buf_add(&body, elements->data, elements->len);
	jfr_put_event(&metadata, &body);
	header.bytes = __builtin_bswap64(sizeof(header) + metadata.len + events->len);
	buf_add(&file, &header, sizeof(header));
	buf_add(&file, metadata.data, metadata.len);
	buf_add(&file, events->data, events->len);
	buf_release(&body);
	buf_release(&metadata);
}

/* "duet.Fact" is looked for with each type, and none has the name. */
static void jfr_types(void **state)
{
	enum { TEXT_ROOT, TEXT_CLASS, TEXT_NAME, TEXT_ID, TEXT_X, TEXT_1, TEXT_FACT };
	static const char *const texts[] = {"root", "class", "name", "id", "X", "1", "duet.Fact"};
	static const uint32_t attributes[][2] = {{TEXT_NAME, TEXT_X}, {TEXT_ID, TEXT_1}};
	struct buf elements = BUF_NONE, none = BUF_NONE;

	for (int i = 0; i < 400000; i++)
		put_element(&elements, TEXT_CLASS, attributes, 2, 0);
	put_chunk(texts, sizeof(texts) / sizeof(*texts), 400000, &elements, &none);
	expect_read(NULL);
	assert_int_equal(profile.events.len, 0);
	buf_release(&elements);
}

/* clang-format off */
enum {
	CLASS = 1, NAME, ID, FIELD, TYPE_OF, POOL, TRUE, DIMENSION, ONE, LONG_NAME, BYTE_NAME, OBJECT_NAME, SAMPLE_NAME,
	CLASS_NAME, N4, N5, N11, N23, N30, START, SIZE, OBJECT, TYPE, JUNK, STACK, TEXTS
};
static const char *const object_texts[TEXTS] = {
	"root", "class", "name", "id", "field", "class", "constantPool", "true", "dimension", "1", "long", "byte",
	"jdk.types.OldObject", "jdk.OldObjectSample", "java.lang.Class", "4", "5", "11", "23", "30", "startTime",
	"objectSize", "object", "type", "junk", "stackTrace",
};
static const struct {
	uint32_t name, id, fields[4][3]; /* name, class, 0 or POOL or DIMENSION */
} object_types[] = {
	{LONG_NAME, N4, {{0}}},
	{BYTE_NAME, N5, {{0}}},
	{CLASS_NAME, N11, {{NAME, N5, 0}}},
	{OBJECT_NAME, N23, {{TYPE, N11, POOL}, {JUNK, N5, DIMENSION}}},
	{SAMPLE_NAME, N30, {{START, N4, 0}, {STACK, N4, POOL}, {SIZE, N4, 0}, {OBJECT, N23, POOL}}},
};
/* clang-format on */

#define OBJECT_TYPES (sizeof(object_types) / sizeof(*object_types))

static void put_object_type(struct buf *elements, size_t type)
{
	const uint32_t attributes[][2] = {{NAME, object_types[type].name}, {ID, object_types[type].id}};
	size_t fields = 0;

	while (fields < 4 && object_types[type].fields[fields][0])
		fields++;
	put_element(elements, CLASS, attributes, 2, fields);
	for (size_t i = 0; i < fields; i++) {
		const uint32_t *field = object_types[type].fields[i];
		const uint32_t of_field[][2] = {
			{NAME, field[0]}, {TYPE_OF, field[1]}, {field[2], field[2] == POOL ? TRUE : ONE}};

		put_element(elements, FIELD, of_field, field[2] ? 3 : 2, 0);
	}
}

/* Each sample refers to one object, which is long and whose class the chunk does not have. */
static void jfr_object_without_a_class(void **state)
{
	struct buf elements = BUF_NONE, events = BUF_NONE, body = BUF_NONE;

	for (size_t i = 0; i < OBJECT_TYPES; i++)
		put_object_type(&elements, i);
	buf_add(&body, "\x01\0\0\0\0\x01\x17\x01\x01\0", 10); /* a pool of type 23: the object 1, of class 0 */
	jfr_put_number(&body, 4 << 20);
	for (int i = 0; i < 4 << 20; i++)
		buf_add_char(&body, 0);
	jfr_put_event(&events, &body);
	buf_clear(&body);
	buf_add(&body, "\x1e\x05\0\x08\x01", 5); /* start, stack, size, object */
	for (int i = 0; i < 20000; i++)
		jfr_put_event(&events, &body);
	put_chunk(object_texts, TEXTS, OBJECT_TYPES, &elements, &events);
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
		cmocka_unit_test_setup_teardown(pairs_of_long_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pairs_of_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_of_threads_and_events_are_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_of_empty_objects, set_up, tear_down),
		cmocka_unit_test_setup_teardown(small_file_of_large_contents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sum_of_weights, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sum_of_weights_that_is_too_large, set_up, tear_down),
		cmocka_unit_test_setup_teardown(jfr_types, set_up, tear_down),
		cmocka_unit_test_setup_teardown(jfr_object_without_a_class, set_up, tear_down),
		cmocka_unit_test_setup_teardown(chain_that_is_annotated, set_up, tear_down),
		cmocka_unit_test_setup_teardown(chain_that_is_merged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_within_calls, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
