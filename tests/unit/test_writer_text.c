/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

static void assert_report(const char *golden, const struct profile *profile, const struct writer_options *options)
{
	char *text = written("text", profile, options);

	assert_golden(golden, text);
	free(text);
}

static void the_report_matches_golden(void **state)
{
	struct writer_options options;
	struct profile profile;

	(void)state;
	profile_of_everything(&profile);
	writer_options_default(&options);
	assert_report("plain.txt", &profile, &options);
	options.title = HOSTILE;
	options.style.annotate = true;
	options.threads = options.total = true;
	options.traces = 2;
	options.flat = 3;
	assert_report("total.txt", &profile, &options);
	profile_release(&profile);
}

static void an_empty_profile_says_so(void **state)
{
	struct writer_options options;
	struct profile profile;

	(void)state;
	assert_int_equal(profile_init(&profile), 0);
	writer_options_default(&options);
	assert_report("empty.txt", &profile, &options);
	profile_release(&profile);
}

static void one_sample_is_all(void **state)
{
	struct writer_options options;
	struct profile profile;

	(void)state;
	profile_of_depth(&profile, 3);
	writer_options_default(&options);
	assert_report("one.txt", &profile, &options);
	profile_release(&profile);
}

static void ten_thousand_frames_are_printed(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *text;

	(void)state;
	profile_of_depth(&profile, 10000);
	writer_options_default(&options);
	options.max_depth = 0;
	text = written("text", &profile, &options);
	assert_non_null(strstr(text, "\n  [9999] f0\n"));
	free(text);
	profile_release(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_report_matches_golden),
		cmocka_unit_test(an_empty_profile_says_so),
		cmocka_unit_test(one_sample_is_all),
		cmocka_unit_test(ten_thousand_frames_are_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
