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

__noinline int unwind_turn(u32 frame)
{
	struct duet_scratch *room = scratch_get();
	walk_result end;
	u32 index;

	if (!room || frame >= duet_config.user_stack_depth)
		return 1;
	index = room->sample.kernel_depth + room->sample.user_depth;
	if (index >= DUET_MAX_STACK + DUET_MAX_USER_STACK)
		return 1;
	/* Callers are named by the byte in front of their address; what a handler interrupted must be by its own. */
	room->sample.stack[index] = room->walk.cursor.pc + (frame && !room->walk.cursor.is_return);
	room->sample.user_depth++;
	room->code_ids[frame & (DUET_MAX_USER_STACK - 1)] = 0; /* the mask is for the verifier */
	if (UNWIND_JAVA && walk_java_owns(&room->java, room->walk.cursor.pc))
		end = unwind_java_turn(frame);
	else
		end = unwind_native_turn();
	if (end == DUET_WALK_NONE)
		return 0;
	room->sample.walk_end = end;
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
