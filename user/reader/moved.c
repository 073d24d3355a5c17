/* SPDX-License-Identifier: MIT */
#include "reader/objects.h"

#include <stddef.h>
#include <string.h>

#include "hotspot/vmstructs.h"
#include "reader/memory.h"

#define WORD sizeof(uintptr_t)
#define GRANULE_SHIFT 21 /* ZGranuleSizeShift: a table has an entry for each 2 MB of the heap's addresses */
#define MAPS_MAX 2 /* one for each generation */
#define HEAP_MAX_BYTES (256u << 10) /* of the object that describes the heap; JDK 25 has some 10 kB */
#define GRANULES_MAX (1ull << 28)
#define ENTRIES_MAX (1ull << 20)
#define STEPS_MAX 256 /* entries that are looked at for an object; half of a table is empty */
/* An entry (zForwardingEntry.hpp): whether it is in use, the new offset, and the number of the object in its page. */
#define ENTRY_USED 1u
#define ENTRY_TO_SHIFT 1
#define ENTRY_TO_MASK ((1ull << 45) - 1)
#define ENTRY_NUMBER_SHIFT 46

static struct {
	uintptr_t heap_address; /* Universe::_collectedHeap */
	struct offset heap, page_table, page_map, map_array;
	struct offset extent, extent_start, shift, entries, entries_length;
} layout;

static struct {
	uintptr_t offset_mask;
	uintptr_t maps[MAPS_MAX]; /* ZForwarding *[], by granule */
	size_t map_count;
	uint64_t granules;
	size_t table_bytes; /* sizeof(ZForwarding), which its entries follow */
} learnt;

static const struct vmstructs_row rows[] = {
	{"Universe", "_collectedHeap", NULL, &layout.heap_address},
	{"ZCollectedHeap", "_heap", &layout.heap, NULL},
	{"ZHeap", "_page_table", &layout.page_table, NULL},
	{"ZPageTable", "_map", &layout.page_map, NULL},
	{"ZGranuleMapForPageTable", "_map", &layout.map_array, NULL},
	{"ZForwarding", "_virtual", &layout.extent, NULL},
	{"ZVirtualMemory", "_start", &layout.extent_start, NULL},
	{"ZForwarding", "_object_alignment_shift", &layout.shift, NULL},
	{"ZForwarding", "_entries", &layout.entries, NULL},
	{"ZAttachedArrayForForwarding", "_length", &layout.entries_length, NULL},
};

static bool layout_is_whole(void)
{
	const struct offset *const needed[] = {&layout.heap,	     &layout.page_table,   &layout.page_map,
					       &layout.map_array,    &layout.extent,	   &layout.extent_start,
					       &layout.shift,	     &layout.entries,	   &layout.entries_length};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!needed[i]->known)
			return false;
	return layout.heap_address && layout.map_array.value >= WORD;
}

/*
 * No table says where the heap's object has its maps of moved objects. But each map has its number of granules in front
 * of the array, and that of the pages, which is exported, has the same number.
 */
static void find_maps(uintptr_t heap, size_t heap_bytes)
{
	uintptr_t pages = heap + layout.page_table.value + layout.page_map.value + layout.map_array.value;

	learnt.granules = memory_word(pages - WORD);
	if (!learnt.granules || learnt.granules > GRANULES_MAX)
		return;
	for (uintptr_t at = heap + WORD; at + WORD <= heap + heap_bytes && learnt.map_count < MAPS_MAX; at += WORD)
		if (at != pages && memory_word(at - WORD) == learnt.granules && memory_word(at))
			learnt.maps[learnt.map_count++] = memory_word(at);
}

bool moved_learn(uintptr_t offset_mask)
{
	uintptr_t heap;
	size_t heap_bytes;

	memset(&layout, 0, sizeof(layout));
	memset(&learnt, 0, sizeof(learnt));
	if (vmstructs_read(rows, sizeof(rows) / sizeof(rows[0])) || !layout_is_whole())
		return false;
	heap = memory_word(layout.heap_address);
	heap_bytes = vmstructs_type_bytes("ZHeap");
	learnt.table_bytes = (vmstructs_type_bytes("ZForwarding") + WORD - 1) / WORD * WORD;
	learnt.offset_mask = offset_mask;
	if (heap && heap_bytes <= HEAP_MAX_BYTES && learnt.table_bytes)
		find_maps(heap + layout.heap.value, heap_bytes);
	return learnt.map_count;
}

/* ZHash::uint32_to_uint32(): where the search for an object begins. */
static uint32_t hash_number(uint32_t number)
{
	uint32_t hash = (number << 15) - number - 1;

	hash ^= hash >> 12;
	hash += hash << 2;
	hash ^= hash >> 4;
	hash *= 2057;
	return hash ^ hash >> 16;
}

/* Returns the new offset of an object, or 0. `table` is the ZForwarding of its page. */
static uint64_t find_in(uintptr_t table, uint64_t offset)
{
	uint64_t start = memory_word(table + layout.extent.value + layout.extent_start.value);
	uint64_t length = memory_word(table + layout.entries.value + layout.entries_length.value);
	uint64_t number = (offset - start) >> (memory_word(table + layout.shift.value) & 63), at;

	if (offset < start || length & (length - 1) || length > ENTRIES_MAX)
		return 0;
	at = hash_number((uint32_t)number);
	for (int i = 0; i < STEPS_MAX && length; i++, at++) {
		uint64_t entry = memory_word(table + learnt.table_bytes + (at & (length - 1)) * WORD);

		if (!(entry & ENTRY_USED))
			return 0;
		if (entry >> ENTRY_NUMBER_SHIFT == number)
			return entry >> ENTRY_TO_SHIFT & ENTRY_TO_MASK;
	}
	return 0;
}

uintptr_t moved_to(uintptr_t address)
{
	uint64_t offset = address & learnt.offset_mask, granule = offset >> GRANULE_SHIFT, to = 0;

	for (size_t i = 0; i < learnt.map_count && granule < learnt.granules && !to; i++) {
		uintptr_t table = memory_word(learnt.maps[i] + granule * WORD);

		to = table ? find_in(table, offset) : 0;
	}
	return to ? (address & ~learnt.offset_mask) | to : address;
}
