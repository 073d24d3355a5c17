/* SPDX-License-Identifier: MIT */
#include "runtime/code_map.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/inlining.h"

#define CODE_MAP_RECENT 256 /* searched one by one; large enough that merges are rare */
/* most compilations of one method that are searched for a stack: more than HotSpot keeps at a time */
#define MATCH_COMPILATIONS 64
#define SEARCH_MAX 1024 /* most entries in a backward search: reused memory of one large method holds fewer */

/* ---- which compilations have a stack ---- */

/* Adds a live entry to the list of its method's. */
static int inlining_link(struct code_map *map, const struct jvm_code *code)
{
	struct inlining *inlining = code->inlining, *older = map_get_ptr(&map->compiled, code->method);

	if (!inlining)
		return 0;
	if (map_put_ptr(&map->compiled, code->method, inlining) < 0)
		return -ENOMEM;
	inlining->newer = NULL;
	inlining->older = older;
	if (older)
		older->newer = inlining;
	return 0;
}

static void inlining_unlink(struct code_map *map, const struct jvm_code *code)
{
	struct inlining *inlining = code->inlining;

	if (!inlining)
		return;
	if (inlining->older)
		inlining->older->newer = inlining->newer;
	if (inlining->newer)
		inlining->newer->older = inlining->older;
	else if (inlining->older)
		(void)map_put_ptr(&map->compiled, code->method, inlining->older); /* the key exists: no growth */
	else
		map_remove(&map->compiled, code->method);
}

/* True if there is live code of the last frame's method with this inlining stack. */
static bool is_compiled(const struct code_map *map, uint64_t method, uint64_t hash)
{
	const struct inlining *inlining = map_get_ptr(&map->compiled, method);

	for (int i = 0; inlining && i < MATCH_COMPILATIONS; i++, inlining = inlining->older)
		if (inlining_has(inlining, hash))
			return true;
	return false;
}

uint32_t code_map_match(const struct code_map *map, const struct duet_java_frame *frames, uint32_t depth)
{
	uint64_t hash = 0;

	for (uint32_t d = 0; d < depth && d < INLINING_MATCH_DEPTH; d++) {
		hash = inlining_hash(hash, &frames[d]);
		if (is_compiled(map, frames[d].method, hash))
			return d + 1;
	}
	return 0;
}

static void code_end(struct code_map *map, struct jvm_code *code, uint64_t time_ns)
{
	if (code->unloaded_ns != UINT64_MAX)
		return;
	/* UINT64_MAX would mean that it lives; an untrusted agent may send it. */
	code->unloaded_ns = time_ns < UINT64_MAX ? time_ns : UINT64_MAX - 1;
	map->ended++;
	inlining_unlink(map, code);
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

static bool overlaps(const struct jvm_code *code, uint64_t start, uint64_t end)
{
	return code->address < end && code->end > start;
}

/* Two pieces of code never share bytes. The unload event of the older one may come later, or may be lost. */
static void end_overlapping(struct code_map *map, const struct jvm_code *newer)
{
	size_t i = vec_up_to(&map->sorted, newer->end - 1), end = i > SEARCH_MAX ? i - SEARCH_MAX : 0;

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
	 * The load time is not compared: code older than the agent is published a moment after the first samples. Only
	 * the unload time is. Of the entries that remain, the caller takes the one that was unloaded first.
	 */
	return time_ns < code->unloaded_ns;
}

struct jvm_code *code_map_find(const struct code_map *map, uint64_t pc, uint64_t time_ns, uint32_t id)
{
	struct jvm_code *best = NULL;
	size_t i = vec_up_to(&map->sorted, pc), end = i > SEARCH_MAX ? i - SEARCH_MAX : 0;

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
		err = vec_reserve(&map->recent, map->recent.len + 1);
	if (!err)
		err = inlining_link(map, &entry);
	if (err < 0)
		goto out;
	(void)vec_push(&map->recent, entry); /* there is room */
	map->inlining_bytes += inlining_bytes(entry.inlining);
	if (entry.end - entry.address > map->largest)
		map->largest = entry.end - entry.address;
	return 0;
out:
	free(entry.inlining);
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
	size_t i = vec_up_to(&map->sorted, unload->address), end = i > SEARCH_MAX ? i - SEARCH_MAX : 0;
	bool found = false;

	while (i-- > end && map->sorted.items[i].address == unload->address)
		found |= code_unload(map, &map->sorted.items[i], unload);
	for (i = 0; i < map->recent.len; i++)
		found |= code_unload(map, &map->recent.items[i], unload);
	return found;
}

size_t code_map_bytes(const struct code_map *map)
{
	return map->inlining_bytes + map_bytes(&map->compiled) +
	       (map->sorted.len + map->recent.len) * sizeof(struct jvm_code);
}

void code_map_forget(struct code_map *map, uint64_t time_ns, uint32_t round)
{
	size_t kept = 0;

	code_map_merge(map); /* when out of memory, the recent entries are checked next time */
	for (size_t i = 0; i < map->sorted.len; i++) {
		struct jvm_code *code = &map->sorted.items[i];

		if (code->unloaded_ns >= time_ns && code->used >= round) {
			map->sorted.items[kept++] = *code;
			continue;
		}
		map->inlining_bytes -= inlining_bytes(code->inlining);
		if (code->unloaded_ns == UINT64_MAX)
			inlining_unlink(map, code);
		free(code->inlining);
	}
	map->sorted.len = kept;
}

void code_map_release(struct code_map *map)
{
	for (size_t i = 0; i < map->sorted.len; i++)
		free(map->sorted.items[i].inlining);
	for (size_t i = 0; i < map->recent.len; i++)
		free(map->recent.items[i].inlining);
	vec_release(&map->sorted);
	vec_release(&map->recent);
	map_release(&map->compiled);
}

void code_map_move_strings(struct code_map *map, struct intern_move *move)
{
	for (size_t i = 0; i < map->sorted.len; i++)
		map->sorted.items[i].stub_name = intern_moved(move, map->sorted.items[i].stub_name);
	for (size_t i = 0; i < map->recent.len; i++)
		map->recent.items[i].stub_name = intern_moved(move, map->recent.items[i].stub_name);
}
