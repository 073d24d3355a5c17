/* SPDX-License-Identifier: MIT */
/* A recording in one line, and what is advised when it has few samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "duet_counters.h"
#include "event/event.h"
#include "fixtures/profiles.h"
#include "status/report.h"
#include "writers/text/headline.h"

static void assert_headline(const struct profile *profile, const char *want)
{
	struct headline headline;
	struct buf line;

	buf_init(&line);
	headline_of_profile(&headline, profile);
	headline_text(&headline, "-v lists all", &line);
	assert_string_equal(line.data, want);
	buf_release(&line);
}

static void the_line_names_program_time_and_overhead(void **state)
{
	struct profile profile;
	uint32_t owner, frame;

	assert_int_equal(profile_init(&profile), 0);
	assert_headline(&profile, "0 samples, none lost");
	owner = profile_owner(&profile, &(struct profile_owner){
						.pid = 1,
						.application = intern_str(&profile.strings, "java: shop.jar"),
					});
	frame = frame_of(&profile, FRAME_NATIVE, "f", "");
	add_stack(&profile, profile_thread(&profile, 1, 1, "main", "java", owner), 190, &frame, 1);
	profile.start_ns = 1000 * MS;
	profile.end_ns = 7012 * MS;
	profile_add_fact(&profile, "overhead", "%.2f %% of the host's CPU: BPF 0.30", 1.87);
	assert_headline(&profile, "190 samples of shop.jar in 6 s, none lost, 1.9 % overhead");
	add_stack(&profile, profile_thread(&profile, 2, 2, "main", "bash", 0), 1, &frame, 1);
	assert_headline(&profile, "191 samples of 2 processes in 6 s, none lost, 1.9 % overhead");
	profile_release(&profile);
}

static void merged_samples_count_as_many(void **state)
{
	struct profile profile;
	uint32_t frame;

	assert_int_equal(profile_init(&profile), 0);
	frame = frame_of(&profile, FRAME_NATIVE, "f", "");
	(void)profile_event(&profile, "cpu", PROFILE_NS, 0);
	assert_int_equal(profile_add(&profile,
				     &(struct profile_sample){
					     .thread = profile_thread(&profile, 1, 1, "t", "p", 0),
					     .node = profile_stack(&profile, &frame, 1),
					     .count = 12,
				     }),
			 0);
	assert_headline(&profile, "12 samples of p, none lost");
	profile_release(&profile);
}

static void losses_are_counted_by_what_they_mean(void **state)
{
	struct profile profile;

	assert_int_equal(profile_init(&profile), 0);
	profile_add_loss(&profile, 3, "agent records without a sample");
	assert_headline(&profile, "0 samples, none lost");
	profile_add_loss(&profile, 5, "Java frames without a name: it was not read in time");
	assert_headline(&profile, "0 samples, none lost, 5 with incomplete stacks (it was not read in time)");
	profile_add_loss(&profile, 40, "user stacks cut: stack memory could not be read");
	assert_headline(&profile, "0 samples, none lost, 45 with incomplete stacks "
				  "(mostly: stack memory could not be read; -v lists all)");
	profile_add_loss(&profile, 12, "samples dropped: the kernel ring was full");
	profile_add_loss(&profile, 2, "of a cause that no table has");
	assert_headline(&profile, "0 samples, 14 lost, 45 with incomplete stacks "
				  "(mostly: the kernel ring was full; -v lists all)");
	profile_release(&profile);
}

static void assert_time(uint64_t ns, const char *want)
{
	struct buf text;

	buf_init(&text);
	headline_add_time(ns, &text);
	assert_string_equal(text.data, want);
	buf_release(&text);
}

/* A recording may come from a stranger: its texts do not reach the terminal as they are. */
static void causes_are_cleaned(void **state)
{
	struct profile profile;

	assert_int_equal(profile_init(&profile), 0);
	profile_add_loss(&profile, 3, "samples lost: \x1b[31mred");
	assert_headline(&profile, "0 samples, 3 lost (?[31mred)");
	profile_release(&profile);
}

static void times_are_short(void **state)
{
	assert_time(200 * MS, "0.2 s");
	assert_time(5012 * MS, "5 s");
	assert_time(5512 * MS, "5.5 s");
	assert_time(59600 * MS, "60 s");
	assert_time(125000 * MS, "2 min 5 s");
	assert_time(7500000 * MS, "2 h 5 min");
}

static void assert_interval(const struct event *event, uint64_t interval, uint64_t count, bool is_limited,
			    const char *want)
{
	const struct event_spec spec = {.event = event, .interval = interval};
	struct buf text;

	buf_init(&text);
	event_interval_text(event, closing_interval(&spec, count, is_limited), &text);
	assert_string_equal(text.data, want);
	buf_release(&text);
}

static void the_advised_interval_is_permitted(void **state)
{
	assert_interval(event_by_name("cpu"), 10 * MS, 50, false, "500us");
	assert_interval(event_by_name("cpu"), 10 * MS, 99, false, "1ms");
	assert_interval(event_by_name("cpu"), 10 * MS, 1, false, "100us");
	assert_interval(event_by_name("cpu"), 10 * MS, 1, true, "1ms");
	assert_interval(event_by_name("cpu"), 10000, 5, false, "10us");
	assert_interval(event_by_name("alloc"), 512 << 10, 50, false, "20k");
	assert_interval(event_by_name("page-faults"), 100, 50, false, "5");
	assert_interval(event_by_name("page-faults"), 1, 50, false, "1");
}

/* A shorter interval finds more of what is sampled by chance, and none of what was longer than it. */
static void long_waits_do_not_become_more(void **state)
{
	const struct event_spec spec = {.event = event_by_name("lock"), .interval = 10000};

	assert_int_equal(closing_given(&spec, &(struct closing_count){.all = 53, .whole = 53}, 200), 53);
	assert_int_equal(closing_given(&spec, &(struct closing_count){.all = 53, .whole = 3}, 200), 2503);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_names_program_time_and_overhead),
		cmocka_unit_test(merged_samples_count_as_many),
		cmocka_unit_test(losses_are_counted_by_what_they_mean),
		cmocka_unit_test(causes_are_cleaned),
		cmocka_unit_test(times_are_short),
		cmocka_unit_test(the_advised_interval_is_permitted),
		cmocka_unit_test(long_waits_do_not_become_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
