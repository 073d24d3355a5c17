/* SPDX-License-Identifier: MIT */
/* Objects that ZGC has moved are found by its tables. Here the heap is made up, in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/moved.c"

#define KNOWN(type, member) ((struct offset){true, 8, (uint32_t)offsetof(type, member)})
#define COLOUR (1ull << 44)
#define MASK (COLOUR - 1)
#define GRANULES 8
#define ENTRIES 4

struct map {
	uint64_t granules;
	uintptr_t array;
};

struct table {
	uint64_t start, bytes, shift, length;
	uint64_t entries[ENTRIES];
};

static struct {
	uint64_t other;
	struct map pages, old, young;
} heap;
static struct table table;
static uintptr_t old_map[GRANULES], young_map[GRANULES], page_map[GRANULES];

static uint64_t entry(uint64_t number, uint64_t to)
{
	return number << ENTRY_NUMBER_SHIFT | to << ENTRY_TO_SHIFT | ENTRY_USED;
}

static int set_up(void **state)
{
	(void)memory_open(getpid(), (uintptr_t)&heap); /* no library, but memory of this process */
	memset(&learnt, 0, sizeof(learnt));
	memset(&table, 0, sizeof(table));
	memset(young_map, 0, sizeof(young_map));
	layout.page_table = KNOWN(__typeof__(heap), pages);
	layout.page_map = (struct offset){true, 8, 0};
	layout.map_array = KNOWN(struct map, array);
	layout.extent = KNOWN(struct table, start);
	layout.extent_start = (struct offset){true, 8, 0};
	layout.shift = KNOWN(struct table, shift);
	layout.entries = KNOWN(struct table, length);
	layout.entries_length = (struct offset){true, 8, 0};
	heap.pages = (struct map){GRANULES, (uintptr_t)page_map};
	heap.old = (struct map){GRANULES, (uintptr_t)old_map};
	heap.young = (struct map){GRANULES, (uintptr_t)young_map};
	learnt.offset_mask = MASK;
	learnt.table_bytes = offsetof(struct table, entries);
	memory_renew();
	find_maps((uintptr_t)&heap, sizeof(heap));
	/* page 3 was moved: the object at its byte 0x100, with all objects at multiples of 8 */
	table = (struct table){
		.start = 3ull << GRANULE_SHIFT, .bytes = 1ull << GRANULE_SHIFT, .shift = 3, .length = ENTRIES};
	young_map[3] = (uintptr_t)&table;
	return 0;
}

static void finds_the_maps_of_both_generations(void **state)
{
	assert_int_equal(learnt.map_count, 2);
	assert_true(learnt.maps[0] == (uintptr_t)old_map && learnt.maps[1] == (uintptr_t)young_map);
}

static void finds_what_was_moved(void **state)
{
	const uintptr_t from = COLOUR | 3ull << GRANULE_SHIFT | 0x100, to = COLOUR | 5ull << GRANULE_SHIFT | 0x40;
	uint32_t at = hash_number(0x100 >> 3) % ENTRIES;

	table.entries[at] = entry(7, 1);
	table.entries[(at + 1) % ENTRIES] = entry(0x100 >> 3, to & MASK);
	memory_renew();
	assert_true(moved_to(from) == to);
	assert_true(moved_to(from + 8) == from + 8);
	assert_true(moved_to(COLOUR | 2ull << GRANULE_SHIFT) == (COLOUR | 2ull << GRANULE_SHIFT));
	assert_true(moved_to(COLOUR | (uint64_t)GRANULES << GRANULE_SHIFT) ==
		    (COLOUR | (uint64_t)GRANULES << GRANULE_SHIFT));
	table.length = 3; /* not a table */
	memory_renew();
	assert_true(moved_to(from) == from);
}

/* A table without an unused entry, or that is longer than its memory. */
static void ends_in_any_table(void **state)
{
	const uintptr_t from = COLOUR | 3ull << GRANULE_SHIFT | 0x100;

	for (uint32_t i = 0; i < ENTRIES; i++)
		table.entries[i] = entry(i, i);
	memory_renew();
	assert_true(moved_to(from) == from);
	table.length = 1ull << 20;
	memory_renew();
	(void)moved_to(from);
	young_map[3] = 8; /* leads nowhere */
	memory_renew();
	assert_true(moved_to(from) == from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(finds_the_maps_of_both_generations, set_up),
		cmocka_unit_test_setup(finds_what_was_moved, set_up),
		cmocka_unit_test_setup(ends_in_any_table, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
