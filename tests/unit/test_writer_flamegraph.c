/* SPDX-License-Identifier: MIT */
/* The data in the page against golden files. tests/system tests the page itself in a browser. */
#include "fixtures/profiles.h"

#define OPENING "<script type=\"application/json\" id=\"profiles\">"

/* The JSON of a page, a line a column. The caller frees it. */
static char *page_data(const struct profile *profile, const struct writer_options *options)
{
	char *page = written("flamegraph", profile, options);
	char *start = strstr(page, OPENING), *end, *data;

	assert_non_null(start);
	start += strlen(OPENING);
	end = strstr(start, "</script>");
	assert_non_null(end);
	*end = '\n';
	data = strndup(start, (size_t)(end + 1 - start));
	free(page);
	return data;
}

static void assert_page(const char *golden, const struct profile *profile, const struct writer_options *options)
{
	char *data = page_data(profile, options);

	assert_golden(golden, data);
	free(data);
}

static size_t count_text(const char *text, const char *what)
{
	size_t count = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		count++;
	}
	return count;
}

static void data_match_golden(void **state)
{
	struct writer_options options;
	struct profile profile;

	profile_of_everything(&profile);
	writer_options_default(&options);
	assert_page("plain.flamegraph.json", &profile, &options);
	options.threads = options.processes = options.total = options.inverted = options.reverse = true;
	options.style.annotate = options.style.libraries = true;
	options.title = HOSTILE;
	assert_page("reverse.flamegraph.json", &profile, &options);
	profile_release(&profile);
}

static void narrow_frames_are_left_out(void **state)
{
	struct writer_options options;
	struct profile profile;

	profile_of_everything(&profile);
	writer_options_default(&options);
	options.min_width = 20;
	assert_page("wide.flamegraph.json", &profile, &options);
	profile_release(&profile);
}

static void hostile_names_stay_in_their_element(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *page;

	profile_of_everything(&profile);
	writer_options_default(&options);
	options.title = HOSTILE;
	page = written("flamegraph", &profile, &options);
	assert_int_equal(count_text(page, "</script>"), 2); /* of the data, of the script */
	assert_int_equal(count_text(page, "\x1b"), 0);
	assert_int_equal(count_text(page, "\xff"), 0);
	assert_int_equal(count_text(page, "@style@") + count_text(page, "@profile@") + count_text(page, "@script@"), 0);
	free(page);
	profile_release(&profile);
}

static void the_page_needs_nothing_else(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *page;

	assert_int_equal(profile_init(&profile), 0);
	(void)profile_event(&profile, "cpu", PROFILE_NS, 0);
	writer_options_default(&options);
	page = written("flamegraph", &profile, &options);
	assert_int_equal(count_text(page, "http://") + count_text(page, "https://") + count_text(page, "src=\""), 0);
	assert_non_null(strstr(page, "default-src 'none'"));
	assert_page("empty.flamegraph.json", &profile, &options);
	free(page);
	profile_release(&profile);
}

static void ten_thousand_levels_are_written(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *data;

	profile_of_depth(&profile, 10000);
	writer_options_default(&options);
	options.max_depth = 0;
	data = page_data(&profile, &options);
	assert_int_equal(count_text(strstr(data, "\"depth\":"), "1,1,1,1,1,1,1,1,1,1,") >= 999, 1);
	free(data);
	profile_release(&profile);
}

/* Of the 20 single samples, 6 have none of these frames. */
static void excluded_samples_are_not_in_the_page(void **state)
{
	const char *exclude[] = {"*readBytes", "*equals", "com/acme/Main.run"};
	struct writer_options options;
	struct profile profile;
	char *data;

	profile_of_everything(&profile);
	writer_options_default(&options);
	options.exclude = (struct opt_strings){exclude, 3};
	data = page_data(&profile, &options);
	assert_non_null(strstr(data, "\"samples\":6,"));
	assert_non_null(strstr(data, "\"times\":[0,14000,15000,1000,1000,1000],"));
	free(data);
	profile_release(&profile);
}

/* All events are in one page, each with its own unit and samples. */
static void every_event_is_in_the_page(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *data;

	profile_of_everything(&profile);
	assert_int_equal(profile_event(&profile, "page-faults", PROFILE_COUNT, 1), 1);
	writer_options_default(&options);
	data = page_data(&profile, &options);
	assert_int_equal(count_text(data, "\"event\":"), 2);
	assert_non_null(strstr(data, "\"event\":\"page-faults\",\"unit\":\"page-faults\",\"samples\":0,"));
	free(data);
	profile_release(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_match_golden),
		cmocka_unit_test(narrow_frames_are_left_out),
		cmocka_unit_test(hostile_names_stay_in_their_element),
		cmocka_unit_test(the_page_needs_nothing_else),
		cmocka_unit_test(ten_thousand_levels_are_written),
		cmocka_unit_test(excluded_samples_are_not_in_the_page),
		cmocka_unit_test(every_event_is_in_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
