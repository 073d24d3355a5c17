/* SPDX-License-Identifier: MIT */
/* Code blobs are looked up in a made-up code heap. The memory after its end cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "hotspot/codelets.c"
#include "hotspot/compiling.c"
#include "hotspot/vmstructs.c"
#include "hotspot/jvmstructs.c"
#include "hotspot/perf_counter.c"
#include "memory.c"
#include "safe_copy.c"

#define HEAP_BYTES 4096u
#define SEGMENT_SHIFT 6
#define SEGMENTS (HEAP_BYTES >> SEGMENT_SHIFT)
#define BLOCK_HEADER 16u
#define BLOB_BYTES 640u

/* A blob, as jvmstructs.c finds it by the offsets below. */
struct blob {
	const char *name;
	uint32_t bytes;
	uint32_t frame_complete;
	uint32_t frame_words;
	uint32_t unused;
	uintptr_t code_begin;
	uintptr_t entry;
};

struct heap {
	uintptr_t low, high;
	uintptr_t map_low, map_high;
};

static unsigned char *memory;
static uint8_t map[SEGMENTS];
static struct heap heap;

#define KNOWN(member) ((struct offset){true, 4, (uint32_t)(member)})

static int make_heap(void **state)
{
	memory = mmap(NULL, 2 * HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + HEAP_BYTES, HEAP_BYTES, PROT_NONE), 0);
	memset(map, SEGMENT_FREE, sizeof(map));
	heap = (struct heap){(uintptr_t)memory, (uintptr_t)memory + HEAP_BYTES, (uintptr_t)map,
			     (uintptr_t)map + sizeof(map)};
	layout.heap_memory = layout.space_low = KNOWN(0);
	layout.space_high = KNOWN(offsetof(struct heap, high));
	layout.heap_segmap = KNOWN(offsetof(struct heap, map_low));
	layout.block_header_bytes = BLOCK_HEADER;
	layout.block_length = (struct offset){true, 8, 0};
	layout.block_used = KNOWN(8);
	layout.blob_name = KNOWN(offsetof(struct blob, name));
	layout.blob_bytes = KNOWN(offsetof(struct blob, bytes));
	layout.blob_frame_complete = KNOWN(offsetof(struct blob, frame_complete));
	layout.blob_frame_words = KNOWN(offsetof(struct blob, frame_words));
	layout.blob_code_begin = KNOWN(offsetof(struct blob, code_begin));
	layout.nmethod_entry = KNOWN(offsetof(struct blob, entry));
	code_heaps[0].heap = (uintptr_t)&heap;
	code_heaps[0].low = heap.low;
	code_heaps[0].high = heap.high + HEAP_BYTES; /* reserved, not committed */
	code_heaps[0].segment_shift = SEGMENT_SHIFT;
	code_heap_count = 1;
	return 0;
}

static int drop_heap(void **state)
{
	return munmap(memory, 2 * HEAP_BYTES);
}

static uintptr_t segment_address(size_t segment)
{
	return heap.low + (segment << SEGMENT_SHIFT);
}

static void map_block(size_t segment, size_t count)
{
	for (size_t i = 0; i < count; i++)
		map[segment + i] = (uint8_t)i;
}

/* An nmethod in the block that begins at `segment`. */
static struct blob *make_blob(size_t segment, uint32_t bytes)
{
	uintptr_t block = segment_address(segment);
	struct blob *blob = (struct blob *)(block + BLOCK_HEADER);

	map_block(segment, (BLOCK_HEADER + BLOB_BYTES) >> SEGMENT_SHIFT);
	*(uint64_t *)block = (BLOCK_HEADER + BLOB_BYTES + (1 << SEGMENT_SHIFT) - 1) >> SEGMENT_SHIFT;
	*(uint8_t *)(block + 8) = 1;
	*blob = (struct blob){.name = "nmethod", .bytes = bytes, .frame_complete = 20, .frame_words = 4};
	blob->code_begin = (uintptr_t)blob + 128;
	blob->entry = blob->code_begin + 12;
	return blob;
}

static void test_find(void **state)
{
	struct blob *blob = make_blob(4, BLOB_BYTES);
	struct code_blob found;

	assert_true(jvmstructs_find_blob(blob->entry + 100, &found));
	assert_int_equal(found.start, (uintptr_t)blob);
	assert_int_equal(found.entry, blob->entry);
	assert_int_equal(found.frame_complete, blob->code_begin + 20);
	assert_int_equal(found.frame_bytes, 4 * sizeof(uintptr_t));
	assert_false(jvmstructs_find_blob(segment_address(2), &found)); /* free */
	assert_false(jvmstructs_find_blob(heap.high, &found)); /* reserved only */
	assert_false(jvmstructs_find_blob(heap.low - 1, &found));
}

static void test_blob_that_claims_too_much(void **state)
{
	struct blob *blob = make_blob(4, UINT32_MAX);
	struct code_blob found;

	assert_false(jvmstructs_find_blob(blob->entry, &found));
}

/* The fields would lie past the committed end. */
static void test_blob_at_the_end(void **state)
{
	uintptr_t block = segment_address(SEGMENTS - 1);
	struct code_blob found;
	uintptr_t cursor = 0;

	map_block(SEGMENTS - 1, 1);
	memset((void *)block, 1, 1 << SEGMENT_SHIFT);
	assert_false(jvmstructs_find_blob(block + 20, &found));
	*(uint64_t *)segment_address(0) = SEGMENTS - 1;
	*(uint8_t *)(segment_address(0) + 8) = 0;
	*(uint64_t *)block = 1;
	assert_false(jvmstructs_next_blob(0, &cursor, &found));
}

static void test_map_that_leads_out(void **state)
{
	struct code_blob found;

	map[3] = 4;
	assert_false(jvmstructs_find_blob(segment_address(3), &found));
	map[3] = 1;
	assert_false(jvmstructs_find_blob(segment_address(3), &found));
}

/* The heap has grown, but not its map yet: nothing past the map's committed end may be read. */
static void test_map_behind_the_heap(void **state)
{
	struct blob *blob = make_blob(40, BLOB_BYTES);
	struct code_blob found;

	assert_true(jvmstructs_find_blob(blob->entry, &found));
	heap.map_high = heap.map_low + 40;
	assert_false(jvmstructs_find_blob(blob->entry, &found));
	assert_false(jvmstructs_find_blob(segment_address(40), &found));
}

/* The memory that a walk may read without asking the kernel. */
static void test_committed(void **state)
{
	assert_true(jvmstructs_is_committed(heap.low, HEAP_BYTES));
	assert_true(jvmstructs_is_committed(heap.high - 1, 1));
	assert_false(jvmstructs_is_committed(heap.high - 1, 2));
	assert_false(jvmstructs_is_committed(heap.high, 1));
	assert_false(jvmstructs_is_committed(heap.low - 1, 2));
	assert_true(jvmstructs_is_committed(heap.map_low, SEGMENTS));
	assert_false(jvmstructs_is_committed(heap.map_low + 1, SEGMENTS));
	assert_false(jvmstructs_is_committed(heap.low + 1, SIZE_MAX));
}

/* A process that is read from outside must not be able to cause an endless walk. */
static void test_a_heap_without_end(void **state)
{
	struct {
		uintptr_t low, high;
		uint32_t shift;
	} claimed = {4096, 4096 + HEAP_MAX_BYTES, 7};

	layout.heap_memory = layout.space_low_boundary = KNOWN(0);
	layout.space_high_boundary = KNOWN(offsetof(__typeof__(claimed), high));
	layout.heap_segment_shift = KNOWN(offsetof(__typeof__(claimed), shift));
	code_heap_count = 0;
	add_code_heap((uintptr_t)&claimed);
	assert_int_equal(code_heap_count, 1);
	claimed.high++;
	add_code_heap((uintptr_t)&claimed);
	claimed = (__typeof__(claimed)){8192, 4096, 7};
	add_code_heap((uintptr_t)&claimed);
	assert_int_equal(code_heap_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, make_heap, drop_heap),
		cmocka_unit_test_setup_teardown(test_blob_that_claims_too_much, make_heap, drop_heap),
		cmocka_unit_test_setup_teardown(test_blob_at_the_end, make_heap, drop_heap),
		cmocka_unit_test_setup_teardown(test_map_that_leads_out, make_heap, drop_heap),
		cmocka_unit_test_setup_teardown(test_map_behind_the_heap, make_heap, drop_heap),
		cmocka_unit_test_setup_teardown(test_committed, make_heap, drop_heap),
		cmocka_unit_test_setup_teardown(test_a_heap_without_end, make_heap, drop_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
