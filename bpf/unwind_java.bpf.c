// SPDX-License-Identifier: GPL-2.0-only
/* One turn through the JVM's code. */
#include "unwind_java.bpf.h"

static __always_inline bool java_is_named(struct duet_scratch *room, u64 method)
{
	struct duet_named_method key = {.method = method, .tgid = room->sample.head.tgid};

	if (!method)
		return false;
	if (method != room->named && bpf_map_lookup_elem(&named_methods, &key)) {
		room->named = method;
		unwind_know_name(&room->java, method);
	}
	return method == room->named;
}

__noinline int unwind_java_leaf(u64 frame_bytes)
{
	struct duet_scratch *room = scratch_get();

	return room ? java_step_leaf(&room->java, &room->walk.cursor, frame_bytes) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_pushed(u64 slot)
{
	struct duet_scratch *room = scratch_get();

	return room ? java_pushed_bytes(&room->java, &room->walk.cursor, slot) : -1;
}

__noinline int unwind_java_kept(u64 slot)
{
	struct duet_scratch *room = scratch_get();

	return room ? (int)java_kept_bytes(&room->java, &room->walk.cursor, slot) : 0;
}

__noinline int unwind_java_stub_return(u64 slot)
{
	struct duet_scratch *room = scratch_get();

	return room && java_is_stub_return(&room->java, &room->walk.cursor, slot);
}

__noinline int unwind_java_sender(u64 to, u64 sp)
{
	struct duet_scratch *room = scratch_get();

	return room && java_is_sender(&room->java, to, sp);
}

__noinline int unwind_java_thrower(u64 to, u64 sp)
{
	struct duet_scratch *room = scratch_get();

	return room && java_is_thrower(&room->java, to, sp);
}

__noinline int unwind_java_barrier(u64 frame_bytes)
{
	struct duet_scratch *room = scratch_get();

	return room ? java_step_barrier(&room->java, &room->walk.cursor, frame_bytes) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_odd(u64 frame_bytes)
{
	struct duet_scratch *room = scratch_get();

	return room ? java_leaf_odd(&room->java, &room->walk.cursor, frame_bytes) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_forwarder(void)
{
	struct duet_scratch *room = scratch_get();

	return room ? java_step_forwarder(&room->java, &room->walk.cursor) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_interpreter(void)
{
	struct duet_scratch *room = scratch_get();

	return room ? java_step_interpreter(&room->java, &room->walk.cursor) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_continuation(void)
{
	struct duet_scratch *room = scratch_get();

	return room ? java_step_continuation(&room->java, &room->walk.cursor) : DUET_WALK_NO_BLOB;
}

__noinline int unwind_java_turn(void)
{
	struct duet_scratch *room = scratch_get();
	walk_result end;

	if (!room)
		return DUET_WALK_NO_BLOB;
	end = walk_java_step(&room->java, &room->walk.cursor);
	if (end == DUET_WALK_NONE && room->java.has_found) {
		room->unnamed += !java_is_named(room, room->java.found_method);
		walk_java_note(&room->java);
	}
	return unwind_note(room, room->java.pc, room->java.code_id) ? end : DUET_WALK_DEPTH;
}

/* In a process that never had one Continuation.enterSpecial is not compiled. */
__noinline int unwind_java_virtual(void)
{
	struct duet_scratch *room = scratch_get();
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

char LICENSE[] SEC("license") = "GPL";
