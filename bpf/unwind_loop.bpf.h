/* SPDX-License-Identifier: GPL-2.0-only */
/* The loop of the walk, leaf first, and the functions that walk/loop.h needs in BPF. */
#pragma once

#include "unwind_native.bpf.h"

#define UNWIND_LONG_NS 5000000 /* longest walk, with interrupts disabled; 10,000 interpreted frames take 2 to 5 ms */

/*
 * Amount of work between two looks at the clock. A walk of 60 frames has less. A thread interrupted in Java code may
 * cost much more: the stack may be searched for the return address, with 2000 reads that the process can make slow, 0.2
 * ms and more.
 */
#define UNWIND_WORK 256
#define UNWIND_WORK_OF_LEAF 128

/*
 * Returns true if the walk has taken too long. This bounds a walk whatever the process's memory contains;
 * sample_pause() bounds the total time of all walks.
 */
static __always_inline bool walk_takes_long(struct duet_scratch *room)
{
	if (++room->work < UNWIND_WORK)
		return false;
	room->work = 0;
	return bpf_ktime_get_ns() - room->sample.head.time_ns > UNWIND_LONG_NS;
}

static __always_inline const struct duet_unwind_row *walk_look_up(struct duet_scratch *room, enum duet_code *ret_code)
{
	const struct duet_unwind_row *row = unwind_find(room) ? &room->found.row : NULL;

	*ret_code = room->found.code;
	return row;
}

#define WALK struct duet_scratch
#define walk_most(room) duet_config.user_stack_depth
#define walk_keeps_all(room) duet_config.keep_all
#define walk_copy(to, bytes, from) bpf_probe_read_kernel(to, bytes, from)
#define walk_emit(room) bpf_ringbuf_output(&ring, &(room)->part, sizeof((room)->part), duet_wakeup_flag())

/*
 * Defined in unwind.bpf.c; the turns in the JVM's code are in unwind_java.bpf.c. These functions are global, so that
 * the verifier checks each one once and not for every frame. Then Linux 5.8 accepts plain loops of rounds and turns,
 * and bpf_loop() (Linux 5.17) is not needed. The BPF stack frames of the three turns never exist at the same time: all
 * frames together may have 512 bytes.
 */
int unwind_native_turn(u32 level);
int unwind_code_turn(u32 level);
int unwind_interpreter_turn(u32 level);
int unwind_turn(u32 level);
int unwind_round(u32 level);
int unwind_order_root(u32 level);
int unwind_hand_over(u32 level);
#define WALK_NATIVE_TURN(room) unwind_native_turn((room)->level)
#define WALK_CODE_TURN(room) unwind_code_turn((room)->level)
#define WALK_INTERPRETER_TURN(room) unwind_interpreter_turn((room)->level)
#define WALK_TURN(room) unwind_turn((room)->level)
#define WALK_ROUND(room) unwind_round((room)->level)
#define WALK_ORDER_ROOT(room) unwind_order_root((room)->level)
#define WALK_HAND_OVER(room) unwind_hand_over((room)->level)

#include "walk/loop.h"

/* Walks from the cursor, which is set. */
static __always_inline void unwind_user(struct duet_scratch *room)
{
	room->work = 0;
	room->window.bytes = 0;
	walk_all(room);
}
