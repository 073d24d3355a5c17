/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Finds the unwind row for a pc in the flat arrays of duet_unwind.h: mapping, module, page, rows. The same code runs in
 * BPF, in the agent, and in the loader, which walks threads that sleep.
 *
 * A file that includes this defines first, as functions or macros, in addition to walk_row() of walk/native.h,
 *
 *	const struct duet_unwind_mapping *walk_mapping(at, uint32_t index)
 *	const struct duet_unwind_module *walk_module(at, uint32_t index)
 *		may also mark the file as used
 *	const struct duet_unwind_page *walk_page(at, uint32_t index)
 *
 * Each returns an element of an array, or NULL when the array has none with this index. `at` is as for walk_row().
 * Another process may change the arrays at any time. So every index is checked when it is used.
 */
#pragma once

#include "duet_types.h"
#include "duet_unwind.h"
#include "walk/native.h"

#define WALK_MAPPING_STEPS 13 /* steps of a binary search in DUET_UNWIND_PROCESS_MAPPINGS */

static inline int walk_is_inside(const struct duet_unwind_mapping *mapping, uint64_t pc)
{
	return pc >= mapping->start && pc < mapping->end;
}

/* Returns the mapping that holds `pc` among the `count` ones from `first` on, or NULL. */
static inline const struct duet_unwind_mapping *walk_find_mapping(const struct unwind_cursor *cursor, uint32_t first,
								  uint32_t count, uint64_t pc)
{
	uint32_t low = first, high = first + count;

	for (uint32_t i = 0; i < WALK_MAPPING_STEPS && low < high; i++) {
		uint32_t middle = low + (high - low) / 2;
		const struct duet_unwind_mapping *mapping = walk_mapping(cursor, middle);

		if (!mapping)
			return 0;
		if (walk_is_inside(mapping, pc))
			return mapping;
		if (mapping->start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* Returns the row that is valid at `pc`, which lies in `mapping`; NULL if its file has none. */
static inline const struct duet_unwind_row *walk_find_row(const struct unwind_cursor *cursor,
							  const struct duet_unwind_mapping *mapping, uint64_t pc)
{
	uint64_t offset = pc - mapping->base;
	uint32_t index = (uint32_t)(offset >> DUET_UNWIND_PAGE_SHIFT);
	const struct duet_unwind_module *module = walk_module(cursor, mapping->module);
	const struct duet_unwind_page *page;

	if (!module || offset > UINT32_MAX || index >= module->pages)
		return 0;
	page = walk_page(cursor, module->first_page + index);
	if (!page)
		return 0;
	return walk_search_rows(cursor, module->first_row + page->first, module->first_row + page->end,
				(uint32_t)offset);
}
