// SPDX-License-Identifier: GPL-2.0-only
/* One turn of the walk in the JVM's code. */
#include "unwind_java.bpf.h"
#include "unwind_loop.bpf.h"

/*
 * The verifier refuses a call of a global function without one of its arguments. clang does not pass an argument that
 * the function does not use, as these on aarch64.
 */
#define NEEDED(argument) ({ __asm__ volatile("" : : "r"(argument)); })

/* A function of the walk that the verifier checks once. Returns `none` without a scratch. */
#define HOOK(name, parameters, none, call)                                                                             \
	__noinline int unwind_java_##name parameters                                                                   \
	{                                                                                                              \
		struct duet_scratch *room = scratch_get(level);                                                        \
                                                                                                                       \
		return room ? (call) : (none);                                                                         \
	}

HOOK(blob, (u32 level, u64 pc), DUET_WALK_NO_BLOB, java_find_blob(&room->java, pc))
HOOK(called, (u32 level, u64 return_address), 0, java_is_called(&room->java, return_address))
HOOK(method, (u32 level, u64 method, u64 bytecode, int is_leaf), -1,
     java_read_method(&room->java, method, bytecode, is_leaf))
HOOK(return, (u32 level, u64 slot, int fp_is_live), DUET_WALK_NO_BLOB, java_return(&room->cursor, slot, fp_is_live))
HOOK(by_fp, (u32 level), DUET_WALK_NO_BLOB, java_step_by_fp(&room->cursor))
HOOK(leaf, (u32 level, u64 frame_bytes), DUET_WALK_NO_BLOB, java_step_leaf(&room->java, &room->cursor, frame_bytes))
HOOK(pushed, (u32 level, u64 slot), -1, java_pushed_bytes(&room->java, &room->cursor, slot))
HOOK(kept, (u32 level, u64 slot), 0, (NEEDED(slot), java_kept_bytes(&room->java, &room->cursor, slot)))
HOOK(prologue, (u32 level, u64 done), DUET_FRAME_BUILT, java_prologue(&room->java, done))
HOOK(epilogue, (u32 level, u64 pc), DUET_FRAME_BUILT, (NEEDED(pc), java_epilogue(&room->java, pc)))
HOOK(freed, (u32 level, u64 at), 0, java_freed_part(&room->java, at))
HOOK(leaving, (u32 level), 0, java_is_leaving(&room->java, &room->cursor))
HOOK(kept_sp, (u32 level, u64 at, int is_kept), 0,
     (NEEDED(at), NEEDED(is_kept), java_kept_sp(&room->java, at, is_kept)))
HOOK(stub_return, (u32 level, u64 slot), 0, java_is_stub_return(&room->java, &room->cursor, slot))
HOOK(sender, (u32 level, u64 to, u64 sp), 0, java_is_sender(&room->java, to, sp))
HOOK(thrower, (u32 level, u64 to, u64 sp), 0, java_is_thrower(&room->java, to, sp))
HOOK(barrier, (u32 level, u64 frame_bytes), DUET_WALK_NO_BLOB,
     java_step_barrier(&room->java, &room->cursor, frame_bytes))
HOOK(odd, (u32 level, u64 frame_bytes), DUET_WALK_NO_BLOB,
     (NEEDED(frame_bytes), java_leaf_odd(&room->java, &room->cursor, frame_bytes)))
HOOK(forwarder, (u32 level), DUET_WALK_NO_BLOB, java_step_forwarder(&room->java, &room->cursor))
HOOK(continuation, (u32 level), DUET_WALK_NO_BLOB, java_step_continuation(&room->java, &room->cursor))

__noinline int unwind_code_turn(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	if (!room)
		return DUET_WALK_NO_BLOB;
	room->work += room->cursor.is_return ? 1 : UNWIND_WORK_OF_LEAF;
	return walk_code_turn(room);
}

__noinline int unwind_interpreter_turn(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	if (!room)
		return DUET_WALK_NO_BLOB;
	room->work++;
	return walk_interpreter_turn(room);
}

__noinline int unwind_java_virtual(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	if (room)
		virtual_find(&room->java.layout, room->java.thread, room->java.thread_at, &room->sample.virtual_thread);
	return 0;
}

__noinline int unwind_java_dispatches(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	u64 name;

	if (!room || !walk_java_owns(&room->java, room->sample.user_pc))
		return 0;
	room->java.blob = 0;
	if (unwind_java_blob(level, room->sample.user_pc))
		return 0;
	name = java_field(&room->java, room->java.layout.blob_name, 8);
	return name && name == room->java.layout.frameless_names[0];
}

char LICENSE[] SEC("license") = "GPL";
