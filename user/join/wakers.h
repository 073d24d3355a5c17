/* SPDX-License-Identifier: MIT */
/*
 * Records of the wakers of sleeping threads (enum duet_role). They are held until the sample of the sleep arrives; then
 * the two stacks become one. The sleeper's stack comes first, then the frame WAKERS_SEPARATOR, then the waker's stack
 * from its leaf to its root, and its name: the thread, [timer], [softirq], or [irq: device].
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "join/decision.h"
#include "profile/profile.h"

#define WAKERS_WAIT_NS (2ull * 1000 * 1000 * 1000) /* longest wait of a sleep's sample for the record */
#define WAKERS_KEEP_NS (12ull * 1000 * 1000 * 1000) /* longest time that a record is held: more than DECIDED_WAIT_NS */
#define WAKERS_SEPARATOR "[woken by]"
#define HOLDERS_SEPARATOR "[held by]" /* in its place, after the stack of a wait for a lock, see join/holders.h */

struct wakers {
	struct map by_id; /* duet_sample.waker -> struct held, owned */
	size_t bytes;
	uint64_t swept_ns; /* when records that no sample needed were removed last */
};

/* Initialize with {0}. */
void wakers_release(struct wakers *wakers);
/* Adds a copy of the decision, which has no Java half. When there is no memory, it is lost and counted. */
void wakers_add(struct wakers *wakers, const struct decision *decision, uint64_t now_ns);
/* Returns NULL if it has not arrived, or if its process executed another program since. */
const struct decision *wakers_find(const struct wakers *wakers, uint64_t id);
void wakers_remove(struct wakers *wakers, uint64_t id);
/* Removes records that have waited too long. Call often. */
void wakers_sweep(struct wakers *wakers, uint64_t now_ns);

/* Returns true if the kernel's frames of this stack of the profile are those of an interrupt. */
bool wakers_is_interrupt(const struct profile *profile, uint32_t waker);

/*
 * Returns the profile's node of the sleeper's stack `node` with the waker's after it, or UINT32_MAX when out of memory.
 * `waker` is the node of the waker's stack, and `who` the name of the thread; an interrupt has its own.
 */
uint32_t wakers_append(struct profile *profile, uint32_t node, uint32_t waker, const struct duet_sample *sample,
		       const char *who);

/* The same for the holder of a lock of whom only the name is known. */
uint32_t wakers_append_name(struct profile *profile, uint32_t node, const char *who);
