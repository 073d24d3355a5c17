/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include <errno.h>

#include "profile/merge.h"

static struct profile a, b, all;
static struct buf why;

static int setup(void **state)
{
	buf_init(&why);
	return profile_init(&a) | profile_init(&b) | profile_init(&all);
}

static int teardown(void **state)
{
	buf_release(&why);
	profile_release(&a);
	profile_release(&b);
	profile_release(&all);
	return 0;
}

static void add(struct profile *profile, const char *name, uint64_t time_ns, uint64_t weight)
{
	uint32_t frames[] = {frame_of(profile, FRAME_NATIVE, "root", "libc.so.6"),
			     java_frame(profile, FRAME_COMPILED, "Class", name, "()V", 3)};

	assert_int_equal(add_cpu_sample(profile, profile_stack(profile, frames, 2),
					profile_thread(profile, 7, 8, name, "process", owner_of(profile, 7, name)),
					time_ns, weight),
			 0);
}

static void assert_stacks(const struct profile *profile, const char *want)
{
	struct writer_options options;
	char *text;

	writer_options_default(&options);
	options.total = true;
	writer_groups_parse(&options, "container,thread");
	text = written("collapsed", profile, &options);
	assert_string_equal(text, want);
	free(text);
}

static void merge_both(void)
{
	assert_int_equal(profile_merge(&all, &a, "a.duet", &why), 0);
	assert_int_equal(profile_merge(&all, &b, "b.duet", &why), 0);
}

static void equal_rows_become_one(void **state)
{
	add(&a, "x", 5, 1);
	add(&a, "y", 6, 2);
	add(&b, "unused first", 1, 0);
	add(&b, "y", 7, 4);
	add(&b, "z", 8, 8);
	merge_both();
	assert_stacks(&all, "unused first;unused first;root;Class.unused first 0\nx;x;root;Class.x 1\n"
			    "y;y;root;Class.y 6\nz;z;root;Class.z 8\n");
	assert_int_equal(all.threads.len, 4);
	assert_int_equal(all.nodes.len, 6);
	assert_int_equal(all.samples.len, 5);
}

static void times_losses_and_facts_are_those_of_both(void **state)
{
	a.start_ns = a.start_realtime_ns = 200;
	a.end_ns = 300;
	b.start_ns = b.start_realtime_ns = 100;
	b.end_ns = 250;
	a.host.name = intern_str(&a.strings, "first");
	b.host.name = intern_str(&b.strings, "second");
	b.is_private = true;
	a.processes = b.processes = PROFILE_NEVER;
	profile_add_loss(&a, 1, "one");
	profile_add_loss(&b, 2, "two");
	profile_add_loss(&b, 4, "one");
	profile_add_fact(&a, "engine", "bpf");
	profile_add_fact(&a, "host", "first");
	profile_add_fact(&b, "engine", "bpf");
	profile_add_fact(&b, "host", "second");
	merge_both();
	assert_int_equal(all.start_ns, 100);
	assert_int_equal(all.start_realtime_ns, 100);
	assert_int_equal(all.end_ns, 300);
	assert_string_equal(intern_text(&all.strings, all.host.name), "first");
	assert_true(all.is_private);
	assert_int_equal(all.processes, PROFILE_IF_SEVERAL);
	assert_int_equal(all.losses.len, 2);
	assert_int_equal(all.losses.items[0].count, 5);
	assert_int_equal(all.facts.len, 5);
	assert_string_equal(intern_text(&all.strings, all.facts.items[0].value), "a.duet");
	assert_string_equal(intern_text(&all.strings, all.facts.items[3].value), "b.duet");
	assert_string_equal(intern_text(&all.strings, all.facts.items[4].value), "second");
}

static void events_are_one_by_name(void **state)
{
	(void)profile_event(&a, "cpu", PROFILE_NS, 10);
	(void)profile_event(&a, "faults", PROFILE_COUNT, 1);
	(void)profile_event(&b, "faults", PROFILE_COUNT, 1);
	(void)profile_event(&b, "cpu", PROFILE_NS, 20);
	add(&a, "x", 1, 1);
	add(&b, "x", 2, 2);
	merge_both();
	assert_int_equal(all.events.len, 2);
	assert_int_equal(all.events.items[0].interval, 0);
	assert_int_equal(all.events.items[1].interval, 1);
	assert_stacks(&all, "x;x;root;Class.x 3\n");
	profile_release(&b);
	assert_int_equal(profile_init(&b), 0);
	(void)profile_event(&b, "cpu", PROFILE_COUNT, 1);
	assert_int_equal(profile_merge(&all, &b, "b.duet", &why), -EINVAL);
	assert_string_equal(why.data, "its event cpu has another unit");
}

/* Rows that are left out disappear; all other facts stay. */
static void a_part_is_of_its_time_and_event(void **state)
{
	struct profile_part part = {.from_ns = 110, .until_ns = 130, .event = UINT32_MAX, .also = UINT32_MAX};

	(void)profile_event(&a, "faults", PROFILE_COUNT, 1);
	a.start_ns = a.start_realtime_ns = 100;
	a.end_ns = 200;
	profile_add_loss(&a, 1, "one");
	profile_add_fact(&a, "engine", "bpf");
	add(&a, "before", 109, 1);
	add(&a, "first", 110, 2);
	add(&a, "last", 129, 4);
	add(&a, "after", 130, 8);
	assert_int_equal(profile_cut(&all, &a, &part, &why), 0);
	assert_int_equal(all.events.len, 2);
	all.events.len = 0; /* so that "cpu" is the first */
	assert_int_equal(all.samples.len, 2);
	assert_int_equal(all.threads.len, 2);
	assert_int_equal(all.start_ns, 110);
	assert_int_equal(all.start_realtime_ns, 110);
	assert_int_equal(all.end_ns, 130);
	assert_int_equal(all.losses.len, 1);
	assert_int_equal(all.facts.len, 1);
	part.event = 1;
	part.until_ns = UINT64_MAX;
	profile_release(&all);
	assert_int_equal(profile_init(&all), 0);
	assert_int_equal(profile_cut(&all, &a, &part, &why), 0);
	assert_int_equal(all.events.len, 1);
	assert_int_equal(all.end_ns, 200);
	assert_stacks(&all, "after;after;root;Class.after 8\nfirst;first;root;Class.first 2\n"
			    "last;last;root;Class.last 4\n");
}

/* Samples of the second event become samples of the first. */
static void two_events_become_one(void **state)
{
	struct profile_part part = {.until_ns = UINT64_MAX, .event = 1, .also = 2};
	struct profile_sample sample = {.count = 1, .event = 2, .weight = 5, .time_ns = 1};

	(void)profile_event(&a, "cpu", PROFILE_NS, 1);
	(void)profile_event(&a, "lock", PROFILE_NS, 10);
	(void)profile_event(&a, "park", PROFILE_NS, 10);
	add(&a, "x", 1, 1); /* cpu */
	assert_int_equal(profile_add(&a, &sample), 0);
	sample.event = 1;
	assert_int_equal(profile_add(&a, &sample), 0);
	assert_int_equal(profile_cut(&all, &a, &part, &why), 0);
	assert_int_equal(all.events.len, 1);
	assert_string_equal(intern_text(&all.strings, all.events.items[0].name), "lock");
	assert_int_equal(all.samples.len, 2);
}

static void add_memory(uint32_t event, uint64_t time_ns, uint64_t address, uint32_t thread, uint64_t weight)
{
	const struct profile_sample sample = {
		.event = event,
		.time_ns = time_ns,
		.address = address,
		.thread = thread,
		.weight = weight,
		.count = 1,
	};

	assert_int_equal(profile_add(&a, &sample), 0);
}

static int sum_weights(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context += sample->weight;
	return 0;
}

/* Each sample has its own bit as weight. Samples are not in the order of time, and two processes share addresses. */
static void memory_that_was_not_freed(void **state)
{
	struct profile_part part = {.until_ns = 50, .event = 0, .also = UINT32_MAX, .is_unfreed = true, .freed = 1};
	uint64_t sum = 0;
	uint32_t one, two;

	(void)profile_event(&a, "nativemem", PROFILE_BYTES, 1);
	(void)profile_event(&a, "free", PROFILE_COUNT, 1);
	one = profile_thread(&a, 7, 8, "one", "one", 0);
	two = profile_thread(&a, 9, 9, "two", "two", 0);
	add_memory(1, 20, 0x1000, one, 0);
	add_memory(0, 10, 0x1000, one, 1); /* freed at 20 */
	add_memory(0, 10, 0x1000, two, 2); /* kept: the other process freed */
	add_memory(0, 30, 0x2000, one, 4); /* kept */
	add_memory(0, 10, 0x3000, one, 8); /* taken again, so its end was not seen */
	add_memory(0, 15, 0x3000, one, 16); /* kept */
	add_memory(1, 5, 0x2000, one, 0); /* freed before it was taken */
	add_memory(0, 49, 0x4000, one, 32); /* freed after the part */
	add_memory(1, 60, 0x4000, one, 0);
	add_memory(0, 50, 0x5000, one, 64); /* after the part */
	add_memory(0, 10, 0, one, 128); /* no address */
	assert_int_equal(profile_cut(&all, &a, &part, &why), 0);
	assert_int_equal(timeline_each(&all.samples, sum_weights, &sum), 0);
	assert_int_equal(sum, 2 + 4 + 16);
	assert_int_equal(all.events.len, 1);
	assert_int_equal(all.losses.len, 1);
	assert_int_equal(all.losses.items[0].count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_rows_become_one, setup, teardown),
		cmocka_unit_test_setup_teardown(times_losses_and_facts_are_those_of_both, setup, teardown),
		cmocka_unit_test_setup_teardown(events_are_one_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_part_is_of_its_time_and_event, setup, teardown),
		cmocka_unit_test_setup_teardown(two_events_become_one, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_that_was_not_freed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
