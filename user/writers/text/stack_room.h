/* SPDX-License-Identifier: MIT */
/*
 * Limits the stacks in a format of text. Such a format has the names of all frames of each stack, so the file may be as
 * large as the square of the profile. Of a stack that has no room, the frames nearest the leaf are written, under
 * PATH_TRUNCATED. After STACK_ROOM_ALL bytes, stacks have little room.
 */
#ifndef WRITERS_TEXT_STACK_ROOM_H
#define WRITERS_TEXT_STACK_ROOM_H

#include <stdint.h>

#define STACK_ROOM_EACH 8192 /* bytes that each stack may take */
#define STACK_ROOM_MORE (256u << 20) /* bytes in addition, for all stacks together */
#define STACK_ROOM_ALL (1ull << 30) /* above this, each stack may take less */
#define STACK_ROOM_LITTLE 512

struct stack_room {
	uint64_t bytes; /* that the stack may take */
	uint64_t taken; /* by all stacks */
};

#define STACK_ROOM_NEW {.bytes = STACK_ROOM_MORE}

/* Call before each stack. Returns the bytes that it may take. */
static inline uint64_t stack_room_next(struct stack_room *room)
{
	room->bytes += room->taken < STACK_ROOM_ALL ? STACK_ROOM_EACH : STACK_ROOM_LITTLE;
	if (room->bytes > STACK_ROOM_MORE + STACK_ROOM_EACH)
		room->bytes = STACK_ROOM_MORE + STACK_ROOM_EACH;
	return room->bytes;
}

/* Call after each stack with the bytes that it took, which may be a frame too much. */
static inline void stack_room_took(struct stack_room *room, uint64_t bytes)
{
	room->taken += bytes;
	room->bytes -= bytes < room->bytes ? bytes : room->bytes;
}

#endif
