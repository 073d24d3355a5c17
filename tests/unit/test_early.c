/* SPDX-License-Identifier: MIT */
/* Stacks that wait for their weight: each is given once, and what nobody asks for does not stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collect/records/split_samples.h"
#include "proc/room.h"

#define FRAMES 100

static struct early early;

static struct payer payer;

static void add(uint64_t id, uint64_t time_ns)
{
	size_t bytes = sizeof(struct duet_sample) + FRAMES * sizeof(uint64_t);
	struct duet_sample *sample = calloc(1, bytes);

	assert_non_null(sample);
	sample->head.size = (uint32_t)bytes;
	sample->head.time_ns = time_ns;
	sample->role = DUET_ROLE_EARLY;
	sample->waker = id;
	sample->user_depth = FRAMES;
	sample->stack[FRAMES - 1] = id;
	early_add(&early, &payer, sample);
	free(sample);
}

static const struct duet_sample *take(uint64_t id)
{
	const struct duet_slept_record record = {
		.head.time_ns = 77, .id = id, .weight = 500, .runnable = 200, .waker = 9};

	return early_take(&early, &record);
}

static int begin(void **state)
{
	early = (struct early){0};
	return 0;
}

static int end(void **state)
{
	early_release(&early);
	room_open(false);
	return 0;
}

static void the_weight_finds_its_stack(void **state)
{
	const struct duet_sample *sample;

	add(1, 10);
	add(2, 20);
	sample = take(1);
	assert_non_null(sample);
	assert_int_equal(sample->role, DUET_ROLE_SAMPLE);
	assert_int_equal(sample->head.time_ns, 77);
	assert_int_equal(sample->weight, 500);
	assert_int_equal(sample->runnable, 200);
	assert_int_equal(sample->waker, 9);
	assert_int_equal(sample->stack[FRAMES - 1], 1);
	assert_null(take(1));
	assert_non_null(take(2));
	assert_int_equal(room_held(ROOM_EARLY, &(struct payer){0}), 0);
}

/* A request that completes several times: each completion has the stack, and a name of its own. */
static void a_stack_is_kept_for_other_weights(void **state)
{
	struct {
		struct duet_slept_record slept;
		struct duet_attribute head;
		struct duet_resource resource;
	} record = {
		.slept = {.head.time_ns = 2 * EARLY_KEEP_NS, .id = 4, .weight = 1, .attribute_bytes = 16, .is_kept = 1},
		.head = {.type = DUET_ATTRIBUTE_RESOURCE, .bytes = sizeof(struct duet_resource)},
		.resource = {.kind = DUET_RESOURCE_PIPE},
	};
	const struct duet_sample *sample;

	add(4, 10);
	for (uint32_t weight = 1; weight < 4; weight++) {
		record.slept.weight = weight;
		sample = early_take(&early, &record.slept);
		assert_non_null(sample);
		assert_int_equal(sample->weight, weight);
		assert_int_equal(sample->attribute_bytes, 16);
		assert_int_equal(sample->head.size, sizeof(*sample) + FRAMES * sizeof(uint64_t) + 16);
		assert_memory_equal(&sample->stack[FRAMES], &record.head, 16);
	}
	add(5, 2 * EARLY_KEEP_NS + 1); /* it was asked for lately, so it is not old */
	record.slept.is_kept = 0;
	assert_non_null(early_take(&early, &record.slept));
	assert_null(early_take(&early, &record.slept));
}

static void the_newest_of_an_id_stays(void **state)
{
	size_t one;

	add(3, 10);
	one = room_held(ROOM_EARLY, &(struct payer){0});
	add(3, 11);
	assert_int_equal(room_held(ROOM_EARLY, &(struct payer){0}), one);
	assert_non_null(take(3));
	assert_null(take(3));
}

static void memory_is_bounded(void **state)
{
	for (uint64_t id = 1; id < 40000; id++)
		add(id, 10);
	assert_in_range(room_held(ROOM_EARLY, &(struct payer){0}), EARLY_BYTES_MAX / 2, EARLY_BYTES_MAX);
	assert_non_null(take(1));
	assert_null(take(39999));
}

static void old_ones_are_dropped(void **state)
{
	add(1, EARLY_KEEP_NS + 1);
	add(2, 3 * EARLY_KEEP_NS);
	assert_null(take(1));
	assert_non_null(take(2));
}

static void a_user_leaves_room_for_others(void **state)
{
	room_open(true);
	payer = (struct payer){1, 1};
	for (uint64_t id = 1; id < 40000; id++)
		add(id, 10);
	payer = (struct payer){2, 2};
	for (uint64_t id = 40000; id < 41000; id++)
		add(id, 10);
	for (uint64_t id = 40000; id < 41000; id++)
		assert_non_null(take(id));
	payer = (struct payer){0};
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_weight_finds_its_stack, begin, end),
		cmocka_unit_test_setup_teardown(a_stack_is_kept_for_other_weights, begin, end),
		cmocka_unit_test_setup_teardown(the_newest_of_an_id_stays, begin, end),
		cmocka_unit_test_setup_teardown(memory_is_bounded, begin, end),
		cmocka_unit_test_setup_teardown(old_ones_are_dropped, begin, end),
		cmocka_unit_test_setup_teardown(a_user_leaves_room_for_others, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
