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

/* The row in force at `pc`, which lies in the walk's mapping; NULL when its file has none. */
static __always_inline const struct duet_unwind_row *unwind_find_row(const struct unwind_walk *walk, u64 pc)
{
	const struct duet_unwind_mapping *mapping = &walk->mapping;
	u64 offset = pc - mapping->base;
	u32 index = offset >> DUET_UNWIND_PAGE_SHIFT, key = mapping->module;
	struct duet_unwind_module *module = bpf_map_lookup_elem(&unwind_modules, &key);
	struct duet_unwind_page *page;

	if (!module || offset > UINT32_MAX || index >= module->pages)
		return NULL;
	key = module->first_page + index;
	page = bpf_map_lookup_elem(&unwind_pages, &key);
	if (!page)
		return NULL;
	return walk_search_rows(&walk->cursor, module->first_row + page->first, module->first_row + page->end, offset);
}

/* What the step comes to, as in duet_walk.h. */
static __always_inline walk_result unwind_native_step(struct duet_scratch *room)
{
	struct unwind_walk *walk = &room->walk;
	u64 pc = walk->cursor.pc - walk->cursor.is_return;
	const struct duet_unwind_row *row = NULL;
	bool is_known = unwind_find_mapping(walk, pc);

	if (is_known)
		row = unwind_find_row(walk, pc);
	else if (!walk->cursor.is_guess) /* a guess may lead anywhere */
		room->sample.flags |= DUET_SAMPLE_UNKNOWN_CODE;
	return walk_native_step(&walk->cursor, row, is_known && walk->mapping.is_file, &room->sample.guessed_depth);
}

#endif
