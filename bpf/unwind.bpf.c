// SPDX-License-Identifier: GPL-2.0-only
/* One turn of the walk. */
#include "unwind_java.bpf.h"
#include "unwind_native.bpf.h"

/* Apart, so that what it keeps on the stack does not stand there with the Java walk's: 512 bytes are for all. */
__noinline int unwind_native_turn(void)
{
	struct duet_scratch *room = scratch_get();

	return room ? unwind_native_step(room) : DUET_WALK_NO_ROW;
}

/* One frame; nonzero ends the walk. Global as unwind_round() is. */
__noinline int unwind_turn(u32 frame)
{
	struct duet_scratch *room = scratch_get();
	walk_result end;
	u32 place = walk_place(frame);
	u64 index;

	if (!room || frame >= duet_config.user_stack_depth)
		return 1;
	index = room->sample.kernel_depth + place;
	__asm__("" : "+r"(index)); /* else a copy of it is compared, and the verifier does not see the bound */
	if (index >= DUET_MAX_STACK + DUET_MAX_USER_STACK)
		return 1;
	/* Callers are named by the byte in front of their address; what a handler interrupted must be by its own. */
	room->sample.stack[index] = room->walk.cursor.pc + (frame && !room->walk.cursor.is_return);
	room->walked++;
	room->code_ids[place & (DUET_MAX_USER_STACK - 1)] = 0; /* the mask is for the verifier */
	if (walk_java_owns(&room->java, room->walk.cursor.pc))
		end = unwind_java_turn(place);
	else
		end = unwind_native_turn();
	if (end == DUET_WALK_NONE)
		return 0;
	room->sample.walk_end = end;
	return 1;
}

__noinline int unwind_round(u32 first)
{
	for (u32 i = 0; i < UNWIND_TURNS; i++)
		if (unwind_turn(first + i))
			return 1;
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
