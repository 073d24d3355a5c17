/* SPDX-License-Identifier: MIT */
/*
 * Shares of what has a bound and is common to all users: the profile, the tables for the walk, what waits. A user may
 * hold at most three times what is still free of it. So one who is alone gets three quarters, and the next one always
 * finds room. What a user may hold shrinks as others come; what exceeds it is refused to him, counted and reported.
 *
 * What somebody holds is not taken from him for the next one, who finds three sixteenths of the room at least: each
 * room is large enough for that. It becomes free with his processes, and the profile's with each window.
 *
 * There is no share for the user who runs duet, nor for root outside containers (payer.key 0). And there is none while
 * the processes of only one user can be recorded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proc/allowance.h"

/* Name, what it is, and what the user sees of it. */
#define ROOMS(X) /* the first five are the profile's */ \
	X(NODES, "the profile's stacks", "new stacks are under [too_many_stacks], --max-memory makes room for more") \
	X(FRAMES, "the profile's frames", "new stacks are under [too_many_stacks], --max-memory makes room for more") \
	X(THREADS, "the profile's threads", "new threads are under [others], --max-memory makes room for more") \
	X(TEXTS, "the profile's names", "new stacks are under [too_many_stacks], --max-memory makes room for more") \
	X(USAGES, "the processes that are looked at", "some of them are not shown") \
	X(NAMES, "the names of Java methods", "names are read again and again, --max-memory makes room for more") \
	X(MAPS, "the mappings of processes", "some native frames have no names, --max-memory makes room for more") \
	X(UNWIND_ROWS, "the unwind tables", "some native code is walked by frame pointer") \
	X(UNWIND_PAGES, "the unwind tables", "some native code is walked by frame pointer") \
	X(UNWIND_FILES, "the unwind tables", "some native code is walked by frame pointer") \
	X(UNWIND_MAPPINGS, "the unwind tables", "some processes are walked by frame pointer") \
	X(UNWIND_PROCESSES, "the unwind tables", "some processes are walked by frame pointer") \
	X(UNWIND_OFFERS, "the unwind tables", "some short-lived processes are walked by frame pointer") \
	X(UNWIND_KNOWN, "the files that are known", "") /* what is dropped is read again */ \
	X(JVMS, "the JVMs", "") /* readers and agents; their number divides NAMES */ \
	X(READERS, "the readers of JVMs", "some JVMs have native frames only") \
	X(RINGS, "the rings of JVMs", "some JVMs have native frames only, --max-memory makes room for more") \
	X(WAITING, "the samples that wait", "some Java frames stay without names") \
	X(WAITING_BYTES, "the samples that wait", "some Java frames stay without names") \
	X(WAKERS, "the records of wakers", "some sleeps are without their waker") \
	X(HOLDERS, "the records of locks' holders", "some waits are without their holder") \
	X(EARLY, "the stacks of threads that sleep", "some sleeps have no stack") \
	X(SLEEPERS, "the stacks of threads that sleep over an end", "some of these sleeps are not shown") \
	X(SYMBOLS, "the symbols of files", "") /* what is dropped is read again */ \
	X(VITALS, "the JVMs that are followed", "some JVMs lack figures of their heap and threads")

#define ROOM_ENUM(name, what, effect) ROOM_##name,
enum room { ROOMS(ROOM_ENUM) ROOMS_COUNT };
#undef ROOM_ENUM

/* Nobody holds anything. `is_shared`: processes of several users can be recorded, so users have shares from now on. */
void room_open(bool is_shared);
void room_set_size(enum room room, size_t size); /* at first there is no bound */
/* The most that the payer may hold now. Less than he holds: he has taken it when there was more room. */
size_t room_limit(enum room room, const struct payer *payer);
size_t room_held(enum room room, const struct payer *payer);
/* How much must stay free for others when the payer, who has a share, takes a bit more. */
size_t room_reserve(enum room room, const struct payer *payer);
bool room_has(enum room room, const struct payer *payer, size_t count);
bool room_is_over(enum room room, const struct payer *payer); /* he holds more than he may now */
/* Returns false if the payer's share is used up. That is counted, and will be reported. */
bool room_take(enum room room, const struct payer *payer, size_t count);
void room_add(enum room room, const struct payer *payer, size_t count); /* the same, of what has its place already */
void room_refuse(enum room room, const struct payer *payer); /* counts a refusal */
void room_give(enum room room, const struct payer *payer, size_t count);
void room_empty(enum room room); /* nobody holds any of it */

/* A user whose share was used up. */
struct room_spent {
	uid_t uid;
	const char *what, *effect; /* of the first room that refused him something */
	size_t held, size;
};

/* Finds a user who was refused something and is not returned yet, among the first 8. False if there is none. */
bool room_next_spent(struct room_spent *ret);
