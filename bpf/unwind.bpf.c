// SPDX-License-Identifier: GPL-2.0-only
/* The turns of the walk. */
#include "unwind_java.bpf.h"
#include "unwind_native.bpf.h"

__noinline int unwind_look_up(void)
{
	struct duet_scratch *room = scratch_get();
	const struct duet_unwind_row *row;
	struct unwind_walk *walk;
	u64 pc;

	if (!room)
		return 0;
	walk = &room->walk;
	pc = walk->cursor.pc - walk->cursor.is_return;
	walk->found.is_file = 0;
	if (!unwind_find_mapping(walk, pc)) {
		if (!walk->cursor.is_guess) /* a guess may lead anywhere */
			room->sample.flags |= DUET_SAMPLE_UNKNOWN_CODE;
		return 0;
	}
	walk->found.pc = pc;
	walk->found.generation = walk->process.generation;
	walk->found.module = walk->mapping.module;
	walk->found.is_file = walk->mapping.is_file;
	row = unwind_find_row(walk, pc);
	if (row)
		walk->found.row = *row;
	return row != NULL;
}

/* Apart, so that what it keeps on the stack does not stand there with the Java walk's: 512 bytes are for all. */
__noinline int unwind_native_turn(void)
{
	struct duet_scratch *room = scratch_get();
	u64 pc;

	if (!room)
		return DUET_WALK_NO_ROW;
	pc = room->walk.cursor.pc;
	/* Callers are named by the byte in front of their address; what a handler interrupted must be by its own. */
	if (!unwind_note(room, pc + (room->walked && !room->walk.cursor.is_return), 0))
		return DUET_WALK_DEPTH;
	return unwind_native_step(room);
}

static __always_inline walk_result unwind_turn(struct duet_scratch *room)
{
	u64 pc = room->walk.cursor.pc;

	if (!walk_java_owns(&room->java, pc))
		return unwind_native_turn();
	if (!unwind_known_step(&room->java, &room->walk.cursor))
		return unwind_java_turn();
	return unwind_note(room, pc, room->java.code_id) ? DUET_WALK_NONE : DUET_WALK_DEPTH;
}

__noinline int unwind_round(void)
{
	struct duet_scratch *room = scratch_get();

	if (!room)
		return 1;
	for (u32 i = 0; i < UNWIND_TURNS; i++) {
		walk_result end = unwind_turn(room);

		if (end == DUET_WALK_NONE)
			continue;
		room->sample.walk_end = end;
		return 1;
	}
	return 0;
}

__noinline int unwind_order_root(void)
{
	struct duet_scratch *room = scratch_get();
	u32 kernel;

	if (!room)
		return 0;
	kernel = room->sample.kernel_depth;
	if (kernel > DUET_MAX_STACK)
		return 0;
	for (u32 i = 0; i < DUET_ROOT_FRAMES; i++) {
		room->root[i] = room->sample.stack[kernel + DUET_LEAF_FRAMES + i];
		room->root_ids[i] = room->code_ids[DUET_LEAF_FRAMES + i];
	}
	for (u32 i = 0; i < DUET_ROOT_FRAMES; i++) {
		u32 oldest = (room->walked + i) % DUET_ROOT_FRAMES;

		room->sample.stack[kernel + DUET_LEAF_FRAMES + i] = room->root[oldest];
		room->code_ids[DUET_LEAF_FRAMES + i] = room->root_ids[oldest];
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
