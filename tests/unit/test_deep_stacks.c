/* SPDX-License-Identifier: MIT */
/* Deep stacks that arrive in parts: whole when all parts are there, without their middle when one is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/records/validate.h"
#include "collect/records/split_samples.h"

#define KERNEL 2
#define TID 7
#define TIME 1000

static struct {
	struct duet_sample head;
	uint64_t kernel[KERNEL];
	uint64_t user[DUET_MAX_USER_STACK];
	uint32_t ids[DUET_MAX_USER_STACK];
	struct duet_attribute size_head; /* only in a sample with attributes */
	uint64_t size;
} sample;

#define PLAIN_BYTES offsetof(__typeof__(sample), size_head)

static uint64_t address_of(uint32_t frame)
{
	return 0x10000 + frame;
}

static uint32_t id_of(uint32_t frame)
{
	return 0x20000 + frame;
}

/* Makes the sample that BPF sends: the first frames of `depth`, and the last. */
static void make_sample(uint32_t depth)
{
	memset(&sample, 0, sizeof(sample));
	sample.head.head = (struct duet_record){.size = PLAIN_BYTES,
						.type = DUET_RECORD_SAMPLE,
						.version = DUET_RECORD_VERSION,
						.time_ns = TIME,
						.tgid = 1,
						.tid = TID};
	sample.head.kernel_depth = KERNEL;
	sample.head.user_depth = sample.head.id_depth = DUET_MAX_USER_STACK;
	sample.head.left_out = (uint16_t)(depth - DUET_MAX_USER_STACK);
	for (uint32_t i = 0; i < DUET_MAX_USER_STACK; i++) {
		uint32_t frame = i < DUET_LEAF_FRAMES ? i : i + sample.head.left_out;

		sample.user[i] = address_of(frame);
		sample.ids[i] = id_of(frame);
	}
	sample.kernel[1] = 5;
	assert_true(record_check(&sample, PLAIN_BYTES));
}

static struct duet_frames_record make_part(uint32_t first, uint32_t tid, uint64_t time_ns)
{
	struct duet_frames_record part = {.head = {.size = sizeof(part),
						   .type = DUET_RECORD_FRAMES,
						   .version = DUET_RECORD_VERSION,
						   .time_ns = time_ns,
						   .tgid = 1,
						   .tid = tid},
					  .first = first};

	for (uint32_t i = 0; i < DUET_ROOT_FRAMES; i++) {
		part.stack[i] = address_of(first + i);
		part.ids[i] = id_of(first + i);
	}
	return part;
}

static void add(struct deep_stacks *parts, uint32_t first, uint32_t tid, uint64_t time_ns)
{
	struct duet_frames_record part = make_part(first, tid, time_ns);

	assert_true(record_check(&part, sizeof(part)));
	deep_stacks_add(parts, &part);
}

/* Adds the parts that the walk sends: each is sent before another one overwrites it. */
static void add_all(struct deep_stacks *parts, uint32_t depth)
{
	for (uint32_t walked = DUET_MAX_USER_STACK; walked < depth; walked += DUET_ROOT_FRAMES)
		add(parts, walked - DUET_ROOT_FRAMES, TID, TIME);
}

static void assert_whole(const struct duet_sample *whole, uint32_t depth)
{
	const uint64_t *user = whole->stack + KERNEL;
	const uint32_t *ids = (const uint32_t *)(user + depth);

	assert_int_equal(whole->user_depth, depth);
	assert_int_equal(whole->id_depth, depth);
	assert_int_equal(whole->left_out, 0);
	assert_int_equal(whole->stack[1], 5);
	assert_int_equal(whole->head.size, (const char *)(ids + depth + depth % 2) - (const char *)whole);
	for (uint32_t i = 0; i < depth; i++) {
		assert_int_equal(user[i], address_of(i));
		assert_int_equal(ids[i], id_of(i));
	}
}

static void test_whole(void **state)
{
	static const uint32_t depths[] = {1025, 1279, 1280, 1281, 1536, 10007, DUET_MAX_WALK};
	struct deep_stacks stacks = {0};

	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		make_sample(depths[i]);
		add_all(&stacks, depths[i]);
		assert_whole(deep_stacks_join(&stacks, &sample.head), depths[i]);
		assert_int_equal(stacks.pending.len, 0);
	}
	deep_stacks_release(&stacks);
}

static void test_attributes_stay(void **state)
{
	const struct duet_sample *whole;
	struct deep_stacks stacks = {0};
	const unsigned char *end;

	make_sample(2001);
	sample.size_head = (struct duet_attribute){.type = DUET_ATTRIBUTE_SIZE, .bytes = 8};
	sample.size = 12345;
	sample.head.head.size = sizeof(sample);
	sample.head.attribute_bytes = 16;
	assert_true(record_check(&sample, sizeof(sample)));
	add_all(&stacks, 2001);
	whole = deep_stacks_join(&stacks, &sample.head);
	assert_ptr_not_equal(whole, &sample.head);
	end = (const unsigned char *)whole + whole->head.size;
	assert_int_equal(whole->attribute_bytes, 16);
	assert_memory_equal(end - 16, &sample.size_head, 16);
	deep_stacks_release(&stacks);
}

static void test_without_ids(void **state)
{
	struct deep_stacks stacks = {0};
	const struct duet_sample *whole;

	make_sample(2000);
	sample.head.id_depth = 0;
	add_all(&stacks, 2000);
	whole = deep_stacks_join(&stacks, &sample.head);
	assert_int_equal(whole->user_depth, 2000);
	assert_int_equal(whole->id_depth, 0);
	assert_int_equal(whole->head.size, sizeof(*whole) + (KERNEL + 2000) * sizeof(uint64_t));
	assert_int_equal(whole->stack[KERNEL + 1999], address_of(1999));
	deep_stacks_release(&stacks);
}

static void assert_as_it_came(struct deep_stacks *parts)
{
	make_sample(3000);
	assert_ptr_equal(deep_stacks_join(parts, &sample.head), &sample.head);
	assert_int_equal(parts->pending.len, 0);
}

static void test_missing_part(void **state)
{
	struct deep_stacks stacks = {0};

	assert_as_it_came(&stacks); /* none at all */
	add(&stacks, DUET_LEAF_FRAMES, TID, TIME);
	assert_as_it_came(&stacks);
	add(&stacks, DUET_LEAF_FRAMES, TID, TIME);
	for (uint32_t first = DUET_LEAF_FRAMES + 2 * DUET_ROOT_FRAMES; first < 3000; first += DUET_ROOT_FRAMES)
		add(&stacks, first, TID, TIME);
	assert_as_it_came(&stacks);
	add(&stacks, DUET_LEAF_FRAMES + DUET_ROOT_FRAMES, TID, TIME); /* never begun */
	assert_int_equal(stacks.pending.len, 0);
	deep_stacks_release(&stacks);
}

/* The sample of these parts had no room in the ring. */
static void test_parts_of_another_sample(void **state)
{
	struct deep_stacks stacks = {0};

	for (uint32_t first = DUET_LEAF_FRAMES; first < 3000; first += DUET_ROOT_FRAMES)
		add(&stacks, first, TID, TIME - 1);
	assert_as_it_came(&stacks);
	add(&stacks, DUET_LEAF_FRAMES, TID, TIME - 1);
	make_sample(3000);
	add_all(&stacks, 3000);
	assert_whole(deep_stacks_join(&stacks, &sample.head), 3000);
	deep_stacks_release(&stacks);
}

/* Several CPUs share the ring. */
static void test_threads_take_turns(void **state)
{
	struct deep_stacks stacks = {0};

	for (uint32_t first = DUET_LEAF_FRAMES; first < 3000; first += DUET_ROOT_FRAMES)
		for (uint32_t tid = TID - 1; tid <= TID + 1; tid++)
			add(&stacks, first, tid, TIME);
	make_sample(3000);
	assert_whole(deep_stacks_join(&stacks, &sample.head), 3000);
	assert_int_equal(stacks.pending.len, 2);
	sample.head.head.tid = TID + 1;
	assert_whole(deep_stacks_join(&stacks, &sample.head), 3000);
	deep_stacks_release(&stacks);
}

static void test_no_thread_fills_the_memory(void **state)
{
	struct deep_stacks stacks = {0};

	for (uint32_t tid = 1; tid <= 3 * DEEP_STACKS_MAX; tid++)
		add(&stacks, DUET_LEAF_FRAMES, tid, tid);
	assert_int_equal(stacks.pending.len, DEEP_STACKS_MAX);
	for (size_t i = 0; i < stacks.pending.len; i++)
		assert_true(stacks.pending.items[i].tid > 2 * DEEP_STACKS_MAX); /* the oldest went */
	deep_stacks_release(&stacks);
}

static void test_shallow_sample(void **state)
{
	struct deep_stacks stacks = {0};

	make_sample(DUET_MAX_USER_STACK);
	add(&stacks, DUET_LEAF_FRAMES, TID, TIME);
	assert_ptr_equal(deep_stacks_join(&stacks, &sample.head), &sample.head);
	deep_stacks_release(&stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_attributes_stay),
		cmocka_unit_test(test_without_ids),
		cmocka_unit_test(test_missing_part),
		cmocka_unit_test(test_parts_of_another_sample),
		cmocka_unit_test(test_threads_take_turns),
		cmocka_unit_test(test_no_thread_fills_the_memory),
		cmocka_unit_test(test_shallow_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
