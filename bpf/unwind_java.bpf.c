// SPDX-License-Identifier: GPL-2.0-only
/* One turn of the walk in the JVM's code. */
#include "unwind_java.bpf.h"
#include "unwind_loop.bpf.h"

/*
 * The verifier refuses a call of a global function without one of its arguments. clang does not pass an argument that
 * the function does not use, as these on aarch64.
 */
#define NEEDED(argument) __asm__ volatile("" : : "r"(argument))

__noinline int unwind_java_blob(u32 level, u64 pc)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_find_blob(&room->java, pc) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_called(u32 level, u64 return_address)
{
	struct duet_scratch *room = scratch_get(level);

	return room && java_is_called(&room->java, return_address);
}

__noinline int unwind_java_method(u32 level, u64 method, u64 bytecode, int is_leaf)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_read_method(&room->java, method, bytecode, is_leaf) : -1;
}

__noinline int unwind_java_return(u32 level, u64 slot, int fp_is_live)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_return(&room->cursor, slot, fp_is_live) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_by_fp(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_step_by_fp(&room->cursor) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_leaf(u32 level, u64 frame_bytes)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_step_leaf(&room->java, &room->cursor, frame_bytes) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_pushed(u32 level, u64 slot)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_pushed_bytes(&room->java, &room->cursor, slot) : -1;
}

__noinline int unwind_java_kept(u32 level, u64 slot)
{
	struct duet_scratch *room = scratch_get(level);

	NEEDED(slot);
	return room ? (int)java_kept_bytes(&room->java, &room->cursor, slot) : 0;
}

__noinline int unwind_java_prologue(u32 level, u64 done)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_prologue(&room->java, done) : DUET_FRAME_BUILT;
}

__noinline int unwind_java_epilogue(u32 level, u64 pc)
{
	struct duet_scratch *room = scratch_get(level);

	NEEDED(pc);
	return room ? java_epilogue(&room->java, pc) : DUET_FRAME_BUILT;
}

__noinline int unwind_java_freed(u32 level, u64 at)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_freed_part(&room->java, at) : 0;
}

__noinline int unwind_java_leaving(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	return room && java_is_leaving(&room->java, &room->cursor);
}

__noinline int unwind_java_kept_sp(u32 level, u64 at, int is_kept)
{
	struct duet_scratch *room = scratch_get(level);

	NEEDED(at);
	NEEDED(is_kept);
	return room ? java_kept_sp(&room->java, at, is_kept) : 0;
}

__noinline int unwind_java_stub_return(u32 level, u64 slot)
{
	struct duet_scratch *room = scratch_get(level);

	return room && java_is_stub_return(&room->java, &room->cursor, slot);
}

__noinline int unwind_java_sender(u32 level, u64 to, u64 sp)
{
	struct duet_scratch *room = scratch_get(level);

	return room && java_is_sender(&room->java, to, sp);
}

__noinline int unwind_java_thrower(u32 level, u64 to, u64 sp)
{
	struct duet_scratch *room = scratch_get(level);

	return room && java_is_thrower(&room->java, to, sp);
}

__noinline int unwind_java_barrier(u32 level, u64 frame_bytes)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_step_barrier(&room->java, &room->cursor, frame_bytes) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_odd(u32 level, u64 frame_bytes)
{
	struct duet_scratch *room = scratch_get(level);

	NEEDED(frame_bytes);
	return room ? java_leaf_odd(&room->java, &room->cursor, frame_bytes) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_forwarder(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_step_forwarder(&room->java, &room->cursor) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_continuation(u32 level)
{
	struct duet_scratch *room = scratch_get(level);

	return room ? java_step_continuation(&room->java, &room->cursor) : DUET_WALK_NO_BLOB;
}

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

/* Nothing is mounted if Continuation.enterSpecial is not compiled: the process has never run a virtual thread. */
__noinline int unwind_java_virtual(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	const struct duet_jvm_virtual *jvm;
	u64 thread;

	if (!room)
		return 0;
	jvm = &room->java.layout.virtual_threads;
	if (!jvm->thread_vtable || !virtual_word(room->java.layout.enter_special))
		return 0;
	thread = virtual_carrier(jvm, room->java.thread);
	if (!thread && room->java.thread_at)
		thread = virtual_carrier(jvm, virtual_word(room->java.thread_at));
	if (thread)
		virtual_mounted(jvm, thread, &room->sample.virtual_thread);
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
