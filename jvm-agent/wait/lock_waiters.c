/* SPDX-License-Identifier: MIT */
#include "wait/lock_waiters.h"

#include <sys/mman.h>

#include "sample/pages.h"

#define BYTES (DUET_LOCK_WAITERS * sizeof(struct duet_lock_waiter))

static struct duet_lock_waiter *all; /* never freed: a thread may come late */
static struct duet_lock_waiter *waiters; /* atomic; NULL: nobody asks */

void lock_waiters_open(void)
{
	if (!all)
		all = pages_new(BYTES);
	else if (!lock_waiters_address())
		madvise(all, BYTES, MADV_DONTNEED); /* threads that came late may have left entries */
	__atomic_store_n(&waiters, all, __ATOMIC_RELEASE);
}

void lock_waiters_close(void)
{
	__atomic_store_n(&waiters, NULL, __ATOMIC_RELEASE);
}

uint64_t lock_waiters_address(void)
{
	return (uintptr_t)__atomic_load_n(&waiters, __ATOMIC_ACQUIRE);
}

/* BPF reads the entry only while its thread sleeps. */
struct duet_lock_waiter lock_waiters_show(uint32_t tid, uint64_t lock, uint64_t from_ns)
{
	struct duet_lock_waiter *array = __atomic_load_n(&waiters, __ATOMIC_ACQUIRE), before = {0};

	if (!array)
		return before;
	before = array[tid % DUET_LOCK_WAITERS];
	array[tid % DUET_LOCK_WAITERS] = (struct duet_lock_waiter){.tid = tid, .lock = lock, .from_ns = from_ns};
	return before;
}

/* An entry of another thread is not this thread's to restore. */
void lock_waiters_restore(uint32_t tid, const struct duet_lock_waiter *before)
{
	struct duet_lock_waiter *array = __atomic_load_n(&waiters, __ATOMIC_ACQUIRE);

	if (array)
		array[tid % DUET_LOCK_WAITERS] = before->tid == tid ? *before : (struct duet_lock_waiter){0};
}
