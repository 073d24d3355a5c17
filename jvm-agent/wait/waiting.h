/* SPDX-License-Identifier: MIT */
/*
 * Samples of threads that wait for something. Usually the stack is walked when the wait has ended and is long enough to
 * be sampled. A thread that has taken a lock by then must not hold it longer for that: its stack is walked before the
 * wait, and only written at the end. So is the stack of a virtual thread, which may be on no thread's stack when the
 * recording ends; if too many wait, those whose waits do not end are dropped and counted.
 */
#pragma once

#include <jvmti.h>

#include "tap.h"
#include "wait/waits.h"

struct stay;

/* An event whose samples are waits. Static: threads may use it after the recording. All 0 but for `waits` is closed. */
struct wait_event {
	bool has_lock; /* at its end the thread holds a lock */
	struct tap_event tap; /* its interval is in ns */
	uint32_t virtual_kept; /* atomic: waits of virtual threads whose stack is kept */
	struct waits *waits; /* static and without a value: its unused pages cost nothing, in memory or in the file */
};

/* Called on the agent's thread, when no callback of an earlier recording runs any more. */
void wait_event_open(struct wait_event *event, const struct duet_agent_event *from);
/* Samples the waits that have not ended, as if they ended at ended_ns. */
void wait_event_close(struct wait_event *event, uint64_t ended_ns);

/* Returns a thread's key, or 0. A virtual one has the same on all carriers, and may end its wait on another. */
uint64_t wait_key(JNIEnv *env, jthread thread);
/* Returns true if the thread may continue on another carrier. */
bool wait_is_virtual(JNIEnv *env, jthread thread);
/* Returns the signature of the object's class, which the caller frees with jvm_deallocate(), or NULL. */
char *wait_class(JNIEnv *env, jobject object);

/* Returns where the object is now, as the reference says; 0: NULL. The collector may move it at any time. */
uint64_t wait_address(jobject object);
/* Returns the id of the object as a lock, see struct duet_lock; 0: nobody asks for it, or it is not known. */
uint64_t wait_lock(const struct wait_event *event, jobject object);

/*
 * Returns the weight of a wait; 0: it is not sampled. A wait as long as the interval or longer is always sampled. A
 * shorter wait is sampled with a probability of its length divided by the interval, and weighs the interval.
 */
uint64_t wait_weight(uint64_t waited_ns, uint64_t interval, uint64_t begin_ns);
/* Returns the time before which the wait's end is of no interest: the wait would not be sampled, or hardly. */
uint64_t wait_release_of_interest(uint64_t interval, uint64_t begin_ns);

/* What a thread waits for. */
struct wait_reason {
	const char *class_name; /* signature of the class of the object; NULL: not known */
	uint64_t address; /* from wait_address(); 0: not known */
	uint64_t lock; /* from wait_lock() */
	uint32_t owner; /* thread that has it; 0: not known */
	bool is_virtual; /* a virtual thread waits */
	bool blocks_thread; /* the calling thread is blocked; a virtual thread may wait without its carrier */
};

/* Both are for callers inside stay_enter(). A wait whose end is not reported is replaced by the thread's next one. */
void wait_begins(struct wait_event *event, struct stay *stay, uint64_t key, const struct wait_reason *reason);
void wait_ends(struct wait_event *event, struct stay *stay, uint64_t key);

/*
 * lock_waiters_x() show BPF which threads wait for a lock, and for which (struct duet_lock_waiter). The first two are
 * called on the agent's thread, the others on any; they allocate nothing, and do nothing while there is no array. The
 * memory stays for the next recording. A failure means that there is no array.
 */
void lock_waiters_open(void);
void lock_waiters_close(void);
uint64_t lock_waiters_address(void); /* 0: there is no array */

/*
 * Shows that the calling thread, whose id is `tid`, waits for a lock. Returns what was shown before, which
 * lock_waiters_restore() shows again when the wait has ended: a wait for a native lock may be part of another wait.
 */
struct duet_lock_waiter lock_waiters_show(uint32_t tid, uint64_t lock, uint64_t from_ns);
void lock_waiters_restore(uint32_t tid, const struct duet_lock_waiter *before);
