/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The walk of a thread's user frames, leaf first. A turn stores the cursor's pc and steps to the caller by the
 * function that knows this kind of code. Its state lies in the per-CPU scratch, since the BPF stack is too small.
 */
#ifndef DUET_UNWIND_BPF_H
#define DUET_UNWIND_BPF_H

#include "core.bpf.h"
#include "duet_unwind.h"

/* The loader writes it through a memory map, see duet_unwind.h. */
struct duet_unwind_rows_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DUET_UNWIND_MAX_ROWS);
	__type(key, u32);
	__type(value, struct duet_unwind_row);
};
extern struct duet_unwind_rows_map unwind_rows SEC(".maps");

static __always_inline int walk_read(void *to, u32 bytes, u64 address)
{
	return bpf_probe_read_user(to, bytes, (const void *)address);
}

static __always_inline const struct duet_unwind_row *walk_row(u32 index)
{
	return bpf_map_lookup_elem(&unwind_rows, &index);
}

/* Parts of walk_java_step() on the scratch's cursor, in unwind_java.bpf.c. */
int unwind_java_leaf(u64 frame_bytes);
int unwind_java_pushed(u64 slot);
int unwind_java_stub_return(u64 slot);
int unwind_java_interpreter(void);
#define WALK_JAVA_LEAF(java, cursor, frame_bytes) unwind_java_leaf(frame_bytes)
#define WALK_JAVA_PUSHED(java, cursor, slot) unwind_java_pushed(slot)
#define WALK_JAVA_STUB_RETURN(java, cursor, slot) unwind_java_stub_return(slot)
#define WALK_JAVA_INTERPRETER(java, cursor) unwind_java_interpreter()

#include "duet_walk.h"
#include "duet_walk_java.h"

struct unwind_walk {
	struct unwind_cursor cursor;
	struct duet_unwind_process process; /* its slice of unwind_mappings; none when it has no tables yet */
	struct duet_unwind_mapping mapping; /* the last one hit: most callers are in the same file */
};

#define DUET_MAX_IDS (DUET_MAX_USER_STACK + 2) /* rounded up to 8 bytes, as the verifier reckons it */

/*
 * What is larger than the BPF stack. One a CPU is enough: the kernel never runs a perf_event program inside another.
 */
struct duet_scratch {
	struct unwind_walk walk;
	struct walk_java java;
	u64 woken_ns; /* when this CPU last woke the loader for code that is not mapped */
	u32 code_ids[DUET_MAX_IDS];
	u32 unnamed; /* interpreted frames whose method the loader cannot name */
	u32 reserved;
	union {
		struct duet_sample sample;
		u8 room[sizeof(struct duet_sample) + (DUET_MAX_STACK + DUET_MAX_USER_STACK) * sizeof(u64) +
			sizeof(u32[DUET_MAX_IDS])];
	};
};

/* PCPU_MIN_UNIT_SIZE, include/linux/percpu.h: no per-CPU value may be larger. */
_Static_assert(sizeof(struct duet_scratch) <= 32 << 10, "the scratch must fit a per-CPU map");

struct duet_scratch_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct duet_scratch);
};
extern struct duet_scratch_map scratch SEC(".maps");

static __always_inline struct duet_scratch *scratch_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&scratch, &zero);
}

/*
 * One turn, in unwind.bpf.c; nonzero ends the walk. Global, so that the verifier checks it once and not for every
 * frame: then a plain loop of a thousand turns is acceptable to Linux 5.8, and bpf_loop (5.17) is not needed.
 */
int unwind_turn(u32 frame);

/* Does the loader need no one else to tell what these frames are? */
static __always_inline bool unwind_is_named(const struct duet_scratch *room)
{
	return room->sample.flags & DUET_SAMPLE_JVM && room->java.layout.call_stub_return && !room->unnamed;
}

/* Adds the user frames to the scratch's sample, behind the kernel's; returns how many. The cursor is set. */
static __always_inline u32 unwind_user(struct duet_scratch *room)
{
	u32 depth;

	room->sample.walk_end = DUET_WALK_DEPTH;
	for (u32 frame = 0; frame < DUET_MAX_USER_STACK; frame++)
		if (unwind_turn(frame))
			break;
	if (room->sample.walk_end == DUET_WALK_ENTRY && !room->walk.cursor.is_guess)
		room->sample.flags |= DUET_SAMPLE_USER_COMPLETE | (unwind_is_named(room) ? DUET_SAMPLE_WALKED : 0);
	depth = room->sample.user_depth;
	return depth > DUET_MAX_USER_STACK ? DUET_MAX_USER_STACK : depth;
}

#endif
