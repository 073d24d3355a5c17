/* SPDX-License-Identifier: GPL-2.0-only */
/* One step through native code: pc -> mapping -> file -> row -> caller; the frame pointer where there is no row. */
#ifndef DUET_UNWIND_NATIVE_BPF_H
#define DUET_UNWIND_NATIVE_BPF_H

#include "unwind.bpf.h"

/* The loader writes these through memory maps, see duet_unwind.h. */
struct duet_unwind_pages_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DUET_UNWIND_MAX_PAGES);
	__type(key, u32);
	__type(value, struct duet_unwind_page);
};
extern struct duet_unwind_pages_map unwind_pages SEC(".maps");

struct duet_unwind_modules_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DUET_UNWIND_MAX_MODULES);
	__type(key, u32);
	__type(value, struct duet_unwind_module);
};
extern struct duet_unwind_modules_map unwind_modules SEC(".maps");

struct duet_unwind_mappings_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DUET_UNWIND_MAX_MAPPINGS);
	__type(key, u32);
	__type(value, struct duet_unwind_mapping);
};
extern struct duet_unwind_mappings_map unwind_mappings SEC(".maps");

struct duet_unwind_processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_UNWIND_MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct duet_unwind_process);
};
extern struct duet_unwind_processes_map unwind_processes SEC(".maps");

/* What was found for a return address. A thread's outer callers are the same sample after sample. */
struct unwind_found {
	u64 pc;
	u64 generation; /* of the slice by which it was found */
	struct duet_unwind_row row;
	u32 module;
	u32 is_file;
};

#define UNWIND_FOUND_BITS 8

struct duet_unwind_found_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << UNWIND_FOUND_BITS);
	__type(key, u32);
	__type(value, struct unwind_found);
};
extern struct duet_unwind_found_map unwind_found SEC(".maps");

#define UNWIND_MAPPING_STEPS 13 /* halvings of DUET_UNWIND_PROCESS_MAPPINGS */

static __always_inline bool unwind_is_inside(const struct duet_unwind_mapping *mapping, u64 pc)
{
	return pc >= mapping->start && pc < mapping->end;
}

/* Makes walk->mapping the one that holds `pc`; false when there is none. */
static __always_inline bool unwind_find_mapping(struct unwind_walk *walk, u64 pc)
{
	u32 low = walk->process.first, high = low + walk->process.mappings;

	if (unwind_is_inside(&walk->mapping, pc))
		return true;
	for (u32 i = 0; i < UNWIND_MAPPING_STEPS && low < high; i++) {
		u32 middle = low + (high - low) / 2;
		struct duet_unwind_mapping *mapping = bpf_map_lookup_elem(&unwind_mappings, &middle);

		if (!mapping)
			return false;
		if (unwind_is_inside(mapping, pc)) {
			walk->mapping = *mapping;
			return true;
		}
		if (mapping->start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* The loader learns from it whose rows are needed. */
static __always_inline struct duet_unwind_module *unwind_use_module(u32 key)
{
	struct duet_unwind_module *module = bpf_map_lookup_elem(&unwind_modules, &key);

	if (module && !module->used) /* else CPUs would take the cache line from each other */
		module->used = 1;
	return module;
}

/* The row in force at `pc`, which lies in the walk's mapping; NULL when its file has none. */
static __always_inline const struct duet_unwind_row *unwind_find_row(const struct unwind_walk *walk, u64 pc)
{
	const struct duet_unwind_mapping *mapping = &walk->mapping;
	u64 offset = pc - mapping->base;
	u32 index = offset >> DUET_UNWIND_PAGE_SHIFT, key = mapping->module;
	struct duet_unwind_module *module = unwind_use_module(key);
	struct duet_unwind_page *page;

	if (!module || offset > UINT32_MAX || index >= module->pages)
		return NULL;
	key = module->first_page + index;
	page = bpf_map_lookup_elem(&unwind_pages, &key);
	if (!page)
		return NULL;
	return walk_search_rows(&walk->cursor, module->first_row + page->first, module->first_row + page->end, offset);
}

/* Where what is found for this pc is kept, or was for another. */
static __always_inline struct unwind_found *unwind_found_at(const struct unwind_walk *walk, u64 pc)
{
	u32 key = ((u32)pc + (u32)walk->process.generation) * 0x9e3779b1u >> (32 - UNWIND_FOUND_BITS);

	return bpf_map_lookup_elem(&unwind_found, &key);
}

/* From the maps: mapping, file, page, row. False when there is no row. */
static __always_inline bool unwind_look_up(struct duet_scratch *room, u64 pc, struct unwind_found *ret)
{
	struct unwind_walk *walk = &room->walk;
	const struct duet_unwind_row *row;

	if (!unwind_find_mapping(walk, pc)) {
		if (!walk->cursor.is_guess) /* a guess may lead anywhere */
			room->sample.flags |= DUET_SAMPLE_UNKNOWN_CODE;
		return false;
	}
	ret->is_file = walk->mapping.is_file;
	ret->module = walk->mapping.module;
	row = unwind_find_row(walk, pc);
	if (row)
		walk->row = *row;
	return row;
}

/* The same, or what was found before. A row is a copy: it is good as long as its slice is in force. */
static __always_inline bool unwind_find(struct duet_scratch *room, struct unwind_found *ret)
{
	struct unwind_walk *walk = &room->walk;
	u64 pc = walk->cursor.pc - walk->cursor.is_return;
	struct unwind_found *found = walk->cursor.is_return ? unwind_found_at(walk, pc) : NULL;

	if (found && found->pc == pc && found->generation == walk->process.generation) {
		unwind_use_module(found->module);
		ret->is_file = found->is_file;
		walk->row = found->row;
		return true;
	}
	if (!unwind_look_up(room, pc, ret))
		return false;
	if (found) {
		found->pc = pc;
		found->generation = walk->process.generation;
		found->row = walk->row;
		found->module = ret->module;
		found->is_file = ret->is_file;
	}
	return true;
}

/* What the step comes to, as in duet_walk.h. */
static __always_inline walk_result unwind_native_step(struct duet_scratch *room)
{
	struct unwind_walk *walk = &room->walk;
	struct unwind_found found = {};
	bool has_row = unwind_find(room, &found);

	return walk_native_step(&walk->cursor, has_row ? &walk->row : NULL, found.is_file,
				&room->sample.guessed_depth);
}

#endif
