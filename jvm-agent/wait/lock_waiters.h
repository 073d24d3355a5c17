/* SPDX-License-Identifier: MIT */
/*
 * Shows BPF which threads wait for a lock, and for which (struct duet_lock_waiter). All functions but the first two may
 * be called on any thread, and allocate nothing. They do nothing while there is no array.
 */
#pragma once

#include "duet_record.h"

/* Called on the agent's thread. The memory stays for the next recording. A failure means that there is no array. */
void lock_waiters_open(void);
void lock_waiters_close(void);
uint64_t lock_waiters_address(void); /* 0: there is no array */

/*
 * Shows that the calling thread, whose id is `tid`, waits for a lock. Returns what was shown before, which
 * lock_waiters_restore() shows again when the wait has ended: a wait for a native lock may be part of another wait.
 */
struct duet_lock_waiter lock_waiters_show(uint32_t tid, uint64_t lock, uint64_t from_ns);
void lock_waiters_restore(uint32_t tid, const struct duet_lock_waiter *before);
