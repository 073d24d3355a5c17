/* SPDX-License-Identifier: MIT */
#include "runtime/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODE_MAP_RECENT 256 /* searched one by one; large enough that merges are rare */
#define MATCH_DEPTH 64 /* HotSpot inlines less deeply (MaxInlineLevel 15) */
#define SEARCH_MAX 1024 /* most entries in a backward search: reused memory of one large method holds fewer */
#define INLINING_BYTES 48 /* memory of the index for each pc */

/* ---- the index of inlining stacks ---- */

static uint64_t stack_hash_add(uint64_t hash, const struct duet_java_frame *frame)
{
	return hash_u64(hash ^ hash_u64(frame->method) ^ ((uint64_t)(uint32_t)frame->bci << 32));
}

static void inlining_count(struct code_map *map, uint64_t key, int64_t change)
{
	uint64_t count = 0;

	if (!map_get(&map->inlining, key, &count) && change < 0)
		return; /* it was never counted, for lack of memory */
	count += (uint64_t)change;
	if (count)
		map_put(&map->inlining, key, count); /* out of memory: the frame is shown as interpreted */
	else
		map_remove(&map->inlining, key);
}

static void inlining_index(struct code_map *map, const struct jvm_code *code, int64_t change)
{
	for (uint32_t i = 0; i < code->pc_count; i++) {
		const struct duet_code_pc *pc = &code->pcs[i];
		uint64_t hash = 0;

		if (pc->depth > MATCH_DEPTH) /* code_map_match() would not find it */
			continue;
		for (uint32_t d = 0; d < pc->depth; d++)
			hash = stack_hash_add(hash, &code->frames[pc->frame + d]);
		inlining_count(map, hash, change);
	}
}

uint32_t code_map_match(const struct code_map *map, const struct duet_java_frame *frames, uint32_t depth)
{
	uint64_t hash = 0, count;

	for (uint32_t d = 0; d < depth && d < MATCH_DEPTH; d++) {
		hash = stack_hash_add(hash, &frames[d]);
		if (map_get(&map->inlining, hash, &count))
			return d + 1;
	}
	return 0;
}

/* ---- the entries ---- */

static void code_end(struct code_map *map, struct jvm_code *code, uint64_t time_ns)
{
	if (code->unloaded_ns != UINT64_MAX)
		return;
	/* UINT64_MAX would mean that it lives; an untrusted agent may send it. */
	code->unloaded_ns = time_ns < UINT64_MAX ? time_ns : UINT64_MAX - 1;
	map->ended++;
	inlining_index(map, code, -1);
}

static size_t debug_bytes(const struct jvm_code *code)
{
	return code->pc_count * (sizeof(struct duet_code_pc) + INLINING_BYTES) +
	       code->frame_count * sizeof(struct duet_java_frame);
}

static int by_address(const void *a, const void *b)
{
	const struct jvm_code *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	return left->loaded_ns < right->loaded_ns ? -1 : left->loaded_ns > right->loaded_ns;
}

/* Merges from the end, into the room after the sorted entries. */
static int code_map_merge(struct code_map *map)
{
	size_t left = map->sorted.len, right = map->recent.len, to = left + right;
	struct jvm_code *sorted;
	int err = vec_reserve(&map->sorted, to);

	if (err < 0 || !right)
		return err;
	qsort(map->recent.items, right, sizeof(struct jvm_code), by_address);
	sorted = map->sorted.items;
	map->sorted.len = to;
	while (right)
		if (left && by_address(&sorted[left - 1], &map->recent.items[right - 1]) > 0)
			sorted[--to] = sorted[--left];
		else
			sorted[--to] = map->recent.items[--right];
	vec_clear(&map->recent);
	return 0;
}

/* Index of the first entry whose address is above `address`. */
static size_t upper_bound(const struct code_map *map, uint64_t address)
{
	size_t low = 0, high = map->sorted.len;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (map->sorted.items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool overlaps(const struct jvm_code *code, uint64_t start, uint64_t end)
{
	return code->address < end && code->end > start;
}

/* Two pieces of code never share bytes. The unload event of the older one may come later, or may be lost. */
static void end_overlapping(struct code_map *map, const struct jvm_code *newer)
{
	size_t i = upper_bound(map, newer->end - 1), end = i > SEARCH_MAX ? i - SEARCH_MAX : 0;

	while (i-- > end && map->sorted.items[i].address + map->largest > newer->address)
		if (overlaps(&map->sorted.items[i], newer->address, newer->end))
			code_end(map, &map->sorted.items[i], newer->loaded_ns);
	for (i = 0; i < map->recent.len; i++)
		if (overlaps(&map->recent.items[i], newer->address, newer->end))
			code_end(map, &map->recent.items[i], newer->loaded_ns);
}

static bool covers(const struct jvm_code *code, uint64_t pc, uint64_t time_ns, uint32_t id)
{
	if (pc < code->address || pc >= code->end)
		return false;
	if (id && (code->id || !code->method))
		return id == code->id;
	/*
	 * The load time rules nothing out: code older than the agent is published a moment after the first samples.
	 * Only the unload time does. Of the entries that remain, the caller takes the one that was unloaded first.
	 */
	return time_ns < code->unloaded_ns;
}

struct jvm_code *code_map_find(const struct code_map *map, uint64_t pc, uint64_t time_ns, uint32_t id)
{
	struct jvm_code *best = NULL;
	size_t i = upper_bound(map, pc), end = i > SEARCH_MAX ? i - SEARCH_MAX : 0;

	while (i-- > end && map->sorted.items[i].address + map->largest > pc) {
		struct jvm_code *code = &map->sorted.items[i];

		if (covers(code, pc, time_ns, id) && (!best || code->unloaded_ns < best->unloaded_ns))
			best = code;
	}
	for (i = 0; i < map->recent.len; i++) {
		struct jvm_code *code = &map->recent.items[i];

		if (covers(code, pc, time_ns, id) && (!best || code->unloaded_ns < best->unloaded_ns))
			best = code;
	}
	return best;
}

/* True if the same code is there already: two samples may have requested it before the first answer came. */
static bool is_there(const struct code_map *map, const struct jvm_code *code)
{
	const struct jvm_code *there = code_map_find(map, code->address, code->loaded_ns, code->id);

	return there && there->address == code->address && there->end == code->end && there->id == code->id &&
	       there->method == code->method && there->stub_name == code->stub_name && there->unloaded_ns == UINT64_MAX;
}

int code_map_add(struct code_map *map, const struct jvm_code *code)
{
	struct jvm_code entry = *code;
	int err = 0;

	entry.unloaded_ns = UINT64_MAX;
	if (entry.end <= entry.address || is_there(map, &entry))
		goto out;
	if (map->recent.len >= CODE_MAP_RECENT)
		err = code_map_merge(map);
	end_overlapping(map, &entry);
	if (!err && map->sorted.len + map->recent.len >= CODE_MAP_MAX_ENTRIES)
		err = -ENOSPC;
	if (!err)
		err = vec_push(&map->recent, entry);
	if (err < 0)
		goto out;
	map->debug_bytes += debug_bytes(&entry);
	if (entry.end - entry.address > map->largest)
		map->largest = entry.end - entry.address;
	inlining_index(map, &entry, 1);
	return 0;
out:
	free(entry.pcs);
	return err;
}

/* Unload events come late. By then another method may live at the address; it must not be ended. */
static bool code_unload(struct code_map *map, struct jvm_code *code, const struct duet_code_unload *unload)
{
	if (code->address != unload->address || code->method != unload->method || code->loaded_ns > unload->time_ns)
		return false;
	code_end(map, code, unload->time_ns);
	return true;
}

bool code_map_unload(struct code_map *map, const struct duet_code_unload *unload)
{
	size_t i = upper_bound(map, unload->address), end = i > SEARCH_MAX ? i - SEARCH_MAX : 0;
	bool found = false;

	while (i-- > end && map->sorted.items[i].address == unload->address)
		found |= code_unload(map, &map->sorted.items[i], unload);
	for (i = 0; i < map->recent.len; i++)
		found |= code_unload(map, &map->recent.items[i], unload);
	return found;
}

/* ---- forgetting ---- */

size_t code_map_bytes(const struct code_map *map)
{
	return map->debug_bytes + (map->sorted.len + map->recent.len) * sizeof(struct jvm_code);
}

static void code_free(struct code_map *map, struct jvm_code *code)
{
	map->debug_bytes -= debug_bytes(code);
	if (code->unloaded_ns == UINT64_MAX)
		inlining_index(map, code, -1);
	free(code->pcs);
}

/* Frees entries that ended before time_ns, and those last used before the round. */
static void forget(struct code_map *map, uint64_t time_ns, uint32_t round)
{
	size_t kept = 0;

	code_map_merge(map); /* when out of memory, the recent entries are checked next time */
	for (size_t i = 0; i < map->sorted.len; i++) {
		struct jvm_code *code = &map->sorted.items[i];

		if (code->unloaded_ns < time_ns || code->used < round)
			code_free(map, code);
		else
			map->sorted.items[kept++] = *code;
	}
	map->sorted.len = kept;
}

void code_map_forget(struct code_map *map, uint64_t time_ns)
{
	forget(map, time_ns, 0);
}

void code_map_forget_unused(struct code_map *map, uint32_t round)
{
	forget(map, 0, round);
}

void code_map_release(struct code_map *map)
{
	for (size_t i = 0; i < map->sorted.len; i++)
		free(map->sorted.items[i].pcs);
	for (size_t i = 0; i < map->recent.len; i++)
		free(map->recent.items[i].pcs);
	vec_release(&map->sorted);
	vec_release(&map->recent);
	map_release(&map->inlining);
}

void code_map_move_strings(struct code_map *map, struct intern_move *move)
{
	for (size_t i = 0; i < map->sorted.len; i++)
		map->sorted.items[i].stub_name = intern_moved(move, map->sorted.items[i].stub_name);
	for (size_t i = 0; i < map->recent.len; i++)
		map->recent.items[i].stub_name = intern_moved(move, map->recent.items[i].stub_name);
}
