/* SPDX-License-Identifier: MIT */
/*
 * --max-memory is one pool. Every part says what it has in real pages; what nobody else has is the heap's, and nothing
 * of that is anybody's share. As it fills, in this order:
 *
 * 1. what can be made again is dropped;
 * 2. the tables of names that JVMs told stop growing: what was used least makes room;
 * 3. new stacks and threads are refused.
 *
 * Each is taken up again as soon as there is room.
 */
#ifndef LIMITS_POOL_H
#define LIMITS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of RAM, none of them counted twice. */
struct pool_parts {
	size_t maps; /* the kernel's for BPF and perf; mapped by the loader too */
	size_t rings; /* pages that agents or we have touched */
	size_t files; /* the executable and libraries */
	size_t heap; /* the loader's own pages */
};

struct pool_demand {
	size_t heap; /* allocated */
	size_t stacks; /* of it, the profile's: a writer needs POOL_WRITER times as much beside it */
	size_t stacks_soon; /* the same, once what it is in has grown for one more stack */
	size_t writing; /* for a writer that is at work */
};

#define POOL_WRITER 3

struct pool {
	size_t max_bytes; /* 0 = no limit */
	struct pool_parts parts; /* as last looked at */
	size_t peak_bytes; /* of all parts together */
	size_t promised_bytes; /* of rings, touched or not */
	size_t heap_max; /* what the others leave */
	size_t stacks_max; /* for the profile */
	bool names_full; /* no more of them */
	uint64_t dropped_ns; /* when caches last were */
	uint64_t drop_again_ns; /* so long after that they may be again */
	uint64_t drops;
	size_t needed_bytes; /* the least limit that would have done, as far as is known; 0 = this one does */
};

/* What the pool has done for it. `measure` is called again after something was dropped. */
struct pool_user {
	void *context;
	void (*measure)(void *context, struct pool_demand *ret);
	void (*drop_caches)(void *context);
};

size_t pool_sum(const struct pool_parts *parts);
void pool_look(struct pool *pool, const struct pool_parts *parts);
/* Between samples: sets stacks_max and names_full, after dropping what can be dropped. */
void pool_step(struct pool *pool, const struct pool_user *user, uint64_t now_ns);
/* Bytes for a ring's lane: what is asked for, halved until others have room too; 0: no room even for `least`. */
size_t pool_lane_bytes(const struct pool *pool, size_t asked, size_t least);
/* Of a profile that has kept so many stacks and refused so many: notes which limit would have been enough. */
void pool_note_refused(struct pool *pool, const struct pool_demand *demand, uint64_t kept, uint64_t refused);

#endif
