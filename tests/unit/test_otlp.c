/* SPDX-License-Identifier: MIT */
/* OTLP files have the stacks, weights, times and threads of the profile. */
#include "fixtures/read_back.h"

#include <errno.h>

#include "base/text.h"
#include "otlp.pb-c.h"

static Otlp__ProfilesData *unpacked(const struct profile *profile, const struct writer_options *options)
{
	const struct writer *writer = writer_by_name("otlp");
	Otlp__ProfilesData *data;
	size_t len = 0;
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, &len);

	assert_non_null(out);
	assert_int_equal(writer->write(profile, options, out), 0);
	fclose(out);
	data = otlp__profiles_data__unpack(NULL, len, (const uint8_t *)bytes);
	assert_non_null(data);
	free(bytes);
	return data;
}

static const char *text_of(const Otlp__Dictionary *dictionary, int32_t index)
{
	assert_in_range(index, 0, dictionary->n_string_table - 1);
	return dictionary->string_table[index];
}

/* Appends "root;leaf". */
static void stack_text(const Otlp__Dictionary *dictionary, int32_t index, struct buf *out)
{
	const Otlp__Stack *stack;

	assert_in_range(index, 0, dictionary->n_stack_table - 1);
	stack = dictionary->stack_table[index];
	for (size_t i = stack->n_location_indices; i-- > 0;) {
		const Otlp__Location *location;
		int32_t function;

		assert_in_range(stack->location_indices[i], 1, dictionary->n_location_table - 1);
		location = dictionary->location_table[stack->location_indices[i]];
		assert_int_equal(location->n_lines, 1);
		assert_in_range(location->mapping_index, 0, dictionary->n_mapping_table - 1);
		function = location->lines[0]->function_index;
		assert_in_range(function, 1, dictionary->n_function_table - 1);
		buf_printf(out, "%s%s", text_of(dictionary, dictionary->function_table[function]->name_strindex),
			   i ? ";" : "");
	}
}

/* The weight of one stack, in all profiles of an event. */
static uint64_t weight_of(const Otlp__ProfilesData *data, const char *event, const char *stack)
{
	uint64_t sum = 0;

	for (size_t r = 0; r < data->n_resource_profiles; r++) {
		const Otlp__ScopeProfiles *scope = data->resource_profiles[r]->scope_profiles[0];

		for (size_t p = 0; p < scope->n_profiles; p++) {
			const Otlp__Profile *profile = scope->profiles[p];

			if (strcmp(text_of(data->dictionary, profile->sample_type->type_strindex), event))
				continue;
			for (size_t s = 0; s < profile->n_samples; s++) {
				struct buf text;

				buf_init(&text);
				stack_text(data->dictionary, profile->samples[s]->stack_index, &text);
				for (size_t v = 0; !strcmp(text.data, stack) && v < profile->samples[s]->n_values; v++)
					sum += (uint64_t)profile->samples[s]->values[v];
				buf_release(&text);
			}
		}
	}
	return sum;
}

static void stacks_and_weights_are_those_of_collapsed(void **state)
{
	struct writer_options options;
	Otlp__ProfilesData *data;
	struct profile profile;
	char *collapsed, *line, *rest;
	int lines = 0;

	profile_of_everything(&profile);
	writer_options_default(&options);
	options.total = options.style.dotted = options.style.annotate = true;
	collapsed = written("collapsed", &profile, &options);
	data = unpacked(&profile, &options);
	for (line = strtok_r(collapsed, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), lines++) {
		char *number = strrchr(line, ' ');

		*number++ = '\0';
		assert_int_equal(weight_of(data, "cpu", line), strtoull(number, NULL, 10));
	}
	assert_true(lines > 3);
	otlp__profiles_data__free_unpacked(data, NULL);
	profile_release(&profile);
	free(collapsed);
}

/* Without -a, the kind of code is in an attribute only. */
static void names_have_no_suffix(void **state)
{
	struct writer_options options;
	Otlp__ProfilesData *data;
	struct profile profile;
	size_t found = 0;

	profile_of_everything(&profile);
	writer_options_default(&options);
	data = unpacked(&profile, &options);
	for (size_t i = 0; i < data->dictionary->n_function_table; i++)
		found += !strcmp(text_of(data->dictionary, data->dictionary->function_table[i]->name_strindex),
				 "vfs_read");
	assert_int_equal(found, 1);
	otlp__profiles_data__free_unpacked(data, NULL);
	profile_release(&profile);
}

static void tables_begin_with_an_empty_element(void **state)
{
	const Otlp__Dictionary *dictionary;
	struct writer_options options;
	Otlp__ProfilesData *data;
	struct profile profile;

	profile_of_everything(&profile);
	writer_options_default(&options);
	data = unpacked(&profile, &options);
	dictionary = data->dictionary;
	assert_string_equal(dictionary->string_table[0], "");
	assert_int_equal(dictionary->n_link_table, 1);
	assert_int_equal(dictionary->mapping_table[0]->filename_strindex, 0);
	assert_int_equal(dictionary->location_table[0]->n_lines, 0);
	assert_int_equal(dictionary->function_table[0]->name_strindex, 0);
	assert_int_equal(dictionary->attribute_table[0]->key_strindex, 0);
	assert_int_equal(dictionary->stack_table[0]->n_location_indices, 0);
	otlp__profiles_data__free_unpacked(data, NULL);
	profile_release(&profile);
}

static bool has_attribute(const Otlp__ProfilesData *data, const Otlp__Sample *sample, const char *key)
{
	for (size_t i = 0; i < sample->n_attribute_indices; i++) {
		int32_t index = sample->attribute_indices[i];

		assert_in_range(index, 1, data->dictionary->n_attribute_table - 1);
		if (!strcmp(text_of(data->dictionary, data->dictionary->attribute_table[index]->key_strindex), key))
			return true;
	}
	return false;
}

/* Each value has the time of its sample, within the recording. */
static void samples_have_times_and_threads(void **state)
{
	struct writer_options options;
	Otlp__ProfilesData *data;
	struct profile profile;
	size_t named = 0;

	profile_of_everything(&profile);
	profile.start_realtime_ns = 1700000000 * (1000 * MS);
	writer_options_default(&options);
	data = unpacked(&profile, &options);
	for (size_t r = 0; r < data->n_resource_profiles; r++) {
		const Otlp__Profile *of = data->resource_profiles[r]->scope_profiles[0]->profiles[0];

		assert_int_equal(of->time_unix_nano, profile.start_realtime_ns);
		assert_int_equal(of->profile_id.len, 16);
		assert_string_equal(data->resource_profiles[r]->scope_profiles[0]->scope->name, "duet");
		for (size_t s = 0; s < of->n_samples; s++) {
			assert_int_equal(of->samples[s]->n_values, of->samples[s]->n_timestamps_unix_nano);
			assert_true(of->samples[s]->timestamps_unix_nano[0] >= profile.start_realtime_ns);
			named += has_attribute(data, of->samples[s], "thread.name");
		}
	}
	assert_true(named > 0);
	otlp__profiles_data__free_unpacked(data, NULL);
	profile_release(&profile);
}

/* ---- what OpenTelemetry's conformance check of profiles asks for ---- */

static void mark_used(bool *used, size_t count, int32_t index)
{
	assert_in_range(index, 0, count - 1);
	used[index] = true;
}

/* Each table begins with an empty element, is referred to within its bounds, and has no element without a reference. */
struct used {
	bool strings[512], mappings[64], functions[128], locations[128], stacks[128], links[64], attributes[128];
};

#define MARK(used, dictionary, table, index) mark_used((used)->table##s, (dictionary)->n_##table##_table, index)
#define ALL_USED(used, dictionary, table)                                                                              \
	for (size_t i = 1; i < (dictionary)->n_##table##_table; i++)                                                   \
	assert_true((used)->table##s[i])

static void check_attributes(struct used *used, const Otlp__Dictionary *d, const int32_t *indices, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		MARK(used, d, attribute, indices[i]);
		for (size_t other = 0; other < i; other++)
			assert_int_not_equal(d->attribute_table[indices[i]]->key_strindex,
					     d->attribute_table[indices[other]]->key_strindex);
	}
}

static void check_sample(struct used *used, const Otlp__Dictionary *d, const Otlp__Profile *profile,
			 const Otlp__Sample *sample)
{
	MARK(used, d, stack, sample->stack_index);
	MARK(used, d, link, sample->link_index);
	check_attributes(used, d, sample->attribute_indices, sample->n_attribute_indices);
	/* all samples of a profile have times, or none; without, there is one value */
	assert_int_equal(!sample->n_timestamps_unix_nano, !profile->samples[0]->n_timestamps_unix_nano);
	assert_int_equal(sample->n_values, sample->n_timestamps_unix_nano ? sample->n_timestamps_unix_nano : 1);
	for (size_t i = 0; i < sample->n_timestamps_unix_nano; i++) {
		assert_true(sample->timestamps_unix_nano[i] >= profile->time_unix_nano);
		assert_true(sample->timestamps_unix_nano[i] < profile->time_unix_nano + profile->duration_nano);
	}
}

static void check_profile(struct used *used, const Otlp__Dictionary *d, const Otlp__Profile *profile)
{
	MARK(used, d, string, profile->sample_type->type_strindex);
	MARK(used, d, string, profile->sample_type->unit_strindex);
	MARK(used, d, string, profile->period_type->type_strindex);
	MARK(used, d, string, profile->period_type->unit_strindex);
	for (size_t i = 0; i < profile->n_samples; i++)
		check_sample(used, d, profile, profile->samples[i]);
}

static void check_tables(struct used *used, const Otlp__Dictionary *d)
{
	for (size_t i = 0; i < d->n_stack_table; i++)
		for (size_t l = 0; l < d->stack_table[i]->n_location_indices; l++)
			MARK(used, d, location, d->stack_table[i]->location_indices[l]);
	for (size_t i = 0; i < d->n_location_table; i++) {
		const Otlp__Location *location = d->location_table[i];

		MARK(used, d, mapping, location->mapping_index);
		check_attributes(used, d, location->attribute_indices, location->n_attribute_indices);
		for (size_t l = 0; l < location->n_lines; l++) {
			MARK(used, d, function, location->lines[l]->function_index);
			assert_true(location->lines[l]->line >= 0);
		}
	}
	for (size_t i = 0; i < d->n_mapping_table; i++) {
		MARK(used, d, string, d->mapping_table[i]->filename_strindex);
		check_attributes(used, d, d->mapping_table[i]->attribute_indices,
				 d->mapping_table[i]->n_attribute_indices);
		for (size_t other = 0; other < i; other++)
			assert_int_not_equal(d->mapping_table[i]->filename_strindex,
					     d->mapping_table[other]->filename_strindex);
	}
	for (size_t i = 0; i < d->n_function_table; i++) {
		MARK(used, d, string, d->function_table[i]->name_strindex);
		MARK(used, d, string, d->function_table[i]->system_name_strindex);
		MARK(used, d, string, d->function_table[i]->filename_strindex);
	}
	for (size_t i = 0; i < d->n_attribute_table; i++)
		MARK(used, d, string, d->attribute_table[i]->key_strindex);
	for (size_t i = 1; i < d->n_link_table; i++) {
		assert_int_equal(d->link_table[i]->trace_id.len, 16);
		assert_int_equal(d->link_table[i]->span_id.len, 8);
	}
	for (size_t i = 0; i < d->n_string_table; i++)
		for (size_t other = 0; other < i; other++)
			assert_string_not_equal(d->string_table[i], d->string_table[other]);
}

static void check_conformance(const struct profile *profile)
{
	struct writer_options options;
	struct used used = {0};
	Otlp__ProfilesData *data;
	const Otlp__Dictionary *d;

	writer_options_default(&options);
	data = unpacked(profile, &options);
	d = data->dictionary;
	assert_true(data->n_resource_profiles > 0);
	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const Otlp__ResourceProfiles *resource = data->resource_profiles[i];

		assert_int_equal(resource->n_scope_profiles, 1);
		assert_true(resource->scope_profiles[0]->n_profiles > 0);
		for (size_t p = 0; p < resource->scope_profiles[0]->n_profiles; p++)
			check_profile(&used, d, resource->scope_profiles[0]->profiles[p]);
	}
	check_tables(&used, d);
	ALL_USED(&used, d, string);
	ALL_USED(&used, d, mapping);
	ALL_USED(&used, d, function);
	ALL_USED(&used, d, location);
	ALL_USED(&used, d, stack);
	ALL_USED(&used, d, link);
	ALL_USED(&used, d, attribute);
	otlp__profiles_data__free_unpacked(data, NULL);
}

static void conforms(void **state)
{
	struct profile p, merged;
	struct profile_sample sample = {.count = 1, .weight = 5, .trace_high = 1, .trace_low = 2, .span = 3};
	uint32_t frames[3];

	profile_of_everything(&p);
	p.start_realtime_ns = 1700000000 * (1000 * MS);
	p.start_ns = 1000 * MS;
	p.end_ns = 2000 * MS;
	check_conformance(&p); /* there are samples before the start */
	sample.thread = profile_thread(&p, 1, 1, "t", "p", 0);
	frames[0] = frame_of(&p, FRAME_CPU, "[CPU-3]", "");
	frames[1] = java_frame(&p, FRAME_COMPILED, "a.B", "c", "()V", -7);
	frames[2] = frame_of(&p, FRAME_NATIVE, "f", "lib\1.so");
	sample.node = profile_stack(&p, frames, 3);
	sample.time_ns = p.end_ns; /* and at the end */
	assert_int_equal(profile_add(&p, &sample), 0);
	frames[2] = frame_of(&p, FRAME_NATIVE, "f", "lib\2.so"); /* the same file, once its name is clean */
	sample.node = profile_stack(&p, frames, 3);
	sample.time_ns = p.end_ns + 7;
	assert_int_equal(profile_add(&p, &sample), 0);
	check_conformance(&p);
	read_back("collapsed", &p, &merged); /* without times */
	check_conformance(&merged);
	profile_release(&merged);
	profile_release(&p);
}

static void cpus_are_attributes(void **state)
{
	struct writer_options options;
	Otlp__ProfilesData *data;
	struct profile profile;
	const Otlp__Sample *sample;
	const Otlp__KeyValueAndUnit *attribute;

	assert_int_equal(profile_init(&profile), 0);
	(void)profile_event(&profile, "cpu", PROFILE_NS, 10 * MS);
	ADD_STACK(&profile, profile_thread(&profile, 1, 0, "", "p", 0), 1, frame_of(&profile, FRAME_CPU, "[CPU-3]", ""),
		  frame_of(&profile, FRAME_CPU, "[SCHED_BATCH]", ""), frame_of(&profile, FRAME_NATIVE, "f", "l"));
	writer_options_default(&options);
	data = unpacked(&profile, &options);
	sample = data->resource_profiles[0]->scope_profiles[0]->profiles[0]->samples[0];
	assert_true(has_attribute(data, sample, "cpu.logical_number"));
	attribute = data->dictionary->attribute_table[sample->attribute_indices[0]];
	assert_string_equal(text_of(data->dictionary, attribute->key_strindex), "cpu.logical_number");
	assert_int_equal(attribute->value->int_value, 3);
	otlp__profiles_data__free_unpacked(data, NULL);
	profile_release(&profile);
}

static void an_empty_profile_is_a_file(void **state)
{
	struct writer_options options;
	Otlp__ProfilesData *data;
	struct profile profile;

	assert_int_equal(profile_init(&profile), 0);
	writer_options_default(&options);
	data = unpacked(&profile, &options);
	assert_int_equal(data->n_resource_profiles, 0);
	assert_non_null(data->dictionary);
	otlp__profiles_data__free_unpacked(data, NULL);
	profile_release(&profile);
}

/* ---- read back ---- */

static int sum_times(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context += sample->time_ns;
	return 0;
}

/* Each stack has one value, and there is a profile before the first sample. */
static void values_for_callers_of_async_profiler(void **state)
{
	struct writer_options options;
	Otlp__ProfilesData *data;
	struct profile profile;
	Otlp__Profile *first;

	writer_options_default(&options);
	options.source = "itimer";
	assert_int_equal(profile_init(&profile), 0);
	(void)profile_event(&profile, "cpu", PROFILE_NS, 10 * MS);
	data = unpacked(&profile, &options);
	first = data->resource_profiles[0]->scope_profiles[0]->profiles[0];
	assert_int_equal(first->n_samples, 0);
	assert_int_equal(first->period, 10 * MS);
	assert_string_equal(text_of(data->dictionary, first->sample_type->type_strindex), "itimer");
	assert_string_equal(text_of(data->dictionary, first->sample_type->unit_strindex), "count");
	assert_string_equal(text_of(data->dictionary, first->period_type->unit_strindex), "ns");
	otlp__profiles_data__free_unpacked(data, NULL);
	ADD_STACK(&profile, profile_thread(&profile, 1, 1, "t", "p", 0), 3,
		  java_frame(&profile, FRAME_COMPILED, "a.B", "c", "()V", 1));
	data = unpacked(&profile, &options);
	first = data->resource_profiles[0]->scope_profiles[0]->profiles[0];
	assert_int_equal(first->n_samples, 1);
	assert_int_equal(first->samples[0]->n_values, 1);
	assert_int_equal(first->samples[0]->values[0], 3);
	assert_true(weight_of(data, "itimer", "a/B.c") == 3);
	otlp__profiles_data__free_unpacked(data, NULL);
	profile_release(&profile);
}

static void profile_with_times(struct profile *p)
{
	profile_of_everything(p);
	p->start_realtime_ns = 1700000000 * (1000 * MS);
	p->end_ns = p->start_ns + 5000 * MS;
}

static void reads_what_it_wrote(const char *writer)
{
	struct profile first, second;
	uint64_t times = 0, again = 0;

	profile_with_times(&first);
	read_back(writer, &first, &second);
	assert_int_equal(second.events.len, first.events.len);
	assert_int_equal(second.events.items[0].unit, first.events.items[0].unit);
	assert_int_equal(second.events.items[0].interval, first.events.items[0].interval);
	assert_same_in_all_styles(&first, &second);
	assert_int_equal(second.start_ns, first.start_realtime_ns);
	assert_int_equal(second.end_ns - second.start_ns, 5000 * MS);
	assert_int_equal(timeline_each(&first.samples, sum_times, &times), 0);
	assert_int_equal(timeline_each(&second.samples, sum_times, &again), 0);
	assert_true(again - times == first.samples.len * (first.start_realtime_ns - first.start_ns));
	profile_release(&first);
	profile_release(&second);
}

static void round_trips(void **state)
{
	reads_what_it_wrote("otlp");
	reads_what_it_wrote("otlp-json");
}

/* Cut anywhere or damaged, it is refused with a sentence, or read without what is gone. */
static void cut_and_damaged(void **state)
{
	static const char *const forms[] = {"otlp", "otlp-json"};
	struct profile first, second;
	struct buf why;
	size_t len;
	char *file;

	buf_init(&why);
	profile_with_times(&first);
	for (size_t form = 0; form < 2; form++) {
		file = written_file(forms[form], &first, &len);
		for (size_t cut = 64; cut < len - 1; cut += 61) {
			buf_clear(&why);
			assert_true(read_bytes(&second, file, cut, &why) < 0 && why.len);
			profile_release(&second);
		}
		for (size_t at = 40; at < len; at += 7) {
			buf_clear(&why);
			file[at] ^= 0x15;
			assert_true(!read_bytes(&second, file, len, &why) || why.len);
			file[at] ^= 0x15;
			profile_release(&second);
		}
		free(file);
	}
	profile_release(&first);
	buf_release(&why);
}

static void read_json(const char *json, int want, const char *sentence, struct profile *ret)
{
	struct buf why;

	buf_init(&why);
	assert_int_equal(read_bytes(ret, json, strlen(json), &why), want);
	assert_string_equal(why.data, sentence);
	buf_release(&why);
}

/* As others write it: frames by their type, lines that were inlined, values without times. */
static void of_others(void **state)
{
	static const char *const json =
		"{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"process.pid\",\"value\":{"
		"\"intValue\":\"7\"}},{\"key\":\"x\",\"value\":{\"boolValue\":true}}]},\"scopeProfiles\":[{"
		"\"profiles\":["
		"{\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"period\":\"10\",\"samples\":["
		"{\"stackIndex\":1,\"values\":[\"30\"]},{\"stackIndex\":1,\"timestampsUnixNano\":[\"5\",\"6\"]}]}]}]}],"
		"\"dictionary\":{\"mappingTable\":[{}],\"functionTable\":[{},{\"nameStrindex\":3},{\"nameStrindex\":4},"
		"{\"nameStrindex\":5}],\"stringTable\":[\"\",\"cpu\",\"ns\",\"a.B.c\",\"do_it\",\"main\","
		"\"profile.frame.type\"],\"attributeTable\":[{},{\"keyStrindex\":6,\"value\":{\"stringValue\":\"jvm\"}}"
		","
		"{\"keyStrindex\":6,\"value\":{\"stringValue\":\"kernel\"}}],\"locationTable\":[{},"
		"{\"attributeIndices\":[2],\"lines\":[{\"functionIndex\":2}]},{\"attributeIndices\":[1],\"lines\":["
		"{\"functionIndex\":1,\"line\":\"8\"}]},{\"lines\":[{\"functionIndex\":3}]}],"
		"\"stackTable\":[{},{\"locationIndices\":[1,2,3]}]}}";
	struct writer_options options;
	struct profile profile;
	char *text;

	read_json(json, 0, "", &profile);
	writer_options_default(&options);
	text = written("collapsed", &profile, &options);
	assert_string_equal(text, "main;a/B.c;do_it_[k] 5\n");
	free(text);
	assert_int_equal(profile.threads.items[0].pid, 7);
	profile_release(&profile);
	read_json("{\"resourceProfiles\":[]}", -EINVAL,
		  "the file has no dictionary: it is no OTLP profile of this version", &profile);
	profile_release(&profile);
	read_json("{\"resourceProfiles\":7}", -EINVAL, "byte 20 is not JSON, or a value has another type than OTLP's",
		  &profile);
	profile_release(&profile);
}

/* Keys and texts of attributes may be references to strings; those that are not there are none, or are refused. */
static void references_to_strings(void **state)
{
	static const char *const format =
		"{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"keyStrindex\":2,\"value\":{"
		"\"stringValueStrindex\":3}},{\"keyStrindex\":99,\"value\":{\"stringValueStrindex\":-1}},"
		"{\"keyStrindex\":2,\"value\":{\"stringValueStrindex\":99}}]},\"scopeProfiles\":[{\"profiles\":[{"
		"\"sampleType\":{\"typeStrindex\":1},\"samples\":[{\"attributeIndices\":[1],\"values\":[\"3\"]}]}]}]}],"
		"\"dictionary\":{\"stringTable\":[\"\",\"cpu\",\"process.executable.name\",\"shop\",\"thread.name\","
		"\"worker\"],\"attributeTable\":[{},{\"keyStrindex\":4,\"value\":{\"stringValueStrindex\":%d}}]}}";
	struct profile profile;
	char json[1024];

	snprintf(json, sizeof(json), format, 5);
	read_json(json, 0, "", &profile);
	assert_int_equal(profile.threads.len, 1);
	assert_string_equal(profile_text(&profile, profile.threads.items[0].name), "worker");
	assert_string_equal(profile_text(&profile, profile.threads.items[0].process), "shop");
	profile_release(&profile);
	snprintf(json, sizeof(json), format, 6);
	read_json(json, -EINVAL, "an attribute refers to a string that the file does not have", &profile);
	profile_release(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(cut_and_damaged),
		cmocka_unit_test(of_others),
		cmocka_unit_test(stacks_and_weights_are_those_of_collapsed),
		cmocka_unit_test(names_have_no_suffix),
		cmocka_unit_test(tables_begin_with_an_empty_element),
		cmocka_unit_test(samples_have_times_and_threads),
		cmocka_unit_test(conforms),
		cmocka_unit_test(cpus_are_attributes),
		cmocka_unit_test(references_to_strings),
		cmocka_unit_test(an_empty_profile_is_a_file),
		cmocka_unit_test(values_for_callers_of_async_profiler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
