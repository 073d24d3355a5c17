/* SPDX-License-Identifier: MIT */
/* The ring of a perf event: records that wrap around its end, other records between them, and malformed records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "sample/perf_ring.c"

#define KERNEL_ADDRESS 0xffffffff81000000ull
#define ALL UINT64_MAX /* of time */

struct record {
	struct perf_event_header header;
	uint64_t time_ns;
	uint64_t count;
	uint64_t addresses[300];
};

#define PAGE_MOST (64u << 10)

static uint64_t room[2 * PAGE_MOST / sizeof(uint64_t)];
static struct perf_event_mmap_page *const ring = (struct perf_event_mmap_page *)room;

static int empty_ring(void **state)
{
	memset(room, 0, sizeof(room));
	return 0;
}

static void put(const void *bytes, size_t len)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < len; i++)
		((unsigned char *)ring)[size + (ring->data_head + i) % size] = ((const unsigned char *)bytes)[i];
	ring->data_head += len;
}

/* A tick as the kernel writes it: a mark, then the addresses, leaf first. */
static struct record make_tick(uint64_t time_ns, uint64_t depth)
{
	struct record record = {.header.type = PERF_RECORD_SAMPLE, .time_ns = time_ns};

	if (depth)
		record.addresses[record.count++] = (uint64_t)PERF_CONTEXT_KERNEL;
	for (uint64_t i = 0; i < depth; i++)
		record.addresses[record.count++] = KERNEL_ADDRESS + i;
	record.header.size = (uint16_t)(24 + 8 * record.count);
	return record;
}

static void put_tick(uint64_t time_ns, uint64_t depth)
{
	struct record record = make_tick(time_ns, depth);

	put(&record, record.header.size);
}

static void expect_tick(uint64_t time_ns, uint32_t depth, bool more)
{
	struct kernel_stack stack;

	assert_int_equal(perf_ring_take(ring, ALL, &stack), more);
	assert_int_equal(stack.time_ns, time_ns);
	assert_int_equal(stack.depth, depth);
	for (uint32_t i = 0; i < depth; i++)
		assert_int_equal(stack.frames[i], KERNEL_ADDRESS + i);
}

static void test_empty(void **state)
{
	expect_tick(0, 0, false);
}

/* A tick in user mode has no kernel frames, but it is a tick. */
static void test_in_order(void **state)
{
	put_tick(1, 3);
	put_tick(2, 0);
	put_tick(3, 7);
	expect_tick(1, 3, true);
	expect_tick(2, 0, true);
	expect_tick(3, 7, false);
	expect_tick(0, 0, false);
	assert_int_equal(ring->data_tail, ring->data_head);
}

/* Each position of the ring's end inside a record. */
static void test_around_the_end(void **state)
{
	for (uint64_t i = 1; i < 2000; i++) {
		put_tick(i, i % 11);
		expect_tick(i, (uint32_t)(i % 11), false);
	}
	assert_true(ring->data_head > 10 * (uint64_t)sysconf(_SC_PAGESIZE));
}

static void test_other_records(void **state)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} lost = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(lost)}, .lost = 9};

	put(&lost, sizeof(lost));
	put_tick(5, 2);
	put(&lost, sizeof(lost));
	expect_tick(5, 2, false);
	expect_tick(0, 0, false);
}

/* Ticks that the handler itself causes come after the time at which it began. */
static void test_until(void **state)
{
	struct kernel_stack stack;

	put_tick(10, 1);
	put_tick(30, 2);
	assert_false(perf_ring_take(ring, 20, &stack));
	assert_int_equal(stack.depth, 1);
	assert_false(perf_ring_take(ring, 20, &stack));
	assert_int_equal(stack.depth, 0);
	perf_ring_clear(ring);
	expect_tick(0, 0, false);
}

static void test_deep(void **state)
{
	put_tick(1, 290);
	expect_tick(1, DUET_MAX_STACK, false);
}

/* There is no endless loop, and nothing is read past the record. */
static void test_malformed(void **state)
{
	struct record record = make_tick(1, 2);

	record.count = UINT64_MAX / 8;
	put(&record, record.header.size);
	expect_tick(0, 0, false);
	perf_ring_clear(ring);
	record.header.size = 0;
	put(&record, 64);
	expect_tick(0, 0, false);
	perf_ring_clear(ring);
	record.header.size = UINT16_MAX;
	put(&record, 64);
	expect_tick(0, 0, false);
	ring->data_head = ring->data_tail + UINT64_MAX / 2;
	expect_tick(0, 0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_empty, empty_ring),
		cmocka_unit_test_setup(test_in_order, empty_ring),
		cmocka_unit_test_setup(test_around_the_end, empty_ring),
		cmocka_unit_test_setup(test_other_records, empty_ring),
		cmocka_unit_test_setup(test_until, empty_ring),
		cmocka_unit_test_setup(test_deep, empty_ring),
		cmocka_unit_test_setup(test_malformed, empty_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
