/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The loop of the walk: turns from the leaf to the thread's entry. A turn stores one frame and steps to its caller.
 * Define the type WALK, the state of a walk, before you include this file. Its members used here are
 *
 *	struct unwind_cursor cursor		set by the includer to the registers of the interrupted thread
 *	struct walk_java java			walk_java_begin() has been called for it
 *	uint32_t walked				number of frames so far
 *	struct duet_sample sample		the sample and, behind it, room for the kernel's and the user frames
 *	uint32_t ids[DUET_MAX_USER_STACK]	ids of the user frames
 *	struct duet_frames_record part		the record of frames that do not fit into the sample
 *
 * and as functions or macros
 *
 *	const struct duet_unwind_row *walk_look_up(WALK *walk, enum duet_code *ret_code)
 *		returns the row in force at the cursor, or NULL, and stores what kind of code that is;
 *		adds walk_unmapped_flag() to the sample's flags when no mapping holds the cursor's pc
 *	int walk_takes_long(WALK *walk)		called after WALK_TURNS_AT_ONCE turns; nonzero ends the walk
 *	uint32_t walk_most(const WALK *walk)	most frames that are wanted
 *	int walk_keeps_all(const WALK *walk)	nonzero: frames that do not fit into the sample are wanted
 *	void walk_emit(WALK *walk)		sends `part` to the loader
 *	void walk_copy(void *to, uint32_t bytes, const void *from)
 */
#pragma once

#include "duet_record.h"
#include "walk/java.h"
#include "walk/native.h"

#define WALK_ROUND_TURNS 128 /* turns in one round */
#define WALK_TURNS_AT_ONCE 8 /* turns between two calls of walk_takes_long() */

/* These functions go through macros for the same reason as WALK_JAVA_RETURN and the like in blobs.h. */
#ifndef WALK_CODE_TURN
#define WALK_CODE_TURN walk_code_turn
#endif
#ifndef WALK_NATIVE_TURN
#define WALK_INTERPRETER_TURN walk_interpreter_turn
#define WALK_NATIVE_TURN walk_native_turn
#define WALK_TURN walk_turn
#define WALK_ROUND walk_round
#define WALK_ORDER_ROOT walk_order_root
#define WALK_HAND_OVER walk_hand_over
#endif

/* Index of a frame in the record. A ring of the last ones follows the DUET_LEAF_FRAMES, put in order at the end. */
static inline uint32_t walk_place(uint32_t frame)
{
	return frame < DUET_LEAF_FRAMES ? frame : DUET_LEAF_FRAMES + frame % DUET_ROOT_FRAMES;
}

/* Stores a frame. Returns 0 if the stack already has as many frames as wanted. */
static inline int walk_store(WALK *walk, uint64_t address, uint32_t id)
{
	uint32_t frame = walk->walked, place = walk_place(frame);
	uint64_t index = walk->sample.kernel_depth + place;

	__asm__("" : "+r"(index)); /* otherwise the compiler compares a copy, and the verifier sees no bound */
	if (frame >= walk_most(walk) || index >= DUET_MAX_STACK + DUET_MAX_USER_STACK)
		return 0;
	walk->sample.stack[index] = address;
	walk->ids[place & (DUET_MAX_USER_STACK - 1)] = id; /* the mask is for the verifier */
	walk->walked++;
	return 1;
}

static inline walk_result walk_native_turn(WALK *walk)
{
	enum duet_code code = DUET_CODE_UNKNOWN;
	const struct duet_unwind_row *row = walk_look_up(walk, &code);
	uint64_t pc = walk->cursor.pc;
	int is_return = walk->cursor.is_return;
	walk_result end = walk_native_step(&walk->cursor, row, code, &walk->sample.guessed_depth);

	/* A signal trampoline, which nothing has called: an interrupted pc is below. Its row begins a byte earlier. */
	if (end == DUET_WALK_NONE && !walk->cursor.is_return && (!row || row->rule != DUET_CFA_SIGNAL))
		is_return = 0;
	/*
	 * The loader names a caller by the byte before its address. A pc that is no return address must be named by its
	 * own byte, so it is stored as pc + 1.
	 */
	return walk_store(walk, pc + (walk->walked && !is_return), 0) ? end : DUET_WALK_DEPTH;
}

static inline walk_result walk_code_turn(WALK *walk)
{
	walk_result end = walk_code_step(&walk->java, &walk->cursor);

	return walk_store(walk, walk->java.pc, walk->java.code_id) ? end : DUET_WALK_DEPTH;
}

static inline walk_result walk_interpreter_turn(WALK *walk)
{
	walk_result end = walk_interpreter_step(&walk->java, &walk->cursor);

	if (end == DUET_WALK_NONE && walk->java.has_found)
		walk_java_note(&walk->java);
	return walk_store(walk, walk->java.pc, walk->java.code_id) ? end : DUET_WALK_DEPTH;
}

static inline walk_result walk_turn(WALK *walk)
{
	uint64_t pc = walk->cursor.pc;

	if (java_is_interpreter(&walk->java, pc)) /* the interpreter lies in a code heap, too */
		return WALK_INTERPRETER_TURN(walk);
	if (!walk_java_owns(&walk->java, pc))
		return WALK_NATIVE_TURN(walk);
	if (!walk_known_step(&walk->java, &walk->cursor))
		return WALK_CODE_TURN(walk);
	return walk_store(walk, pc, walk->java.code_id) ? DUET_WALK_NONE : DUET_WALK_DEPTH;
}

/* Returns why the walk has ended, or DUET_WALK_NONE. */
static inline walk_result walk_turns(WALK *walk)
{
	for (uint32_t i = 0; i < WALK_TURNS_AT_ONCE; i++) {
		walk_result end = WALK_TURN(walk);

		if (end != DUET_WALK_NONE)
			return end;
	}
	return walk_takes_long(walk) ? DUET_WALK_LONG : DUET_WALK_NONE;
}

/* Returns nonzero when the walk has ended. */
static inline int walk_round(WALK *walk)
{
	for (uint32_t i = 0; i < WALK_ROUND_TURNS / WALK_TURNS_AT_ONCE; i++) {
		walk_result end = walk_turns(walk);

		if (end == DUET_WALK_NONE)
			continue;
		walk->sample.walk_end = (uint16_t)end;
		return 1;
	}
	return 0;
}

/* Sends the last frames before the next overwrite them. If the ring has no room, the loader notices the gap. */
static inline void walk_hand_over(WALK *walk)
{
	uint32_t kernel = walk->sample.kernel_depth;
	struct duet_frames_record *part = &walk->part;

	if (walk->walked < DUET_MAX_USER_STACK || walk->walked % DUET_ROOT_FRAMES || kernel > DUET_MAX_STACK)
		return;
	part->head = walk->sample.head;
	part->head.size = sizeof(*part);
	part->head.type = DUET_RECORD_FRAMES;
	part->first = walk->walked - DUET_ROOT_FRAMES;
	part->reserved = 0;
	walk_copy(part->stack, sizeof(part->stack), walk->sample.stack + kernel + DUET_LEAF_FRAMES);
	walk_copy(part->ids, sizeof(part->ids), walk->ids + DUET_LEAF_FRAMES);
	walk_emit(walk);
}

/* Puts the ring of the last frames in order. BPF copies by a helper, because the verifier would follow a loop. */
static inline void walk_order_root(WALK *walk)
{
	uint32_t kernel = walk->sample.kernel_depth;
	uint64_t oldest = walk->walked % DUET_ROOT_FRAMES, newer = DUET_ROOT_FRAMES - oldest, *stack;
	uint32_t *ids = walk->ids + DUET_LEAF_FRAMES;
	struct duet_frames_record *part = &walk->part;

	if (kernel > DUET_MAX_STACK)
		return;
	stack = walk->sample.stack + kernel + DUET_LEAF_FRAMES;
	walk_copy(part->stack, sizeof(part->stack), stack);
	walk_copy(part->ids, sizeof(part->ids), ids);
	walk_copy(stack, newer * sizeof(*stack), part->stack + oldest);
	walk_copy(ids, newer * sizeof(*ids), part->ids + oldest);
	walk_copy(stack + newer, oldest * sizeof(*stack), part->stack);
	walk_copy(ids + newer, oldest * sizeof(*ids), part->ids);
}

/* Walks from the cursor to the end. Stores the user frames in the sample, and how the walk ended. */
static inline void walk_all(WALK *walk)
{
	struct duet_sample *sample = &walk->sample;
	uint16_t is_java = walk->java.layout.call_stub_return != 0;

	sample->walk_end = DUET_WALK_DEPTH;
	walk->walked = 0;
	for (uint32_t i = 0; i < DUET_MAX_WALK / WALK_ROUND_TURNS && !WALK_ROUND(walk); i++)
		if (walk_keeps_all(walk))
			WALK_HAND_OVER(walk);
	sample->user_depth = (uint16_t)walk->walked;
	if (walk->walked > DUET_MAX_USER_STACK) {
		sample->user_depth = DUET_MAX_USER_STACK;
		sample->left_out = (uint16_t)(walk->walked - DUET_MAX_USER_STACK);
		WALK_ORDER_ROOT(walk);
	}
	if (is_java)
		sample->id_depth = sample->user_depth;
	if (sample->walk_end == DUET_WALK_ENTRY && !walk->cursor.is_guess)
		sample->flags |= DUET_SAMPLE_USER_COMPLETE | (is_java ? DUET_SAMPLE_WALKED : 0);
}

_Static_assert(DUET_ROOT_FRAMES % WALK_ROUND_TURNS == 0, "walk_hand_over() is called when they are full");
_Static_assert(DUET_LEAF_FRAMES % DUET_ROOT_FRAMES == 0, "a record that is exactly full needs no reordering");
