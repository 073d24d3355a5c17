/* SPDX-License-Identifier: MIT */
/* pprof files, written and read; gzip. */
#include "fixtures/read_back.h"

#include <errno.h>
#include <time.h>
#include <zlib.h>

#include "profile/pprof.h"
#include "readers/reader.h"

/* Every kind of frame, hostile names, threads, weights, losses and facts. */
static void round_trip_keeps_all_but_times(void **state)
{
	struct profile first, second;

	profile_of_everything(&first);
	first.processes = PROFILE_ALWAYS;
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	first.end_ns = first.start_ns + 5 * MS;
	read_back("pprof", &first, &second);
	assert_same_in_all_styles(&first, &second);
	assert_int_equal(second.processes, PROFILE_ALWAYS);
	assert_int_equal(second.losses.len, 1);
	assert_int_equal(second.losses.items[0].count, 7);
	assert_int_equal(second.facts.len, 2);
	assert_string_equal(intern_text(&second.strings, second.facts.items[0].value), "cpu every 10 ms");
	assert_int_equal(second.start_ns, first.start_realtime_ns);
	assert_int_equal(second.end_ns - second.start_ns, 5 * MS);
	assert_int_equal(second.events.items[0].interval, 10 * MS);
	profile_release(&first);
	profile_release(&second);
}

/* Written by Go 1.19's runtime/pprof, with an inlined function. Its own tool shows 22 samples. */
static void file_of_go(void **state)
{
	struct writer_options options;
	struct profile profile;
	struct buf file, why;
	char *text;

	buf_init(&file);
	buf_init(&why);
	assert_int_equal(io_read_file(AT_FDCWD, "tests/fixtures/go_cpu.pb.gz", 1 << 20, &file), 0);
	assert_int_equal(read_bytes(&profile, file.data, file.len, &why), 0);
	writer_options_default(&options);
	text = written("collapsed", &profile, &options);
	assert_string_equal(text, "runtime.main;main.main 4\nruntime.main;main.main;main.work 18\n");
	free(text);
	options.total = true;
	text = written("collapsed", &profile, &options);
	assert_string_equal(text, "runtime.main;main.main 40000000\nruntime.main;main.main;main.work 180000000\n");
	free(text);
	assert_int_equal(profile.events.len, 1);
	assert_string_equal(intern_text(&profile.strings, profile.events.items[0].name), "cpu");
	assert_int_equal(profile.events.items[0].interval, 10 * MS);
	assert_int_equal(profile.end_ns - profile.start_ns, 0x1804ba9b);
	profile_release(&profile);

	/* Cut anywhere, it is refused with a sentence. */
	for (size_t len = 30; len < file.len; len++) {
		buf_clear(&why);
		assert_true(read_bytes(&profile, file.data, len, &why) < 0);
		assert_true(why.len > 0);
		profile_release(&profile);
	}
	buf_release(&file);
	buf_release(&why);
}

/* A file of one sample of cpu/nanoseconds, as the given function changes it. */
static void refused(void (*change)(Pprof__Profile *), const char *cause)
{
	char *strings[] = {(char *)"", (char *)"cpu", (char *)"nanoseconds", (char *)"f"};
	Pprof__Profile file = PPROF__PROFILE__INIT;
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *types = &type;
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	int64_t value = 5;
	uint64_t id = 1;
	struct profile profile;
	uint8_t bytes[70000];
	struct buf why;
	int err;

	file.n_strings = 4, file.strings = strings;
	type.type = 1, type.unit = 2, file.n_value_types = 1, file.value_types = &types;
	function.id = 1, function.name = 3, file.n_functions = 1, file.functions = &functions;
	line.function = 1, location.id = 1, location.n_lines = 1, location.lines = &lines;
	file.n_locations = 1, file.locations = &locations;
	sample.n_locations = 1, sample.locations = &id, sample.n_values = 1, sample.values = &value;
	file.n_samples = 1, file.samples = &samples;
	if (change)
		change(&file);
	buf_init(&why);
	err = read_bytes(&profile, bytes, pprof__profile__pack(&file, bytes), &why);
	if (cause)
		assert_non_null(strstr(why.data, cause));
	assert_int_equal(err, cause ? -EINVAL : 0);
	profile_release(&profile);
	buf_release(&why);
}

static void no_locations(Pprof__Profile *file)
{
	file->n_locations = 0;
}

static void no_functions(Pprof__Profile *file)
{
	file->n_functions = 0;
}

static void no_strings(Pprof__Profile *file)
{
	file->n_strings = 0;
}

static void no_value_types(Pprof__Profile *file)
{
	file->n_value_types = 0;
}

static void no_mapping(Pprof__Profile *file)
{
	file->locations[0]->mapping = 7;
}

static void no_values(Pprof__Profile *file)
{
	file->samples[0]->n_values = 0;
}

static void negative(Pprof__Profile *file)
{
	file->samples[0]->values[0] = -1;
}

static void too_large(Pprof__Profile *file)
{
	file->samples[0]->values[0] = INT64_MAX;
}

static void string_outside(Pprof__Profile *file)
{
	file->functions[0]->name = 4;
}

static void refuses_what_does_not_fit(void **state)
{
	refused(NULL, NULL);
	refused(no_locations, "a sample refers to location 1, which the file does not have");
	refused(no_functions, "a location refers to function 1, which the file does not have");
	refused(no_mapping, "a location refers to mapping 7, which the file does not have");
	refused(no_strings, "the file has no string table");
	refused(no_value_types, "the file has no value types");
	refused(no_values, "a sample has 0 values of 1");
	refused(negative, "negative");
	refused(too_large, "too large");
	refused(string_outside, "a function refers to a string that the file does not have");
}

/* ---- one long text, used by many ---- */

#define LONG_TEXT (900 << 10)
#define USERS 60
#define COMMENTS_MOST 16384

static double cpu_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/*
 * Reads a file of `count` locations in a mapping, either lines of one Java method or addresses, where the name of the
 * method or of the mapping is long. Returns the CPU time in s.
 */
static double read_long_text(struct profile *profile, size_t count, bool is_method)
{
	char *text = malloc(LONG_TEXT + 1);
	char *strings[] = {(char *)"", (char *)"cpu", (char *)"nanoseconds", (char *)"[compiled]", text};
	Pprof__Profile file = PPROF__PROFILE__INIT;
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *types = &type;
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;
	Pprof__Line lines[USERS], *line[USERS];
	Pprof__Location locations[USERS], *location[USERS];
	uint8_t *bytes;
	struct buf why;
	double begin;
	size_t len;

	memset(text, 'a', LONG_TEXT);
	text[LONG_TEXT] = '\0';
	file.n_strings = 5, file.strings = strings;
	type.type = 1, type.unit = 2, file.n_value_types = 1, file.value_types = &types;
	mapping.id = 1, mapping.file = is_method ? 3 : 4, file.n_mappings = 1, file.mappings = &mappings;
	function.id = 1, function.name = 4, file.n_functions = 1, file.functions = &functions;
	for (size_t i = 0; i < count; i++) {
		lines[i] = (Pprof__Line)PPROF__LINE__INIT, line[i] = &lines[i];
		lines[i].function = 1, lines[i].line = (int64_t)i + 1;
		locations[i] = (Pprof__Location)PPROF__LOCATION__INIT, location[i] = &locations[i];
		locations[i].id = i + 1, locations[i].mapping = 1, locations[i].address = i;
		locations[i].n_lines = is_method, locations[i].lines = &line[i];
	}
	file.n_locations = count, file.locations = location;
	len = pprof__profile__get_packed_size(&file);
	bytes = malloc(len);
	assert_int_equal(pprof__profile__pack(&file, bytes), len);
	buf_init(&why);
	begin = cpu_s();
	assert_int_equal(read_bytes(profile, bytes, len, &why), 0);
	begin = cpu_s() - begin;
	buf_release(&why);
	free(bytes);
	free(text);
	return begin;
}

/* A heap of two values, of which `default_type` is the string of one, and code without a name. */
static void read_heap(struct profile *profile, int64_t default_type)
{
	char *strings[] = {(char *)"", (char *)"alloc_space", (char *)"inuse_space", (char *)"bytes",
			   (char *)"/usr/bin/app", (char *)"alloc_space"};
	Pprof__Profile file = PPROF__PROFILE__INIT;
	Pprof__ValueType alloc = PPROF__VALUE_TYPE__INIT, inuse = PPROF__VALUE_TYPE__INIT, *types[] = {&alloc, &inuse};
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;
	Pprof__Location inside = PPROF__LOCATION__INIT, outside = PPROF__LOCATION__INIT;
	Pprof__Location *locations[] = {&inside, &outside};
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	uint8_t bytes[512];
	struct buf why;

	buf_init(&why);
	file.n_strings = 6, file.strings = strings, file.default_type = default_type;
	alloc.type = 1, inuse.type = 2, alloc.unit = inuse.unit = 3, file.n_value_types = 2, file.value_types = types;
	mapping.id = 1, mapping.file = 4, mapping.start = 0x400000, mapping.end = 0x500000;
	mapping.file_offset = 0x2000, file.n_mappings = 1, file.mappings = &mappings;
	inside.id = 1, inside.mapping = 1, inside.address = 0x401234;
	outside.id = 2, outside.mapping = 1, outside.address = 0x5678;
	file.n_locations = 2, file.locations = locations;
	sample.n_locations = 2, sample.locations = (uint64_t[]){1, 2};
	sample.n_values = 2, sample.values = (int64_t[]){10, 20};
	file.n_samples = 1, file.samples = &samples;
	assert_true(pprof__profile__get_packed_size(&file) < sizeof(bytes));
	assert_int_equal(read_bytes(profile, bytes, pprof__profile__pack(&file, bytes), &why), 0);
	buf_release(&why);
}

/* What go tool pprof shows without an option is the first event. Code without a name has its place in the file. */
static void heap_of_others(void **state)
{
	static const struct {
		int64_t default_type;
		const char *first, *want;
	} cases[] = {
		{0, "inuse_space", "app+0x5678;app+0x3234 20\n"},
		{1, "alloc_space", "app+0x5678;app+0x3234 10\n"},
		{2, "inuse_space", "app+0x5678;app+0x3234 20\n"},
		{5, "alloc_space", "app+0x5678;app+0x3234 10\n"}, /* the same text again */
		{3, "inuse_space", "app+0x5678;app+0x3234 20\n"}, /* no type of the file */
	};
	struct writer_options options;

	writer_options_default(&options);
	options.total = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile profile;
		char *text;

		read_heap(&profile, cases[i].default_type);
		assert_int_equal(profile.events.len, 2);
		assert_string_equal(intern_text(&profile.strings, profile.events.items[0].name), cases[i].first);
		text = written("collapsed", &profile, &options);
		assert_string_equal(text, cases[i].want);
		free(text);
		profile_release(&profile);
	}
}

static void long_names_are_read_once(void **state)
{
	double ratio = 1e9;

	for (int i = 0; i < 3; i++) {
		struct profile one, many;
		double less = read_long_text(&one, 1, true), more = read_long_text(&many, USERS, true);

		assert_true(many.frames.len >= USERS);
		ratio = more / less < ratio ? more / less : ratio;
		profile_release(&one);
		profile_release(&many);
	}
	if (ratio > 5)
		fail_msg("%d lines take %.0f times as long as one", USERS, ratio);
}

static void names_of_addresses_are_short(void **state)
{
	struct profile profile;

	(void)read_long_text(&profile, USERS, false);
	for (size_t i = 0; i < profile.frames.len; i++)
		assert_true(strlen(intern_text(&profile.strings, profile.frames.items[i].name)) < 300);
	profile_release(&profile);
}

static void too_many_comments(Pprof__Profile *file)
{
	static int64_t comments[COMMENTS_MOST + 1];

	file->comments = comments;
	file->n_comments = COMMENTS_MOST + 1;
}

static void comments_are_bounded(void **state)
{
	refused(too_many_comments, "the file has more than 16384 comments");
}

/* A small file with large contents ends at the limit; the same with the right size is read. */
static void inflating_is_bounded(void **state)
{
	size_t size = 8 << 20, packed_len = compressBound(size) + 64;
	unsigned char *zeros = calloc(1, size), *packed = malloc(packed_len);
	z_stream z = {.next_in = zeros, .avail_in = (uInt)size, .next_out = packed, .avail_out = (uInt)packed_len};
	struct reader_source source;
	struct buf contents, why;

	buf_init(&contents);
	buf_init(&why);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	assert_true(z.total_out < 16384);
	assert_int_equal(open_bytes(&source, packed, z.total_out, &why), 0);
	assert_int_equal(reader_contents(&source, 1 << 20, &contents, &why), -EFBIG);
	assert_string_equal(why.data, "the contents have more than 1 MB");
	assert_true(contents.len < (1 << 20) + 70000);
	reader_close(&source);
	buf_clear(&contents);
	assert_int_equal(open_bytes(&source, packed, z.total_out, &why), 0);
	assert_int_equal(reader_contents(&source, size, &contents, &why), 0);
	assert_int_equal(contents.len, size);
	reader_close(&source);
	deflateEnd(&z);
	buf_release(&contents);
	buf_release(&why);
	free(zeros);
	free(packed);
}

static void names_of_files(void **state)
{
	struct buf name;

	buf_init(&name);
	assert_int_equal(writer_stem("a.b/x.pb.gz"), 5);
	assert_int_equal(writer_stem("a.b/x.gz"), 8);
	assert_string_equal(writer_by_path("x.tar.html")->name, "flamegraph");
	assert_string_equal(writer_by_path("x.gz")->name, "text");
	assert_string_equal(writer_by_name("pb.gz")->name, "pprof");
	writer_event_file("x.html", "alloc", &name);
	writer_event_file(" y", "alloc", &name);
	assert_string_equal(name.data, "x.alloc.html y.alloc");
	buf_release(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip_keeps_all_but_times),
		cmocka_unit_test(file_of_go),
		cmocka_unit_test(refuses_what_does_not_fit),
		cmocka_unit_test(long_names_are_read_once),
		cmocka_unit_test(names_of_addresses_are_short),
		cmocka_unit_test(heap_of_others),
		cmocka_unit_test(comments_are_bounded),
		cmocka_unit_test(inflating_is_bounded),
		cmocka_unit_test(names_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
