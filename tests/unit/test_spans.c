/* SPDX-License-Identifier: MIT */
/* Samples by the traces and spans that they worked for. */
#include "fixtures/read_back.h"

#include "profile/pprof.h"
#include "profile/timeline.h"
#include "readers/reader.h"
#include "writers/shared/grouping.h"
#include "writers/shared/spans.h"

static uint32_t cpu, span, stack, threads[2];

static void begin(struct profile *profile)
{
	uint32_t frame;

	assert_int_equal(profile_init(profile), 0);
	profile->end_ns = 1000;
	cpu = profile_event(profile, "cpu", PROFILE_NS, 10);
	span = profile_event(profile, "span", PROFILE_NS, 0);
	frame = frame_of(profile, FRAME_NATIVE, "work", "a.so");
	stack = profile_stack(profile, &frame, 1);
	for (uint32_t i = 0; i < 2; i++)
		threads[i] = profile_thread(profile, 1, 10 + i, "t", "p", 0);
}

static void add_span(struct profile *profile, uint32_t thread, uint64_t begin_ns, uint64_t end_ns, const char *tag)
{
	const struct frame frame = {.kind = FRAME_SPAN, .name = intern_str(&profile->strings, tag), .bci = -1};
	uint32_t index = profile_frame(profile, &frame);

	assert_int_equal(profile_add(profile, &(struct profile_sample){.event = span,
								       .count = 1,
								       .time_ns = end_ns,
								       .weight = end_ns - begin_ns,
								       .thread = thread,
								       .node = profile_stack(profile, &index, 1)}),
			 0);
}

static void add_sample(struct profile *profile, uint32_t thread, uint64_t time_ns, uint64_t trace, uint64_t span_id)
{
	assert_int_equal(profile_add(profile, &(struct profile_sample){.event = cpu,
								       .count = 1,
								       .weight = 10,
								       .time_ns = time_ns,
								       .thread = thread,
								       .node = stack,
								       .trace_high = trace,
								       .trace_low = trace ? ~trace : 0,
								       .span = span_id}),
			 0);
}

static const char *tag_at(const struct spans *spans, uint32_t thread, uint64_t time_ns)
{
	const struct profile_sample sample = {.event = cpu, .thread = thread, .time_ns = time_ns};
	const char *tag = spans_tag(spans, &sample);

	return tag ? tag : "-";
}

/* Nested, one after the other without a gap, crossing, and of another thread. Both ends belong to a span. */
static void the_innermost(void **state)
{
	static const struct {
		uint64_t time_ns;
		const char *tag;
	} expected[] = {{99, "-"},    {100, "outer"}, {149, "outer"}, {150, "inner"}, {200, "inner"}, {201, "outer"},
			{299, "outer"}, {300, "outer"}, {301, "next"}, {350, "next"}, {360, "cross"}, {400, "cross"},
			{450, "cross"}, {451, "-"},    {1000, "-"}};
	struct profile profile;
	struct spans spans;

	begin(&profile);
	add_span(&profile, threads[0], 150, 200, "inner");
	add_span(&profile, threads[0], 100, 300, "outer");
	add_span(&profile, threads[0], 301, 400, "next");
	add_span(&profile, threads[0], 360, 450, "cross");
	add_span(&profile, threads[1], 0, 120, "");
	assert_int_equal(spans_open(&spans, &profile), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		assert_string_equal(tag_at(&spans, threads[0], expected[i].time_ns), expected[i].tag);
	assert_string_equal(tag_at(&spans, threads[1], 110), "");
	assert_string_equal(tag_at(&spans, threads[1], 121), "-");
	spans_release(&spans);
	profile_release(&profile);
}

static char *grouped(const struct profile *profile, const struct writer_options *options)
{
	size_t len;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(grouping_write(writer_by_name("collapsed"), profile, options, out), 0);
	fclose(out);
	return text;
}

static void expect_grouped(const struct profile *profile, const char *by, const struct writer_options *from,
			   const char *expected)
{
	struct writer_options options = *from;
	char *text;

	if (by)
		assert_int_equal(writer_groups_parse(&options, by), 0);
	text = grouped(profile, &options);
	assert_string_equal(text, expected);
	free(text);
}

static void leading_frames_and_filters(void **state)
{
	const char *tag[] = {"req*"}, *id[] = {"00000000000000ff"}, *trace[] = {"00000000000000aaffffffffffffff55"};
	struct writer_options options;
	struct profile profile;

	begin(&profile);
	add_span(&profile, threads[0], 100, 200, "request");
	add_sample(&profile, threads[0], 150, 0, 0);
	add_sample(&profile, threads[0], 160, 0xaa, 0xbb);
	add_sample(&profile, threads[1], 160, 0xaa, 0xff);
	add_sample(&profile, threads[1], 170, 0, 0);
	writer_options_default(&options);
	expect_grouped(&profile, "span", &options,
		       "00000000000000ff;work 1\n[no span];work 1\nrequest;work 2\n");
	expect_grouped(&profile, "trace", &options,
		       "00000000000000aaffffffffffffff55;work 2\n[no trace];work 2\n");
	expect_grouped(&profile, "process,span,thread,trace", &options,
		       "p;00000000000000ff;t;00000000000000aaffffffffffffff55;work 1\n"
		       "p;[no span];t;[no trace];work 1\n"
		       "p;request;t;00000000000000aaffffffffffffff55;work 1\n"
		       "p;request;t;[no trace];work 1\n");
	options.max_depth = 1;
	expect_grouped(&profile, "trace", &options,
		       "00000000000000aaffffffffffffff55;work 2\n[no trace];work 2\n");
	options.spans = (struct opt_strings){.items = tag, .len = 1};
	expect_grouped(&profile, NULL, &options, "work 2\n");
	options.spans.items = id;
	expect_grouped(&profile, NULL, &options, "work 1\n");
	options.spans = (struct opt_strings){0};
	options.traces_of = (struct opt_strings){.items = trace, .len = 1};
	expect_grouped(&profile, "span", &options, "00000000000000ff;work 1\nrequest;work 1\n");
	profile_release(&profile);
}

static void add_attributes(struct profile *profile, uint32_t thread, uint64_t trace, const char *text)
{
	assert_int_equal(profile_add(profile, &(struct profile_sample){.event = cpu,
								       .count = 1,
								       .weight = 10,
								       .time_ns = 150,
								       .thread = thread,
								       .node = stack,
								       .trace_high = trace,
								       .attributes =
									       intern_str(&profile->strings, text)}),
			 0);
}

static void begin_with_attributes(struct profile *profile)
{
	begin(profile);
	profile->owners.items[profile->threads.items[threads[1]].owner].attributes =
		intern_str(&profile->strings, "service.name=shop\nuser=nobody\n");
	add_attributes(profile, threads[0], 0xaa, "http.route=/cart\nuser=ann\n");
	add_attributes(profile, threads[0], 0, "http.route=/pay\nuser=ann\n");
	add_attributes(profile, threads[1], 0, "user=bob\nhttp.route=/cart\n");
	add_attributes(profile, threads[1], 0, "a.token=t0psecret\n");
	add_attributes(profile, threads[1], 0, "");
}

/* Samples with and without a trace; what the sample does not have may be its process's. */
static void attributes_group_and_choose(void **state)
{
	const char *route[] = {"http.route=/c*"}, *two[] = {"user=a*", "http.route=/pay", "http.route=/none"};
	struct writer_options options;
	struct profile profile;

	begin_with_attributes(&profile);
	writer_options_default(&options);
	expect_grouped(&profile, "attr:http.route", &options, "/cart;work 2\n/pay;work 1\n[no http.route];work 2\n");
	expect_grouped(&profile, "attr:user,attr:http.route", &options,
		       "ann;/cart;work 1\nann;/pay;work 1\nbob;/cart;work 1\nnobody;[no http.route];work 2\n");
	expect_grouped(&profile, "trace,attr:http,process", &options,
		       "00000000000000aa0000000000000000;[no http];p;work 1\n[no trace];[no http];p;work 4\n");
	options.attributes = (struct opt_strings){.items = route, .len = 1};
	expect_grouped(&profile, NULL, &options, "work 2\n");
	options.attributes = (struct opt_strings){.items = two, .len = 3};
	expect_grouped(&profile, "attr:user", &options, "ann;work 1\n");
	profile_release(&profile);
}

static void attributes_are_read_back(void **state)
{
	static const char *const formats[] = {"duet", "pprof", "otlp", "otlp-json", "jfr"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct writer_options options;
		struct profile profile, read;

		begin_with_attributes(&profile);
		read_back(formats[i], &profile, &read);
		writer_options_default(&options);
		expect_grouped(&read, "attr:http.route", &options,
			       "/cart;work 2\n/pay;work 1\n[no http.route];work 2\n");
		expect_grouped(&read, "attr:a.token", &options, "[no a.token];work 4\n[redacted];work 1\n");
		profile_release(&read);
		profile_release(&profile);
	}
}

struct seen {
	uint64_t of_trace, of_none;
};

static int look(void *context, const struct profile_sample *sample)
{
	struct seen *seen = context;

	if (sample->trace_high == 0xaa && sample->trace_low == ~0xaaull && sample->span == 0xbb)
		seen->of_trace += sample->count;
	else if (!trace_is_known(sample))
		seen->of_none += sample->count;
	return 0;
}

/* Formats that hold the ids of a sample. */
static void ids_are_read_back(void **state)
{
	static const char *const formats[] = {"duet", "pprof", "otlp", "otlp-json", "jfr"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct profile profile, read;
		struct seen seen = {0};

		begin(&profile);
		for (int each = 0; each < 5; each++)
			add_sample(&profile, threads[each % 2], 100 + 10 * (uint64_t)each, 0xaa, 0xbb);
		add_sample(&profile, threads[0], 200, 0, 0);
		read_back(formats[i], &profile, &read);
		assert_int_equal(timeline_each(&read.samples, look, &seen), 0);
		assert_int_equal(seen.of_trace, 5);
		assert_int_equal(seen.of_none, 1);
		profile_release(&profile);
		profile_release(&read);
	}
}

/* The sample with two times has the tag as its label. */
static void expect_label(const struct buf *contents)
{
	Pprof__Profile *file = pprof__profile__unpack(NULL, contents->len, (const uint8_t *)contents->data);
	size_t found = 0;

	assert_non_null(file);
	for (size_t i = 0; i < file->n_samples; i++)
		for (size_t at = 0; at < file->samples[i]->n_labels; at++) {
			const Pprof__Label *label = file->samples[i]->labels[at];

			if (strcmp(file->strings[label->key], PPROF_LABEL_TAG) != 0)
				continue;
			assert_string_equal(file->strings[label->text], "request");
			assert_int_equal(file->samples[i]->values[0], 2);
			found++;
		}
	assert_int_equal(found, 1);
	pprof__profile__free_unpacked(file, NULL);
}

static void tags_are_labels(void **state)
{
	struct reader_source source;
	struct profile profile;
	struct buf contents, why;
	size_t len;
	char *file;

	begin(&profile);
	add_span(&profile, threads[0], 100, 200, "request");
	for (uint64_t time_ns = 150; time_ns <= 160; time_ns += 10)
		add_sample(&profile, threads[0], time_ns, 0, 0);
	file = written_file("pprof", &profile, &len);
	buf_init(&contents);
	buf_init(&why);
	assert_int_equal(open_bytes(&source, file, len, &why), 0);
	assert_int_equal(reader_contents(&source, 1 << 20, &contents, &why), 0);
	expect_label(&contents);
	reader_close(&source);
	buf_release(&contents);
	buf_release(&why);
	free(file);
	profile_release(&profile);
}

static void tags_are_attributes(void **state)
{
	struct profile profile;
	size_t len;
	char *file;

	begin(&profile);
	add_span(&profile, threads[0], 100, 200, "request");
	add_sample(&profile, threads[0], 150, 0, 0);
	file = written_file("otlp-json", &profile, &len);
	assert_non_null(memmem(file, len, "\"duet.span\"", 11));
	assert_non_null(memmem(file, len, "{\"stringValue\":\"request\"}", 25));
	free(file);
	profile_release(&profile);
}

static void ids_as_texts(void **state)
{
	struct profile_sample sample = {
		.trace_high = 0x4bf92f3577b34da6, .trace_low = 0xa3ce929d0e0e4736, .span = 0xb7};
	char trace[TRACE_ID_DIGITS + 1], id[SPAN_ID_DIGITS + 1];
	struct profile_sample read = {0};

	trace_id_text(&sample, trace);
	span_id_text(&sample, id);
	assert_string_equal(trace, "4bf92f3577b34da6a3ce929d0e0e4736");
	assert_string_equal(id, "00000000000000b7");
	assert_true(trace_id_parse(&read, "4BF92F3577B34DA6A3CE929D0E0E4736", 32));
	assert_true(span_id_parse(&read, id, 16));
	assert_true(trace_is_same(&sample, &read));
	assert_false(trace_id_parse(&read, trace, 31));
	assert_false(span_id_parse(&read, "00000000000000g7", 16));
	assert_true(trace_is_same(&sample, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_innermost),
		cmocka_unit_test(leading_frames_and_filters),
		cmocka_unit_test(ids_are_read_back),
		cmocka_unit_test(attributes_group_and_choose),
		cmocka_unit_test(attributes_are_read_back),
		cmocka_unit_test(tags_are_labels),
		cmocka_unit_test(tags_are_attributes),
		cmocka_unit_test(ids_as_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
