/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a walk of user frames, and how the walk reads the thread's memory and the unwind rows. The state is in a
 * per-CPU map, because the BPF stack is too small for it.
 */
#pragma once

#include "core.bpf.h"
#include "duet_unwind.h"

DUET_MAPPED_ARRAY(unwind_rows, DUET_UNWIND_MAX_ROWS, struct duet_unwind_row);

static __always_inline int walk_read(const void *at, void *to, u32 bytes, u64 address)
{
	return bpf_probe_read_user(to, bytes, (const void *)address);
}

#define UNWIND_WINDOW_WORDS 256 /* a power of 2 */
#define UNWIND_PAGE_BYTES 4096 /* the smallest page size of any supported kernel */

/*
 * A window on the thread's stack: a piece that is read at once. Return addresses lie close to each other, and most of
 * the cost of a read is the call itself (on one machine 80 ns for 16 bytes, 96 ns for 512).
 */
struct unwind_window {
	u64 at; /* user address of the first word; valid for one walk only, during which the thread does not run */
	u64 bytes; /* number of valid bytes in words; 0: none */
	u64 words[UNWIND_WINDOW_WORDS];
};

/*
 * Moves the window to `address` and fills as much of it as can be read: beyond the end of the stack there may be no
 * memory. Returns nonzero if fewer than `least_bytes` can be read.
 */
static __always_inline int unwind_window_move(struct unwind_window *window, u32 least_bytes, u64 address)
{
	u64 bytes = UNWIND_PAGE_BYTES - (address & (UNWIND_PAGE_BYTES - 1));

	window->bytes = 0;
	window->at = address;
	if (!bpf_probe_read_user(window->words, sizeof(window->words), (const void *)address)) {
		window->bytes = sizeof(window->words);
		return 0;
	}
	if (bytes < least_bytes || bytes >= sizeof(window->words) ||
	    bpf_probe_read_user(window->words, bytes, (const void *)address))
		return -1;
	window->bytes = bytes;
	return 0;
}

/* Reads a constant number of words of the stack. Returns nonzero if they cannot be read. */
static __always_inline int unwind_window_read(struct unwind_window *window, u64 *to, u32 words, u64 address)
{
	u32 bytes = words * sizeof(u64);
	u64 index;

	if (address % sizeof(u64))
		return bpf_probe_read_user(to, bytes, (const void *)address);
	if ((address - window->at > window->bytes - bytes || window->bytes < bytes) &&
	    unwind_window_move(window, bytes, address))
		return bpf_probe_read_user(to, bytes, (const void *)address);
	index = (address - window->at) / sizeof(u64);
	/* The masks are for the verifier. The asm hides the value, else the compiler would remove them. */
	__asm__("" : "+r"(index));
#pragma unroll
	for (u32 i = 0; i < words; i++)
		to[i] = window->words[(index + i) & (UNWIND_WINDOW_WORDS - 1)];
	return 0;
}

/* The window follows the cursor in struct duet_scratch. */
#define walk_read_stack(cursor, to, words, address) \
	unwind_window_read((struct unwind_window *)((struct unwind_cursor *)(cursor) + 1), to, words, address)

static __always_inline const struct duet_unwind_row *walk_row(const void *at, u32 index)
{
	return bpf_map_lookup_elem(&unwind_rows, &index);
}

/* The level of the scratch that contains the cursor. Defined below. */
struct unwind_cursor;
struct walk_java;
static __always_inline u32 unwind_cursor_level(const struct unwind_cursor *cursor);
static __always_inline u32 unwind_level(const struct walk_java *java);

/*
 * Parts of walk_code_step() and walk_interpreter_step() as global functions, which work on the cursor of the level's
 * scratch. Defined in unwind_java.bpf.c. A pointer as argument would be shorter, but needs Linux 5.12.
 */
int unwind_java_blob(u32 level, u64 pc);
int unwind_java_called(u32 level, u64 return_address);
int unwind_java_method(u32 level, u64 method, u64 bytecode, int is_leaf);
int unwind_java_return(u32 level, u64 slot, int fp_is_live);
int unwind_java_by_fp(u32 level);
int unwind_java_leaf(u32 level, u64 frame_bytes);
int unwind_java_pushed(u32 level, u64 slot);
int unwind_java_kept(u32 level, u64 slot);
int unwind_java_kept_sp(u32 level, u64 at, int is_kept);
int unwind_java_stub_return(u32 level, u64 slot);
int unwind_java_prologue(u32 level, u64 done);
int unwind_java_epilogue(u32 level, u64 pc);
int unwind_java_freed(u32 level, u64 at);
int unwind_java_leaving(u32 level);
int unwind_java_sender(u32 level, u64 to, u64 sp);
int unwind_java_thrower(u32 level, u64 to, u64 sp);
int unwind_java_barrier(u32 level, u64 frame_bytes);
int unwind_java_odd(u32 level, u64 frame_bytes);
int unwind_java_forwarder(u32 level);
int unwind_java_continuation(u32 level);
#define WALK_JAVA_BLOB(java, pc) unwind_java_blob(unwind_level(java), pc)
#define WALK_JAVA_CALLED(java, return_address) unwind_java_called(unwind_level(java), return_address)
#define WALK_JAVA_METHOD(java, method, bytecode, is_leaf) \
	unwind_java_method(unwind_level(java), method, bytecode, is_leaf)
#define WALK_JAVA_RETURN(cursor, slot, fp_is_live) unwind_java_return(unwind_cursor_level(cursor), slot, fp_is_live)
#define WALK_JAVA_BY_FP(cursor) unwind_java_by_fp(unwind_cursor_level(cursor))
#define WALK_JAVA_LEAF(java, cursor, frame_bytes) unwind_java_leaf(unwind_level(java), frame_bytes)
#define WALK_JAVA_PUSHED(java, cursor, slot) unwind_java_pushed(unwind_level(java), slot)
#define WALK_JAVA_KEPT(java, cursor, slot) unwind_java_kept(unwind_level(java), slot)
#define WALK_JAVA_KEPT_SP(java, at, is_kept) unwind_java_kept_sp(unwind_level(java), at, is_kept)
#define WALK_JAVA_STUB_RETURN(java, cursor, slot) unwind_java_stub_return(unwind_level(java), slot)
#define WALK_JAVA_PROLOGUE(java, done) unwind_java_prologue(unwind_level(java), done)
#define WALK_JAVA_EPILOGUE(java, pc) unwind_java_epilogue(unwind_level(java), pc)
#define WALK_JAVA_FREED(java, at) unwind_java_freed(unwind_level(java), at)
#define WALK_JAVA_LEAVING(java, cursor) unwind_java_leaving(unwind_level(java))
#define WALK_JAVA_SENDER(java, to, sp) unwind_java_sender(unwind_level(java), to, sp)
#define WALK_JAVA_THROWER(java, to, sp) unwind_java_thrower(unwind_level(java), to, sp)
#define WALK_JAVA_BARRIER(java, cursor, frame_bytes) unwind_java_barrier(unwind_level(java), frame_bytes)
#define WALK_JAVA_ODD(java, cursor, frame_bytes) unwind_java_odd(unwind_level(java), frame_bytes)
#define WALK_JAVA_FORWARDER(java, cursor) unwind_java_forwarder(unwind_level(java))
#define WALK_JAVA_CONTINUATION(java, cursor) unwind_java_continuation(unwind_level(java))

/* Defined in unwind_known.bpf.h. */
static __always_inline bool unwind_known_step(struct walk_java *java, struct unwind_cursor *cursor);
static __always_inline void unwind_know_frame(const struct walk_java *java, u64 pc, u64 frame_bytes);
static __always_inline bool unwind_known_method(struct walk_java *java, u64 method);
static __always_inline void unwind_know_method(const struct walk_java *java, u64 method);
#define walk_known_step unwind_known_step
#define walk_know_frame unwind_know_frame
#define walk_known_method unwind_known_method
#define walk_know_method unwind_know_method

#include "walk/native.h"
#include "walk/java.h"
#include "walk/virtual.h"

/* The row for a pc, cached for return addresses: a thread's outer callers are the same in sample after sample. */
struct unwind_found {
	u64 pc;
	u64 generation; /* of the slice that gave this result */
	struct duet_unwind_row row;
	u32 module;
	u32 code; /* enum duet_code */
};

/* Mappings of a process that the kernel has returned. The kernel can be asked once in an interrupt. */
#define UNWIND_LEARNT 8 /* a power of two, for the verifier */
struct unwind_learnt {
	u64 start_ticks;
	u64 count; /* of all mappings that it has returned; a new one replaces the oldest */
	struct unwind_learnt_mapping {
		struct duet_unwind_mapping mapping;
		u64 serial; /* serial of the mapping's module */
	} mappings[UNWIND_LEARNT];
};

/* that the attributes of a thread's context take in a sample, see duet_attribute_size() */
#define CONTEXT_ROOM (sizeof(struct duet_attribute) + ((DUET_CONTEXT_ATTRIBUTES + 7) & ~7))
/* room for rounding up to 8 bytes, as the verifier calculates the bound */
#define DUET_MAX_IDS (DUET_MAX_USER_STACK + 2)

/*
 * The state that is too large for the BPF stack, per CPU and level. The kernel never runs a perf_event program inside
 * another, but a clock's tick may interrupt a program of another kind. Then the inner one works on the next level.
 */
struct duet_scratch {
	struct unwind_cursor cursor;
	struct unwind_window window; /* must follow the cursor, for walk_read_stack() */
	struct duet_unwind_process process; /* the process's slice of unwind_mappings; empty if it has no tables yet */
	struct duet_unwind_mapping mapping; /* the mapping found last: most callers are in the same file */
	struct duet_unwind_mapping unpublished; /* likewise, among the mappings that the loader does not know */
	struct unwind_found found; /* for the current frame */
	struct unwind_learnt learnt; /* scratch, to build an entry of the map */
	struct walk_java java;
	u64 users; /* number of programs that try to take it; a program gets it only if it is the only one */
	u64 woken_ns; /* when this CPU last woke the loader for code in no known mapping */
	u32 level; /* its index in the map */
	u32 asked; /* how often the kernel was asked for a mapping, see UNWIND_MOST_ASKED */
	u32 ids[DUET_MAX_IDS];
	/* a FRAMES record to emit; also the buffer for putting the last frames in order */
	struct duet_frames_record part;
	u64 safepoints; /* 1 + number of safepoints of the sample's JVM so far; 0: not known */
	u32 walked; /* frames walked so far */
	u32 work; /* work of the walk since it last looked at the clock, see UNWIND_WORK */
	u64 context_at; /* address of the attributes of the thread's context, and … */
	u32 context_bytes; /* … how many these are; 0: it has none */
	union {
		struct duet_sample sample;
		u8 room[sizeof(struct duet_sample) + (DUET_MAX_STACK + DUET_MAX_USER_STACK) * sizeof(u64) +
			sizeof(u32[DUET_MAX_IDS]) + DUET_MAX_BPF_ATTRIBUTE_BYTES + CONTEXT_ROOM];
	};
};

_Static_assert(__builtin_offsetof(struct duet_scratch, window) == sizeof(struct unwind_cursor),
	       "walk_read_stack() looks there");
/* No per-CPU value may be larger than PCPU_MIN_UNIT_SIZE, include/linux/percpu.h. */
_Static_assert(sizeof(struct duet_scratch) <= 32 << 10, "the scratch must fit a per-CPU map");

/* An entry for each level. The loader sets the number of levels. */
DUET_MAP(scratch, PERCPU_ARRAY, DUET_MAX_LEVELS, u32, struct duet_scratch);

/* Returns the scratch of a level that this program has taken. NULL only for the verifier. */
static __always_inline struct duet_scratch *scratch_get(u32 level)
{
	return bpf_map_lookup_elem(&scratch, &level);
}

/*
 * Takes the first scratch of this CPU that no interrupted program has. Returns NULL if there is none. Call
 * scratch_release() at the end. The count is atomic because another program may run between any two instructions. If
 * that program has not ended, because the kernel lets tasks preempt programs, both find the scratch taken and neither
 * gets it.
 */
static __always_inline struct duet_scratch *scratch_take(void)
{
	for (u32 level = 0; level < DUET_MAX_LEVELS; level++) {
		struct duet_scratch *room = scratch_get(level);

		if (!room)
			return NULL;
		__sync_fetch_and_add(&room->users, 1);
		if (room->users == 1) {
			room->level = level;
			return room;
		}
		__sync_fetch_and_add(&room->users, -1);
	}
	return NULL;
}

static __always_inline void scratch_release(struct duet_scratch *room)
{
	__sync_fetch_and_add(&room->users, -1);
}

static __always_inline struct duet_scratch *unwind_room(const struct walk_java *java)
{
	return (void *)java - __builtin_offsetof(struct duet_scratch, java);
}

static __always_inline u32 unwind_level(const struct walk_java *java)
{
	return unwind_room(java)->level;
}

static __always_inline u32 unwind_cursor_level(const struct unwind_cursor *cursor)
{
	const struct duet_scratch *room = (void *)cursor - __builtin_offsetof(struct duet_scratch, cursor);

	return room->level;
}

#include "unwind_known.bpf.h"
