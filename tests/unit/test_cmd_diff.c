/* SPDX-License-Identifier: MIT */
/* Which events of two profiles are compared. */
#include "cmd/cmd_diff.c"

#include "fixtures/profiles.h"

#define EVENTS_MAX 4

struct choice {
	const char *a[EVENTS_MAX], *b[EVENTS_MAX]; /* names; "#name" is counted, others are in ns */
	const char *wanted; /* --event */
	bool total;
	int err;
	uint32_t event_a, event_b;
};

static void fill(struct profile *profile, const char *const *events)
{
	assert_int_equal(profile_init(profile), 0);
	for (size_t i = 0; i < EVENTS_MAX && events[i]; i++) {
		bool is_count = events[i][0] == '#';

		(void)profile_event(profile, events[i] + is_count, is_count ? PROFILE_COUNT : PROFILE_NS, 1);
	}
}

static void events_are_chosen(void **state)
{
	static const struct choice choices[] = {
		{{"cpu"}, {"cpu"}, NULL, false, 0, 0, 0},
		{{"cpu", "#faults"}, {"#faults", "cpu"}, NULL, true, 0, 0, 1},
		{{"wall", "#faults"}, {"#faults", "cpu"}, NULL, false, 0, 1, 0},
		{{"cpu", "#faults"}, {"#faults", "cpu"}, "faults", false, 0, 1, 0},
		{{"cpu"}, {"#faults"}, NULL, false, -EINVAL, 0, 0},
		{{"cpu"}, {NULL}, NULL, false, -EINVAL, 0, 0},
		{{"cpu", "#faults"}, {"cpu"}, "faults", false, -EINVAL, 0, 0},
		{{"cpu"}, {"#cpu"}, NULL, false, -EINVAL, 0, 0},
		/* A file that does not say what was sampled is compared with anything, by samples. */
		{{"#samples"}, {"cpu"}, NULL, false, 0, 0, 0},
		{{"cpu", "#faults"}, {"#samples"}, NULL, false, 0, 0, 0},
		{{"cpu", "#faults"}, {"#samples"}, "faults", true, 0, 1, 0},
		{{"#samples"}, {"cpu", "#faults"}, "faults", false, 0, 0, 1},
		{{"#samples"}, {"#samples"}, NULL, true, 0, 0, 0},
		{{"#samples"}, {"cpu"}, NULL, true, -EINVAL, 0, 0},
		{{"#samples"}, {"cpu"}, "faults", false, -EINVAL, 0, 0},
	};

	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		const struct choice *choice = &choices[i];
		struct profile a, b;
		struct writer_diff two = {.a = {.profile = &a, .name = "a"}, .b = {.profile = &b, .name = "b"}};

		fill(&a, choice->a);
		fill(&b, choice->b);
		assert_int_equal(choose_events(&two, choice->wanted, choice->total), choice->err);
		if (!choice->err) {
			assert_int_equal(two.a.event, choice->event_a);
			assert_int_equal(two.b.event, choice->event_b);
		}
		profile_release(&a);
		profile_release(&b);
	}
}

static void fill_with_traces(struct profile *profile, uint32_t of_one, uint32_t of_two)
{
	struct profile_sample sample = {.count = of_one, .trace_low = 1};

	assert_int_equal(profile_init(profile), 0);
	(void)profile_event(profile, "cpu", PROFILE_NS, 1);
	(void)profile_thread(profile, 1, 1, "main", "java", 0);
	sample.node = profile_child(profile, 0, frame_of(profile, FRAME_NATIVE, "f", ""));
	assert_int_equal(profile_add(profile, &sample), 0);
	sample.count = of_two;
	sample.trace_low = 2;
	assert_int_equal(profile_add(profile, &sample), 0);
}

static void traces_are_compared(void **state)
{
	struct profile a, b;
	struct writer_diff two = {.a = {.profile = &a, .name = "a"}, .b = {.profile = &b, .name = "b"}};
	const struct writer *writer = writer_by_name("collapsed");
	struct writer_options style;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	fill_with_traces(&a, 3, 4);
	fill_with_traces(&b, 5, 6);
	writer_options_default(&style);
	assert_int_equal(writer_groups_parse(&style, "trace"), 0);
	assert_int_equal(group_both(&a, &b, writer, &style), 0);
	assert_int_equal(writer->write_diff(&two, &style, out), 0);
	fclose(out);
	assert_string_equal(text, "00000000000000000000000000000001;f 3 5\n"
				  "00000000000000000000000000000002;f 4 6\n");
	free(text);
	profile_release(&a);
	profile_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_chosen),
		cmocka_unit_test(traces_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
