/* SPDX-License-Identifier: MIT */
/* What async-profiler's begin=, end= and filter= leave of a recording. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "recorder/report_shape.h"

#define BEGIN "uprobe:*:_ZN1A5beginE*"
#define END "uprobe:*:leave"

static struct profile profile;
static const struct asprof_arguments begun = {.begin = "A::begin", .end = "leave"};

static int set_up(void **state)
{
	return profile_init(&profile);
}

static int tear_down(void **state)
{
	profile_release(&profile);
	return 0;
}

static uint32_t event(const char *name)
{
	return profile_event(&profile, name, PROFILE_NS, 1);
}

static void add(uint32_t of, uint32_t tid, uint64_t time_ns)
{
	const struct profile_sample sample = {
		.time_ns = time_ns,
		.weight = 1,
		.thread = profile_thread(&profile, 1, tid, "", "", 0),
		.count = 1,
		.event = of,
	};

	assert_int_equal(profile_add(&profile, &sample), 0);
}

struct sum {
	const char *event;
	uint64_t samples, times, weight;
};

static int add_up(void *context, const struct profile_sample *sample)
{
	struct sum *sum = context;
	const char *name = intern_text(&profile.strings, profile.events.items[sample->event].name);

	if (!strcmp(name, sum->event)) {
		sum->samples++;
		sum->times += sample->time_ns;
		sum->weight += sample->weight;
	}
	return 0;
}

static struct sum sum_of(const char *name)
{
	struct sum sum = {.event = name};

	assert_int_equal(timeline_each(&profile.samples, add_up, &sum), 0);
	return sum;
}

/* Two windows, 10 to 20 and 30 to 40, told out of order; a begin in a window and an end outside count for nothing. */
static void record_windows(void)
{
	uint32_t cpu = event("cpu"), begin = event(BEGIN), end = event(END);

	add(end, 1, 5);
	add(end, 1, 40);
	add(begin, 1, 10);
	add(begin, 1, 12);
	add(end, 1, 20);
	add(begin, 1, 30);
	for (uint64_t time_ns = 1; time_ns < 50; time_ns++)
		add(cpu, 2, time_ns);
}

static void samples_between_the_marks_stay(void **state)
{
	record_windows();
	assert_int_equal(begin_end_apply(&profile, &begun, true), 0);
	assert_int_equal(profile.events.len, 2);
	assert_int_equal(sum_of("cpu").samples, 22);
	assert_int_equal(sum_of("cpu").times, 11 * 15 + 11 * 35);
	assert_int_equal(sum_of("window").samples, 2);
	assert_int_equal(sum_of("window").weight, 20);
}

static void formats_of_one_event_get_no_windows(void **state)
{
	record_windows();
	assert_int_equal(begin_end_apply(&profile, &begun, false), 0);
	assert_int_equal(profile.events.len, 1);
	assert_int_equal(profile.samples.len, 22);
}

static void nostop_keeps_all(void **state)
{
	struct asprof_arguments all = begun;

	all.nostop = true;
	record_windows();
	assert_int_equal(begin_end_apply(&profile, &all, true), 0);
	assert_int_equal(sum_of("cpu").samples, 49);
	assert_int_equal(sum_of("window").samples, 2);
}

/* A window that has not ended is no event yet, but its samples count. */
static void the_last_window_may_be_open(void **state)
{
	struct asprof_arguments once = {.begin = "A::begin"};
	uint32_t cpu = event("cpu");

	add(event(BEGIN), 1, 10);
	add(cpu, 1, 9);
	add(cpu, 1, 11);
	assert_int_equal(begin_end_apply(&profile, &once, true), 0);
	assert_int_equal(sum_of("cpu").times, 11);
	assert_int_equal(sum_of("window").samples, 0);
}

static void recordings_without_marks_stay(void **state)
{
	add(event("cpu"), 1, 10);
	assert_int_equal(begin_end_apply(&profile, &(struct asprof_arguments){0}, true), 0);
	assert_int_equal(profile.samples.len, 1);
}

static void wall_is_filtered_by_thread(void **state)
{
	const struct thread_choices choices = {0};
	uint32_t wall = event("wall"), cpu = event("cpu");

	for (uint32_t tid = 1; tid <= 10; tid++) {
		add(wall, tid, tid);
		add(cpu, tid, tid);
	}
	assert_int_equal(thread_filter_apply(&profile, "2-4;7", &choices), 0);
	assert_int_equal(sum_of("wall").times, 2 + 3 + 4 + 7);
	assert_int_equal(sum_of("cpu").samples, 10);
	assert_int_equal(thread_filter_apply(&profile, "", &choices), 0);
	assert_int_equal(sum_of("wall").samples, 0);
}

/* The times of the samples are 3 and 30; the choices have other times than those of the calls. */
static void threads_are_chosen_for_a_time(void **state)
{
	struct thread_choices choices = {0};
	uint32_t wall = event("wall");

	assert_int_equal(thread_filter_choose(&choices, "+1"), 0);
	assert_int_equal(thread_filter_choose(&choices, "+2"), 0);
	assert_int_equal(thread_filter_choose(&choices, "-1"), 0);
	assert_int_equal(thread_filter_choose(&choices, "1"), -EINVAL);
	assert_int_equal(thread_filter_choose(&choices, "+"), -EINVAL);
	assert_int_equal(thread_filter_choose(&choices, "+1x"), -EINVAL);
	assert_int_equal(thread_filter_choose(&choices, "+99999999999"), -EINVAL);
	assert_int_equal(choices.all.len, 3);
	choices.all.items[0].realtime_ns = choices.all.items[1].realtime_ns = 2;
	choices.all.items[2].realtime_ns = 20;
	for (uint32_t tid = 1; tid <= 3; tid++) {
		add(wall, tid, 3);
		add(wall, tid, 30);
	}
	assert_int_equal(thread_filter_apply(&profile, "", &choices), 0);
	assert_int_equal(sum_of("wall").times, 3 + 3 + 30);
	vec_release(&choices.all);
}

static void filters_are_checked(void **state)
{
	assert_true(thread_filter_is_valid(""));
	assert_true(thread_filter_is_valid("1"));
	assert_true(thread_filter_is_valid("120-127;132"));
	assert_true(thread_filter_is_valid("1;"));
	assert_false(thread_filter_is_valid("x"));
	assert_false(thread_filter_is_valid("1-"));
	assert_false(thread_filter_is_valid("1,2"));
	assert_false(thread_filter_is_valid("-1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_between_the_marks_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(formats_of_one_event_get_no_windows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nostop_keeps_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_window_may_be_open, set_up, tear_down),
		cmocka_unit_test_setup_teardown(recordings_without_marks_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wall_is_filtered_by_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_are_chosen_for_a_time, set_up, tear_down),
		cmocka_unit_test(filters_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
