/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile/timeline.h"

#define MANY (2 * TIMELINE_RECENT + 100)

static int setup(void **state)
{
	static struct timeline timeline;

	timeline_init(&timeline);
	*state = &timeline;
	return 0;
}

static int teardown(void **state)
{
	timeline_release(*state);
	unsetenv("TMPDIR");
	return 0;
}

static void add_many(struct timeline *timeline)
{
	for (uint32_t i = 0; i < MANY; i++) {
		const struct profile_sample sample = {.time_ns = i, .weight = 7, .thread = i % 3, .node = i * 2};

		assert_int_equal(timeline_add(timeline, &sample), 0);
	}
	assert_int_equal(timeline->len, MANY);
}

static int expect_next(void *context, const struct profile_sample *sample)
{
	uint32_t *next = context;

	assert_int_equal(sample->time_ns, *next);
	assert_int_equal(sample->weight, 7);
	assert_int_equal(sample->thread, *next % 3);
	assert_int_equal(sample->node, *next * 2);
	++*next;
	return 0;
}

static void expect_many(struct timeline *timeline)
{
	uint32_t next = 0;

	assert_int_equal(timeline_each(timeline, expect_next, &next), 0);
	assert_int_equal(next, MANY);
}

static void many_are_read_back_in_order(void **state)
{
	struct timeline *timeline = *state;

	add_many(timeline);
	assert_true(timeline->recent.len <= TIMELINE_RECENT);
	assert_true(timeline->recent.size <= TIMELINE_RECENT);
	expect_many(timeline);
	expect_many(timeline);
}

static void without_a_file_all_stay_in_memory(void **state)
{
	struct timeline *timeline = *state;

	setenv("TMPDIR", "/no/such/folder", 1);
	add_many(timeline);
	assert_int_equal(timeline->recent.len, MANY);
	expect_many(timeline);
}

static void a_full_disk_loses_nothing(void **state)
{
	struct timeline *timeline = *state;

	timeline->fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	assert_true(timeline->fd >= 0);
	add_many(timeline);
	assert_true(timeline->stuck);
	expect_many(timeline);
}

struct sums {
	uint64_t entries, count, weight, last_ns;
};

static int add_up(void *context, const struct profile_sample *sample)
{
	struct sums *sums = context;

	assert_true(sample->time_ns >= sums->last_ns);
	sums->last_ns = sample->time_ns;
	sums->entries++;
	sums->count += sample->count;
	sums->weight += sample->weight;
	return 0;
}

static void without_a_file_equal_ones_are_merged(void **state)
{
	struct timeline *timeline = *state;
	struct sums sums = {0};

	setenv("TMPDIR", "/no/such/folder", 1);
	timeline->may_merge = true;
	for (uint32_t i = 0; i < 10 * TIMELINE_RECENT; i++) {
		const struct profile_sample sample = {
			.time_ns = i, .weight = 7, .thread = i % 3, .node = i % 1000, .count = 1};

		assert_int_equal(timeline_add(timeline, &sample), 0);
	}
	assert_true(timeline->recent.size <= TIMELINE_RECENT);
	assert_int_equal(timeline_each(timeline, add_up, &sums), 0);
	assert_int_equal(sums.entries, timeline->len);
	assert_int_equal(sums.count, 10 * TIMELINE_RECENT);
	assert_int_equal(sums.weight, 70 * TIMELINE_RECENT);
}

static int add_rest(void *context, const struct profile_sample *sample)
{
	struct sums *sums = context;

	sums->entries++;
	sums->count += sample->count;
	return 0;
}

/* A growing file has these samples already: later merging must not change them. */
static void written_ones_are_merged_apart(void **state)
{
	struct timeline *timeline = *state;
	uint64_t written = 0;

	setenv("TMPDIR", "/no/such/folder", 1);
	timeline->may_merge = true;
	for (uint32_t i = 0; i < 5 * TIMELINE_RECENT; i++) {
		const struct profile_sample sample = {.time_ns = i, .node = i % 1000, .count = 1};

		assert_int_equal(timeline_add(timeline, &sample), 0);
		if (i % 10000 == 9999) {
			struct sums rest = {0};

			assert_int_equal(timeline_rest(timeline, timeline->written, add_rest, &rest), 0);
			written += rest.count;
			timeline->written = timeline->len;
			assert_int_equal(written, i + 1);
		}
	}
}

static void the_rest_may_begin_anywhere(void **state)
{
	const uint64_t starts[] = {0, 1, 1024, TIMELINE_RECENT, 2 * TIMELINE_RECENT + 1, MANY - 1, MANY, MANY + 1};
	struct timeline *timeline = *state;

	add_many(timeline);
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		uint32_t next = (uint32_t)starts[i];

		assert_int_equal(timeline_rest(timeline, starts[i], expect_next, &next), 0);
		assert_int_equal(next, starts[i] > MANY ? starts[i] : MANY);
	}
}

static int stop_at_five(void *context, const struct profile_sample *sample)
{
	++*(uint32_t *)context;
	return sample->time_ns == 5 ? -ECANCELED : 0;
}

static void a_visitor_may_stop(void **state)
{
	struct timeline *timeline = *state;
	uint32_t calls = 0;

	add_many(timeline);
	assert_int_equal(timeline_each(timeline, stop_at_five, &calls), -ECANCELED);
	assert_int_equal(calls, 6);
}

static void what_cannot_be_read_back_is_an_error(void **state)
{
	struct timeline *timeline = *state;
	uint32_t next = 0;

	add_many(timeline);
	assert_int_equal(ftruncate(timeline->fd, 100 * sizeof(struct profile_sample)), 0);
	assert_int_equal(timeline_each(timeline, expect_next, &next), -EIO);
}

/* Values of any size, of which some stay for some samples. */
static struct profile_sample sample_of_any_values(uint32_t i)
{
	uint64_t wide = (i * 0x9e3779b97f4a7c15ull) >> i % 64;
	uint32_t half = (uint32_t)(i * 0x9e3779b9u) >> i % 32;

	return (struct profile_sample){
		.time_ns = i % 5 ? i * 1000 : wide,
		.weight = i % 3 ? 10 : UINT64_MAX - wide,
		.thread = half,
		.node = i % 7 ? UINT32_MAX - half : 0,
		.count = i % 2 ? 1 : UINT32_MAX,
		.event = i / 1000,
		.address = i % 11 ? 0 : wide,
		.trace_high = i % 13 ? 0 : UINT64_MAX,
		.trace_low = i % 17 ? 0 : wide,
		.span = i % 19 ? 1 : wide,
		.attributes = i % 23 ? 0 : half,
	};
}

static int expect_any_values(void *context, const struct profile_sample *sample)
{
	const struct profile_sample want = sample_of_any_values((*(uint32_t *)context)++);

	assert_memory_equal(sample, &want, offsetof(struct profile_sample, attributes) + sizeof(want.attributes));
	return 0;
}

static void every_field_is_read_back(void **state)
{
	struct timeline *timeline = *state;
	uint32_t next = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		const struct profile_sample sample = sample_of_any_values(i);

		assert_int_equal(timeline_add(timeline, &sample), 0);
	}
	assert_int_equal(timeline_each(timeline, expect_any_values, &next), 0);
	assert_int_equal(next, MANY);
	next = TIMELINE_RECENT - 1;
	assert_int_equal(timeline_rest(timeline, next, expect_any_values, &next), 0);
	assert_int_equal(next, MANY);
}

/* A recording of a day has tens of millions: they take disk, and time to write. */
static void what_is_alike_takes_few_bytes(void **state)
{
	struct timeline *timeline = *state;

	add_many(timeline);
	assert_true(lseek(timeline->fd, 0, SEEK_END) <= 2 * TIMELINE_RECENT * 8);
}

static void nothing_needs_no_file(void **state)
{
	struct timeline *timeline = *state;
	uint32_t next = 0;

	assert_int_equal(timeline_each(timeline, expect_next, &next), 0);
	assert_int_equal(next, 0);
	assert_int_equal(timeline->fd, -1);
	timeline_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_are_read_back_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_file_all_stay_in_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_file_equal_ones_are_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(written_ones_are_merged_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(the_rest_may_begin_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(a_visitor_may_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_back_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(every_field_is_read_back, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_alike_takes_few_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_needs_no_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
