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

/*
 * What a child has mapped is what its parent had when it forked: as long as that one's slice is the same, it is good
 * for both. The loader has heard of the child when its first sample is read; many have ended by then.
 */
struct unwind_heir {
	u64 start_ticks; /* of the child */
	u64 generation; /* of the slice */
	u32 from; /* whose slice it is */
	u32 reserved;
};

struct duet_unwind_heirs_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct unwind_heir);
};
extern struct duet_unwind_heirs_map unwind_heirs SEC(".maps");

/* The slice that was made for this process. */
static __always_inline struct duet_unwind_process *unwind_own_tables(u32 tgid, u64 start_ticks)
{
	struct duet_unwind_process *process = bpf_map_lookup_elem(&unwind_processes, &tgid);

	return process && process->start_ticks == start_ticks ? process : NULL;
}

static __always_inline struct unwind_heir *unwind_find_heir(u32 tgid, u64 start_ticks)
{
	struct unwind_heir *heir = bpf_map_lookup_elem(&unwind_heirs, &tgid);

	return heir && heir->start_ticks == start_ticks ? heir : NULL;
}

/* Or that of the process that it was forked from. */
static __always_inline struct duet_unwind_process *unwind_inherited_tables(u32 tgid, u64 start_ticks)
{
	struct unwind_heir *heir = unwind_find_heir(tgid, start_ticks);
	struct duet_unwind_process *process;
	u32 from;

	if (!heir)
		return NULL;
	from = heir->from;
	process = bpf_map_lookup_elem(&unwind_processes, &from);
	return process && process->generation == heir->generation ? process : NULL;
}

static __always_inline void unwind_bequeath(u32 tgid, u64 start_ticks, u32 child_tgid, u64 child_start_ticks)
{
	struct unwind_heir heir = {.start_ticks = child_start_ticks, .from = tgid}, *before;
	struct duet_unwind_process *process = unwind_own_tables(tgid, start_ticks);

	if (process) {
		heir.generation = process->generation;
	} else {
		before = unwind_find_heir(tgid, start_ticks);
		if (!before)
			return;
		heir.generation = before->generation;
		heir.from = before->from;
	}
	bpf_map_update_elem(&unwind_heirs, &child_tgid, &heir, BPF_ANY);
}

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

/* Where what is found for this pc is kept, or was for others. */
static __always_inline struct unwind_found *unwind_found_at(const struct unwind_walk *walk, u64 pc)
{
	struct unwind_known *all = unwind_known_get();
	u32 index = unwind_known_index(pc, UNWIND_KNOWN_NATIVE);

	if (!all)
		return NULL;
	if (all->native[index].pc != pc && all->native[index + 1].pc == pc)
		return &all->native[index + 1];
	if (all->native[index].pc != pc)
		all->native[index + 1] = all->native[index];
	return &all->native[index];
}

/* In unwind.bpf.c: walk->found from the maps, by mapping, file, page. 0 when there is no row. */
int unwind_look_up(void);

/* The same, or what was found before. A row is a copy: it is good as long as its slice is in force. */
static __always_inline bool unwind_find(struct unwind_walk *walk)
{
	u64 pc = walk->cursor.pc - walk->cursor.is_return;
	struct unwind_found *kept = walk->cursor.is_return ? unwind_found_at(walk, pc) : NULL;

	if (kept && kept->pc == pc && kept->generation == walk->process.generation) {
		walk->found = *kept;
		unwind_use_module(kept->module);
		return true;
	}
	if (!unwind_look_up())
		return false;
	if (kept)
		*kept = walk->found;
	return true;
}

/* What the step comes to, as in duet_walk.h. */
static __always_inline walk_result unwind_native_step(struct duet_scratch *room)
{
	struct unwind_walk *walk = &room->walk;
	bool has_row = unwind_find(walk);

	return walk_native_step(&walk->cursor, has_row ? &walk->found.row : NULL, walk->found.code,
				&room->sample.guessed_depth);
}

#endif
