/* SPDX-License-Identifier: MIT */
/* BPF's walk in a signal handler: native frames by tables, Java's by the layout. It makes a sample as BPF does. */
#pragma once

#include <ucontext.h>

#include "duet_record.h"
#include "sample/perf_ring.h"
#include "jvm/stay.h"
#include "sample/stack.h"

/* How a step of walk/native.h reads memory and rows. `memory` is the struct agent_walk. */
struct agent_walk;
int walk_memory_read(struct agent_walk *walk, void *to, size_t bytes, uintptr_t address);
const struct duet_unwind_row *walk_memory_row(const struct agent_walk *walk, uint32_t index);
#define walk_read(at, to, bytes, address) walk_memory_read((at)->memory, to, bytes, address)
#define walk_row(at, index) walk_memory_row((at)->memory, index)

/* Methods that earlier walks have met, see walk/blobs.h. The frames of compiled code are read directly. */
struct walk_java;
bool walk_memory_known(struct walk_java *java, uint64_t method);
void walk_memory_know(const struct walk_java *java, uint64_t method);
#define walk_known_step(java, cursor) 0
#define walk_know_frame(java, pc, frame_bytes) (void)0
#define walk_known_method(java, method) walk_memory_known(java, method)
#define walk_know_method(java, method) walk_memory_know(java, method)

#include "walk/java.h"

#define WALK_METHODS 64 /* a power of 2 */

/* What was found out about a Method. It holds until HotSpot's next safepoint, and for 10 ms at most. */
struct walk_method {
	uint64_t at; /* 0: none */
	uint64_t const_at;
	uint64_t id; /* jmethodID or duet_method_key() */
	uint64_t time_ns;
	uint64_t safepoints;
	uint32_t code_bytes;
	uint32_t check;
};

#define WALK_LINES 64
#define WALK_LINE_BYTES 512

/* Too large for a thread's stack. */
struct agent_walk {
	struct stay *stay;
	struct stack_copy *stack; /* copy of the part of the stack that is being read */
	/* set by the caller: part of the stack that stays readable, and is not copied; both 0: none */
	struct {
		uintptr_t low, high;
	} own;
	/* Cache of the other memory that this walk has read: methods of one class lead to the same structures. */
	struct walk_method methods[WALK_METHODS]; /* by a hash; of earlier walks, too */
	uint64_t safepoints; /* 1 + HotSpot's number of safepoints during this walk; 0: not known; or … */
	bool has_safepoints; /* … not read yet */
	uintptr_t line_at[WALK_LINES]; /* 0: the line is empty */
	unsigned char lines[WALK_LINES][WALK_LINE_BYTES];
	/* set by the caller: longest time for a deep stack; half of a clock's interval: the thread keeps the rest */
	uint64_t most_ns;
	bool is_kept; /* set by the caller: the sample is written later or never, so no part of it may be written yet */
	uint32_t calls_left; /* system calls that the walk may still make */
	uint32_t walked; /* number of frames so far */
	struct tables_slice slice;
	struct duet_unwind_mapping mapping; /* the mapping found last: most callers are in the same file */
	struct unwind_cursor cursor;
	struct walk_java java;
	struct kernel_stack kernel; /* the first sample.kernel_depth frames of the stack */
	/* there are no tables: native frames between Java frames, and below the last one, are left out */
	bool skips_native;
	const void *attributes; /* set by the caller: sample.attribute_bytes bytes */
	uint32_t ids[DUET_MAX_USER_STACK];
	struct duet_frames_record part;
	struct regs left; /* of a sleeper: where the anchor says that it has left Java; sp 0: no more to be met */
	union {
		struct duet_sample sample;
		uint64_t room[sizeof(struct duet_sample) / 8 + DUET_MAX_USER_STACK];
	};
};

/*
 * Fills walk->sample from the interrupted thread; its head.time_ns and most_ns must be set. `stack` is scratch for
 * copies of the stack, free again when this returns. Async-signal-safe, bounded in frames and in system calls.
 */
void walk_thread(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, const ucontext_t *context);
/*
 * The same in a callback of JVMTI, on the calling thread; the caller gives its JavaThread. The stack begins at the
 * method that called the JVM (DUET_SAMPLE_CALLED). Native frames are left out where there are no tables for them.
 */
void walk_caller(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, uintptr_t java_thread);
/*
 * The same for a thread that called the agent from native code. The stack begins at that caller. If `callee` is not 0,
 * the function at this address is put above it, but not on a stack of DUET_MAX_USER_STACK frames or more.
 */
void walk_native_caller(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, const struct regs *caller,
			uintptr_t callee);

/*
 * The same for another thread, which sleeps: `at` has the pc and sp with which it has left user mode, or 0. The other
 * registers are not known. By the rows alone, the walk goes through native code to the frame where the thread's anchor
 * says that it has left Java, and from there on as usual. If the rows need more, the stack begins at the pc, and has
 * the native frames below it left out (DUET_SAMPLE_CALLED); that of a thread without Java frames ends there.
 *
 * Why this is safe: nothing is read without a check, and nothing but the thread itself changes its stack, its anchor
 * and its JavaThread, or lets them go. The caller compares the thread's CPU time before and after: if it has not run in
 * between, not even to leave native code, all that was read is of one moment. Otherwise the caller drops the sample.
 */
void walk_sleeper(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, uintptr_t java_thread,
		  const struct regs *at);

/* After walk_caller() for another thread: returns true if that thread is still where the walk began. */
bool walk_caller_is_there(struct agent_walk *walk, uintptr_t java_thread);

/* The size of walk->sample with frames, ids and attributes, which walk_write() writes. */
size_t walk_bytes(const struct agent_walk *walk);
void walk_write(const struct agent_walk *walk, unsigned char *to);
