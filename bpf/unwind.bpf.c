// SPDX-License-Identifier: GPL-2.0-only
/* The loop of the walk: rounds of turns, one frame a turn. */
#include "unwind_java.bpf.h"
#include "unwind_native.bpf.h"

__noinline int unwind_look_up(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	const struct duet_unwind_row *row;
	struct unwind_walk *walk;
	u64 pc;

	if (!room)
		return 0;
	walk = &room->walk;
	pc = walk->cursor.pc - walk->cursor.is_return;
	walk->found.code = DUET_CODE_UNKNOWN;
	if (!unwind_find_mapping(walk, pc)) {
		if (!walk->cursor.is_guess) /* a frame found by a guess may have any pc */
			room->sample.flags |= DUET_SAMPLE_UNKNOWN_CODE;
		return 0;
	}
	walk->found.pc = pc;
	walk->found.generation = walk->process.generation;
	walk->found.module = walk->mapping.module;
	walk->found.code = walk->mapping.code;
	row = unwind_find_row(walk, pc);
	if (row)
		walk->found.row = *row;
	return row != NULL;
}

/*
 * A function of its own, so that its BPF stack frame and that of the Java walk never exist together: all frames
 * together may have 512 bytes.
 */
__noinline int unwind_native_turn(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	u64 pc;

	if (!room)
		return DUET_WALK_NO_ROW;
	pc = room->walk.cursor.pc;
	/*
	 * The loader names a caller by the byte before its address. A pc that a signal handler interrupted must be
	 * named by its own byte, so it is stored as pc + 1.
	 */
	if (!unwind_note(room, pc + (room->walked && !room->walk.cursor.is_return), 0))
		return DUET_WALK_DEPTH;
	return unwind_native_step(room, level);
}

static __always_inline walk_result unwind_turn(struct duet_scratch *room)
{
	u64 pc = room->walk.cursor.pc;

	if (!walk_java_owns(&room->java, pc))
		return unwind_native_turn(room->level);
	if (!unwind_known_step(&room->java, &room->walk.cursor))
		return unwind_java_turn(room->level);
	return unwind_note(room, pc, room->java.code_id) ? DUET_WALK_NONE : DUET_WALK_DEPTH;
}

__noinline int unwind_turns(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	walk_result end = DUET_WALK_NONE;

	if (!room)
		return 1;
	for (u32 i = 0; i < UNWIND_TURNS_AT_ONCE && end == DUET_WALK_NONE; i++)
		end = unwind_turn(room);
	room->work++;
	if (end == DUET_WALK_NONE && unwind_takes_long(room))
		end = DUET_WALK_LONG;
	if (end == DUET_WALK_NONE)
		return 0;
	room->sample.walk_end = end;
	return 1;
}

__noinline int unwind_round(u32 level)
{
	for (u32 i = 0; i < UNWIND_TURNS / UNWIND_TURNS_AT_ONCE; i++)
		if (unwind_turns(level))
			return 1;
	return 0;
}

__noinline int unwind_order_root(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	u64 *stack, oldest, newer;
	u32 kernel, *ids;

	if (!room)
		return 0;
	oldest = room->walked % DUET_ROOT_FRAMES;
	newer = DUET_ROOT_FRAMES - oldest;
	ids = room->code_ids + DUET_LEAF_FRAMES;
	kernel = room->sample.kernel_depth;
	if (kernel > DUET_MAX_STACK)
		return 0;
	/* A copy by a helper is one instruction to verify; the verifier would follow each iteration of a loop. */
	stack = room->sample.stack + kernel + DUET_LEAF_FRAMES;
	bpf_probe_read_kernel(room->part.stack, sizeof(room->part.stack), stack);
	bpf_probe_read_kernel(room->part.ids, sizeof(room->part.ids), ids);
	bpf_probe_read_kernel(stack, newer * sizeof(*stack), room->part.stack + oldest);
	bpf_probe_read_kernel(ids, newer * sizeof(*ids), room->part.ids + oldest);
	bpf_probe_read_kernel(stack + newer, oldest * sizeof(*stack), room->part.stack);
	bpf_probe_read_kernel(ids + newer, oldest * sizeof(*ids), room->part.ids);
	return 0;
}

/* Errors are ignored: if the ring has no room for the record, the loader notices that these frames are missing. */
__noinline int unwind_hand_over(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	struct duet_frames_record *part;
	u32 kernel;

	if (!room || room->walked < DUET_MAX_USER_STACK || room->walked % DUET_ROOT_FRAMES)
		return 0;
	kernel = room->sample.kernel_depth;
	if (kernel > DUET_MAX_STACK)
		return 0;
	part = &room->part;
	part->head = room->sample.head;
	part->head.size = sizeof(*part);
	part->head.type = DUET_RECORD_FRAMES;
	part->first = room->walked - DUET_ROOT_FRAMES;
	bpf_probe_read_kernel(part->stack, sizeof(part->stack), room->sample.stack + kernel + DUET_LEAF_FRAMES);
	bpf_probe_read_kernel(part->ids, sizeof(part->ids), room->code_ids + DUET_LEAF_FRAMES);
	bpf_ringbuf_output(&ring, part, sizeof(*part), duet_wakeup_flag());
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
