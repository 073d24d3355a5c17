/* SPDX-License-Identifier: GPL-2.0-only */
/* The row for a step in native code: pc -> mapping -> file -> row. */
#pragma once

#include "unwind.bpf.h"

/* See duet_unwind.h. */
DUET_MAPPED_ARRAY(unwind_pages, DUET_UNWIND_MAX_PAGES, struct duet_unwind_page);
DUET_MAPPED_ARRAY(unwind_modules, DUET_UNWIND_MAX_MODULES, struct duet_unwind_module);
DUET_MAPPED_ARRAY(unwind_mappings, DUET_UNWIND_MAX_MAPPINGS, struct duet_unwind_mapping);
DUET_MAP(unwind_processes, HASH, DUET_UNWIND_MAX_PROCESSES, u32, struct duet_unwind_process);
DUET_MAP(unwind_files, HASH, 4096, struct duet_mapped_file, struct duet_mapped_rows);
/* Key: tgid. */
DUET_MAP(unwind_learnt, LRU_HASH, 1024, u32, struct unwind_learnt);

/*
 * A child starts with the mappings that its parent had at the fork. So the parent's slice of the tables is valid for
 * both as long as the parent's slice does not change. The loader learns of a child only from the child's first sample,
 * and many children have ended by then.
 */
struct unwind_heir {
	u64 start_ticks; /* of the child */
	u64 generation; /* of the slice */
	u32 from; /* tgid of the process that has the slice */
	u32 reserved;
};

DUET_MAP(unwind_heirs, LRU_HASH, 4096, u32, struct unwind_heir);

/* Returns the slice that the loader made for this process, or NULL. */
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

/* Returns the slice of the process that this one was forked from, directly or through others, or NULL. */
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

static __always_inline const struct duet_unwind_mapping *walk_mapping(const void *at, u32 index)
{
	return bpf_map_lookup_elem(&unwind_mappings, &index);
}

/* Marks the file as used, so that the loader sees whose rows are needed. */
static __always_inline const struct duet_unwind_module *walk_module(const void *at, u32 index)
{
	struct duet_unwind_module *module = bpf_map_lookup_elem(&unwind_modules, &index);

	if (module && !module->used) /* written only once: otherwise the CPUs would compete for the cache line */
		module->used = 1;
	return module;
}

static __always_inline const struct duet_unwind_page *walk_page(const void *at, u32 index)
{
	return bpf_map_lookup_elem(&unwind_pages, &index);
}

#include "walk/tables.h"

/* Sets room->mapping to the mapping that holds `pc`. Returns false if there is none. */
static __always_inline bool unwind_find_mapping(struct duet_scratch *room, u64 pc)
{
	const struct duet_unwind_mapping *mapping;

	if (walk_is_inside(&room->mapping, pc))
		return true;
	mapping = walk_find_mapping(&room->cursor, room->process.first, room->process.mappings, pc);
	if (mapping)
		room->mapping = *mapping;
	return mapping != NULL;
}

/* Returns the cache entry for this pc: the one that holds it, or one that may be overwritten; NULL without a cache. */
static __always_inline struct unwind_found *unwind_found_at(u64 pc, u32 level)
{
	struct unwind_known *all = unwind_known_get(level);
	u32 index = unwind_known_index(pc, UNWIND_KNOWN_NATIVE);

	if (!all)
		return NULL;
	if (all->native[index].pc != pc && all->native[index + 1].pc == pc)
		return &all->native[index + 1];
	if (all->native[index].pc != pc)
		all->native[index + 1] = all->native[index];
	return &all->native[index];
}

/*
 * Sets room->unpublished to the mapping that holds the cursor's pc, if the kernel returns it and the tables have the
 * file's rows. Returns 0 if not. Defined in unwind_vma.bpf.c, or in unwind_no_vma.bpf.c for kernels that refuse to load
 * the former.
 */
int unwind_find_unpublished(u32 level);

/*
 * Defined in unwind.bpf.c. Fills room->found from the maps: mapping, file, page, row. Returns 0 if there is no row.
 * room->found.pc is 0 if the row must not be kept for other samples.
 */
int unwind_look_up(u32 level);

/*
 * Likewise, from the cache if possible. The cached row is a copy, which is valid as long as its slice is in use.
 * Returns false if there is no row.
 */
static __always_inline bool unwind_find(struct duet_scratch *room)
{
	u64 pc = room->cursor.pc - room->cursor.is_return;
	struct unwind_found *kept = room->cursor.is_return ? unwind_found_at(pc, room->level) : NULL;

	if (kept && kept->pc == pc && kept->generation == room->process.generation) {
		room->found = *kept;
		(void)walk_module(&room->cursor, kept->module);
		return true;
	}
	if (!unwind_look_up(room->level))
		return false;
	if (kept && room->found.pc)
		*kept = room->found;
	return true;
}
