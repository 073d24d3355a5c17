/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The threads of a process that wait for a lock, as the agent in the process shows them to BPF. When a thread of the
 * process wakes one of them, it has released that lock: BPF takes its stack (DUET_ROLE_HOLDER). The agent's array is in
 * the memory of the process, which may write anything into it.
 */
#ifndef DUET_LOCKS_H
#define DUET_LOCKS_H

#include "duet_types.h"

#define DUET_LOCK_WAITERS 65536 /* entries of the array; a thread has that of its tid modulo this; a power of 2 */

/* Only its thread writes the entry, before and after it waits. */
struct duet_lock_waiter {
	uint32_t tid; /* in the thread's innermost pid namespace; 0: it does not wait */
	uint32_t reserved;
	uint64_t lock; /* as struct duet_lock has it */
	uint64_t from_ns; /* a release before this time, CLOCK_MONOTONIC, is of no interest: the wait is too short */
	uint64_t reserved_too;
};
DUET_ASSERT_SIZE(struct duet_lock_waiter, 32);

/* Value of the map `lock_waiters`, key = tgid in the loader's pid namespace. */
struct duet_lock_waiters {
	uint64_t start_ticks; /* as in struct duet_jvm_target */
	uint64_t address; /* of DUET_LOCK_WAITERS times struct duet_lock_waiter, in the process */
};
DUET_ASSERT_SIZE(struct duet_lock_waiters, 16);

/* The value of DUET_ATTRIBUTE_LOCK: a wait for a lock. */
struct duet_lock {
	uint64_t id; /* != 0; the same for all waits for the same lock of a process, however long it is in use */
	uint64_t begin_ns; /* when the wait began, CLOCK_MONOTONIC; the sample's time is its end */
	uint32_t owner; /* the thread that had the lock then, in the innermost pid namespace; 0: not known */
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_lock, 24);

#endif
