// SPDX-License-Identifier: GPL-2.0-only
/* Parts of walk/loop.h that are separate functions. */
#include "unwind_loop.bpf.h"

/*
 * Returns the mapping that holds `pc`, or NULL if neither the loader nor the kernel has returned one with known rows.
 */
static __always_inline const struct duet_unwind_mapping *mapping_at(struct duet_scratch *room, u64 pc)
{
	if (unwind_find_mapping(room, pc))
		return &room->mapping;
	room->sample.flags |= walk_unmapped_flag(&room->cursor);
	if (walk_is_inside(&room->unpublished, pc) || unwind_find_unpublished(room->level))
		return &room->unpublished;
	return NULL;
}

__noinline int unwind_look_up(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	const struct duet_unwind_mapping *mapping;
	const struct duet_unwind_row *row;
	u64 pc;

	if (!room)
		return 0;
	pc = room->cursor.pc - room->cursor.is_return;
	room->found.code = DUET_CODE_UNKNOWN;
	mapping = mapping_at(room, pc);
	if (!mapping)
		return 0;
	room->found.pc = mapping == &room->mapping ? pc : 0;
	room->found.generation = room->process.generation;
	room->found.module = mapping->module;
	room->found.code = mapping->code;
	row = walk_find_row(&room->cursor, mapping, pc);
	if (row)
		room->found.row = *row;
	return row != NULL;
}

__noinline int unwind_native_turn(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? walk_native_turn(room) : DUET_WALK_NO_ROW;
}

__noinline int unwind_turn(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? walk_turn(room) : DUET_WALK_NO_ROW;
}

__noinline int unwind_round(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? walk_round(room) : 1;
}

__noinline int unwind_order_root(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	if (room)
		walk_order_root(room);
	return 0;
}

__noinline int unwind_hand_over(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	if (room)
		walk_hand_over(room);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
