/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include <errno.h>

#include "profile/merge.h"

static struct profile profile;

/* Adds a sample with a stack and a thread named after it, so that the stack identifies the sample. */
static void add(const char *name, uint64_t time_ns, uint64_t weight)
{
	uint32_t frames[] = {
		frame_of(&profile, FRAME_NATIVE, "root", "libc.so.6"),
		java_frame(&profile, FRAME_COMPILED, "Class", name, "()V", 3),
	};
	uint32_t owner = owner_of(&profile, 7, name);

	assert_int_equal(add_cpu_sample(&profile, profile_stack(&profile, frames, 2),
				     profile_thread(&profile, 7, 8, name, "process", owner), time_ns, weight),
			 0);
}

static int setup(void **state)
{
	return profile_init(&profile);
}

static int teardown(void **state)
{
	profile_release(&profile);
	return 0;
}

/* The window as text; freed by the caller. */
static char *stacks(void)
{
	struct writer_options options;

	writer_options_default(&options);
	options.total = true;
	writer_groups_parse(&options, "container,thread");
	return written("collapsed", &profile, &options);
}

static void assert_stacks(const char *want)
{
	char *text = stacks();

	assert_string_equal(text, want);
	free(text);
}

static void samples_go_where_their_time_says(void **state)
{
	profile.until_ns = 100;
	add("late", 100, 1);
	add("early", 99, 2);
	add("later", 250, 4);
	assert_stacks("early;early;root;Class.early 2\n");
	assert_int_equal(profile_exchange(&profile, 200, NULL), 0);
	assert_stacks("late;late;root;Class.late 1\n");
	assert_int_equal(profile_later(&profile), 1);
	add("same", 150, 8);
	assert_int_equal(profile_exchange(&profile, 300, NULL), 0);
	assert_stacks("later;later;root;Class.later 4\n");
	assert_int_equal(profile_exchange(&profile, 400, NULL), 0);
	assert_stacks("");
}

/* Rows of a window that has ended take no memory in the next one. */
static void only_what_follows_is_kept(void **state)
{
	char name[32];

	profile.until_ns = 100;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "early%d", i);
		add(name, 1, 1);
	}
	add("late", 100, 1);
	profile_add_loss(&profile, 1, "lost");
	profile_add_fact(&profile, "key", "value");
	profile.host.processors = 3;
	assert_int_equal(profile_exchange(&profile, 200, NULL), 0);
	assert_int_equal(profile.frames.len, 2);
	assert_int_equal(profile.nodes.len, 3);
	assert_int_equal(profile.threads.len, 1);
	assert_int_equal(profile.owners.len, 2);
	assert_int_equal(profile.losses.len, 0);
	assert_int_equal(profile.facts.len, 0);
	assert_int_equal(profile.until_ns, 200);
}

static void virtual_threads_keep_their_ids(void **state)
{
	uint32_t frame, node, owner, threads[3];

	profile.until_ns = 100;
	frame = frame_of(&profile, FRAME_NATIVE, "root", "libc.so.6");
	node = profile_stack(&profile, &frame, 1);
	owner = owner_of(&profile, 7, "container");
	(void)profile_virtual_thread(&profile, 7, 4, "early", "process", owner);
	threads[0] = profile_virtual_thread(&profile, 7, 5, "one", "process", owner);
	threads[1] = profile_virtual_thread(&profile, 7, 6, "two", "process", owner);
	threads[1] = profile_virtual_thread(&profile, 7, 7, "two", "process", owner);
	threads[2] = profile_virtual_thread(&profile, 7, 8, "", "process", owner);
	for (int i = 0; i < 3; i++)
		assert_int_equal(add_cpu_sample(&profile, node, threads[i], 150, 1), 0);
	assert_int_equal(profile_exchange(&profile, 200, NULL), 0);
	assert_int_equal(profile.threads.len, 3);
	assert_int_equal(profile.virtual_ids.len, 2);
	owner = owner_of(&profile, 7, "container");
	threads[0] = profile_virtual_thread(&profile, 7, 5, "one", "process", owner);
	assert_int_equal(profile_virtual_id(&profile, threads[0]), 5);
	threads[1] = profile_virtual_thread(&profile, 7, 6, "two", "process", owner);
	assert_int_equal(profile_virtual_id(&profile, threads[1]), 0);
	(void)profile_virtual_thread(&profile, 7, 8, "", "process", owner);
	assert_int_equal(profile.threads.len, 3);
}

static void strings_move_with_their_users(void **state)
{
	struct intern old, strings;
	struct intern_move move;
	uint32_t kept, same;
	char name[32];

	profile.until_ns = 100;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "early%d", i);
		add(name, 1, 1);
	}
	add("late", 100, 1);
	kept = intern_str(&profile.strings, "held by somebody else");
	old = profile.strings;
	assert_int_equal(intern_init(&strings), 0);
	assert_int_equal(intern_move_init(&move, &old, &strings), 0);
	assert_int_equal(profile_exchange(&profile, 200, &move), 0);
	same = intern_moved(&move, kept);
	assert_int_equal(intern_moved(&move, kept), same);
	assert_int_equal(intern_moved(&move, 0), 0);
	assert_int_equal(intern_moved(&move, UINT32_MAX), 0);
	intern_move_release(&move);
	intern_release(&old);
	assert_string_equal(intern_text(&profile.strings, same), "held by somebody else");
	assert_true(profile.strings.strings.len < 20);
	assert_stacks("late;late;root;Class.late 1\n");
}

/* More samples than a timeline holds in memory. */
static void no_sample_is_lost_or_doubled(void **state)
{
	uint64_t sum = 0;

	profile.until_ns = 1000;
	for (uint64_t i = 0; i < TIMELINE_RECENT * 3; i++)
		add(i % 2 ? "a" : "b", i % 5000, 1);
	for (uint64_t window = 1; window <= 5; window++) {
		assert_int_equal(profile_later(&profile) + profile.samples.len + sum, TIMELINE_RECENT * 3);
		sum += profile.samples.len;
		assert_int_equal(profile_exchange(&profile, (window + 1) * 1000, NULL), 0);
	}
	assert_int_equal(sum, TIMELINE_RECENT * 3);
	assert_int_equal(profile.samples.len, 0);
}

/*
 * A loader that is far behind moves what is left only now and then: rows of ended windows go when all are moved. Each
 * window has as many samples as it shall have, those too that are added late.
 */
static void many_windows_are_not_moved_each_time(void **state)
{
	const uint64_t windows = 300, window_ns = 1000;
	size_t moved = 0, rows;
	char name[32];

	profile.window_ns = window_ns;
	profile_set_end(&profile, window_ns);
	for (uint64_t i = 0; i < windows * 8; i++) {
		snprintf(name, sizeof(name), "window%lu", (unsigned long)(i % windows));
		add(name, i % windows * window_ns + i / windows * 100, 1);
	}
	for (uint64_t window = 0; window < windows; window++) {
		uint64_t late = window + 70 < windows ? window + 70 : window;

		snprintf(name, sizeof(name), "window%lu", (unsigned long)late);
		add(name, late * window_ns + 999, 1);
		assert_int_equal(profile.samples.len, 8 + (window >= 70) + (late == window));
		rows = profile.nodes.len;
		assert_int_equal(profile_exchange(&profile, (window + 2) * window_ns, NULL), 0);
		moved += profile.nodes.len < rows;
		assert_int_equal(profile.until_ns, (window + 2) * window_ns);
	}
	assert_int_equal(profile.samples.len + profile_later(&profile), 0);
	assert_true(moved < 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_go_where_their_time_says, setup, teardown),
		cmocka_unit_test_setup_teardown(only_what_follows_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(virtual_threads_keep_their_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_move_with_their_users, setup, teardown),
		cmocka_unit_test_setup_teardown(no_sample_is_lost_or_doubled, setup, teardown),
		cmocka_unit_test_setup_teardown(many_windows_are_not_moved_each_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
