/* SPDX-License-Identifier: MIT */
/*
 * Who held the locks that threads waited for: records with DUET_ROLE_HOLDER, in the order of time for each lock. The
 * time from one release to the next is that of the thread which released the lock at its end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "join/join.h"

#define HOLDERS_PARTS 64 /* most parts of one wait */
#define HOLDERS_KEEP_NS (60ull * 1000 * 1000 * 1000) /* for this long, longer waits lack their beginning */

struct holders {
	struct map locks; /* by process and lock -> struct lock_history, owned */
	uint64_t swept_ns;
};

/* A part of a wait. */
struct holding {
	/* the release at its end; owned by struct holders, until the next change. NULL: only the thread is known */
	const struct decision *by;
	uint32_t owner; /* its tid, as struct duet_lock has it */
	uint64_t ns;
};

/* Initialize with {0}. */
void holders_release(struct holders *holders);
/* Adds a copy of the decision, which has no Java half. When there is no memory, it is lost. */
void holders_add(struct holders *holders, const struct decision *decision, uint64_t now_ns);
void holders_sweep(struct holders *holders, uint64_t now_ns); /* removes what is too old; call often */

/* Call once after holders_split(): a wait that nobody has ended shows until when another thread had the lock. */
void holders_add_wait(struct holders *holders, const struct decision *wait, uint64_t now_ns);

/* Returns the lock for which the sample's thread waited, or NULL. */
const struct duet_lock *holders_lock(const struct duet_sample *sample);
/*
 * Splits a wait by the releases of its lock. What follows the last one belongs to that one: the thread had been woken.
 * Of a wait with more than HOLDERS_PARTS releases, so many moments in equal distances are looked at. Returns the number
 * of parts; 0: nothing is known, or the sample is no wait for a lock.
 */
size_t holders_split(const struct holders *holders, const struct decision *wait,
		     struct holding ret_parts[HOLDERS_PARTS]);
