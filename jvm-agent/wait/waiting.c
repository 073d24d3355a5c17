/* SPDX-License-Identifier: MIT */
#include "wait/waiting.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "hotspot/clock.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "sample/pages.h"
#include "sample/sample.h"

#define WAKE_NS 20000 /* a thread runs within this time after it was woken, unless the CPUs are busy */

/* Returns the length above which a wait is sampled: even below the interval, by the mixed bits of its begin. */
static uint64_t least_sampled(uint64_t interval, uint64_t begin_ns)
{
	uint64_t hash = (begin_ns ^ begin_ns >> 29) * 0xbf58476d1ce4e5b9ull;

	hash = (hash ^ hash >> 32) * 0x94d049bb133111ebull;
	return (uint64_t)((unsigned __int128)(hash ^ hash >> 31) * interval >> 64);
}

uint64_t wait_weight(uint64_t waited_ns, uint64_t interval, uint64_t begin_ns)
{
	if (waited_ns >= interval)
		return waited_ns;
	return least_sampled(interval, begin_ns) < waited_ns ? interval : 0;
}

uint64_t wait_release_of_interest(uint64_t interval, uint64_t begin_ns)
{
	uint64_t least_ns = least_sampled(interval, begin_ns);

	return begin_ns + (least_ns > WAKE_NS ? least_ns - WAKE_NS : 0);
}

#define LOCK_IS_OBJECT (1ull << 63) /* no address of a native lock has this bit */
#define VIRTUAL_KEPT_MAX 16384 /* stacks of virtual threads, of some hundred bytes to 2 kB each */

struct wait {
	uint64_t begin_ns;
	struct sample_kept *kept; /* owned; NULL: the stack has not been walked */
	bool is_virtual;
	struct sample_thread thread; /* of a virtual thread, its carrier's */
	struct lock_attribute lock; /* with DUET_AGENT_WITH_LOCK */
	struct address_attribute address; /* after it */
	struct class_attribute class; /* after it, with or without */
	uint32_t attribute_bytes; /* of all */
	bool is_shown; /* to BPF */
	struct duet_lock_waiter shown_before;
};

_Static_assert(offsetof(struct wait, address) == offsetof(struct wait, lock) + sizeof(struct lock_attribute),
	       "the address follows the lock");
_Static_assert(offsetof(struct wait, class) == offsetof(struct wait, address) + sizeof(struct address_attribute),
	       "the class follows the address");

static void free_wait(struct wait_event *event, struct wait *wait)
{
	if (wait && wait->is_shown)
		lock_waiters_restore(wait->thread.tid, &wait->shown_before);
	if (wait && wait->kept && wait->is_virtual)
		__atomic_fetch_sub(&event->virtual_kept, 1, __ATOMIC_RELAXED);
	if (wait)
		free(wait->kept);
	free(wait);
}

static void drop_wait(void *event, void *wait)
{
	free_wait(event, wait);
}

static uint64_t weight_at(const struct wait_event *event, const struct wait *wait, uint64_t end_ns)
{
	uint64_t waited_ns = end_ns > wait->begin_ns ? end_ns - wait->begin_ns : 0;

	return wait_weight(waited_ns, event->tap.every.interval, wait->begin_ns);
}

static struct tap_sample sample_from(const struct wait_event *event, const struct wait *wait, uint64_t weight)
{
	return (struct tap_sample){.event = event->tap.index,
				   .weight = weight,
				   .attributes = wait->lock.lock.id ? (const void *)&wait->lock : &wait->address,
				   .attribute_bytes = wait->attribute_bytes,
				   .is_whole = true};
}

void wait_event_open(struct wait_event *event, const struct duet_agent_event *from)
{
	waits_end(event->waits, drop_wait, event); /* a late callback may have put a wait after wait_event_close() */
	if (from->flags & DUET_AGENT_WITH_LOCK)
		lock_waiters_open();
	tap_event_open(&event->tap, from);
}

struct closing {
	struct wait_event *event;
	struct stay *stay;
	uint64_t ended_ns;
};

/* Samples a thread that still waits. */
static void end_wait(void *context, void *value)
{
	struct closing *closing = context;
	struct wait *wait = value;
	uint64_t weight = weight_at(closing->event, wait, closing->ended_ns);
	struct tap_sample from = sample_from(closing->event, wait, weight);

	if (weight && wait->kept)
		sample_write_kept(closing->stay, wait->kept, closing->ended_ns, weight, 0);
	else if (weight && wait->is_virtual)
		duet_ring_count(closing->stay->ring.page, DUET_AGENT_NO_SLOT);
	else if (weight)
		sample_blocked(closing->stay, &from, &wait->thread, closing->ended_ns);
	free_wait(closing->event, wait);
}

void wait_event_close(struct wait_event *event, uint64_t ended_ns)
{
	STAY(stay);
	struct closing closing = {event, stay, ended_ns};

	tap_event_close(&event->tap);
	if (event->tap.flags & DUET_AGENT_WITH_LOCK)
		lock_waiters_close();
	if (stay)
		waits_end(event->waits, end_wait, &closing);
	waits_trim(event->waits);
}

uint64_t wait_key(JNIEnv *env, jthread thread)
{
	return thread && jvm.thread_id ? (uint64_t)(*env)->GetLongField(env, thread, jvm.thread_id) : 0;
}

/* A virtual thread has no JavaThread. */
bool wait_is_virtual(JNIEnv *env, jthread thread)
{
	return !jvm_java_thread(env, thread);
}

uint64_t wait_address(jobject object)
{
	return object ? *(const uint64_t *)object : 0;
}

uint64_t wait_lock(const struct wait_event *event, jobject object)
{
	jint hash = 0;

	if (!(event->tap.flags & DUET_AGENT_WITH_LOCK) || (*jvm.jvmti)->GetObjectHashCode(jvm.jvmti, object, &hash))
		return 0;
	return LOCK_IS_OBJECT | (uint32_t)hash;
}

char *wait_class(JNIEnv *env, jobject object)
{
	jclass class = (*env)->GetObjectClass(env, object);
	char *name = jvm_class_signature(class);

	(*env)->DeleteLocalRef(env, class);
	return name;
}

/* Returns true if the stack is to be walked now. */
static bool keeps(struct wait_event *event, const struct wait *wait)
{
	if (!wait->is_virtual)
		return event->has_lock;
	if (__atomic_fetch_add(&event->virtual_kept, 1, __ATOMIC_RELAXED) < VIRTUAL_KEPT_MAX)
		return true;
	__atomic_fetch_sub(&event->virtual_kept, 1, __ATOMIC_RELAXED);
	return false;
}

/* Returns false if there is no room. */
static bool keep(struct wait_event *event, struct stay *stay, struct wait *wait)
{
	struct tap_sample from = sample_from(event, wait, 0);

	wait->kept = sample_keep(stay, &from, malloc);
	if (event->has_lock)
		ring_touch(&stay->ring); /* the thread that writes it has the lock */
	if (!wait->kept && wait->is_virtual)
		__atomic_fetch_sub(&event->virtual_kept, 1, __ATOMIC_RELAXED);
	return wait->kept;
}

static struct wait *new_wait(struct wait_event *event, struct stay *stay, const struct wait_reason *reason)
{
	struct wait *wait = malloc(sizeof(*wait));

	if (!wait)
		return NULL;
	wait->begin_ns = clock_ns();
	wait->kept = NULL;
	wait->is_virtual = reason->is_virtual;
	wait->is_shown = false;
	wait->thread = sample_own_thread();
	wait->attribute_bytes = address_attribute_set(&wait->address, reason->address);
	wait->attribute_bytes += class_attribute_set(&wait->class, reason->class_name);
	wait->lock.lock.id = 0;
	if (event->tap.flags & DUET_AGENT_WITH_LOCK && reason->lock)
		wait->attribute_bytes += lock_attribute_set(&wait->lock, reason->lock, wait->begin_ns, reason->owner);
	if (!keeps(event, wait) || keep(event, stay, wait))
		return wait;
	free_wait(event, wait);
	return NULL;
}

void wait_begins(struct wait_event *event, struct stay *stay, uint64_t key, const struct wait_reason *reason)
{
	struct wait *wait;

	free_wait(event, waits_take(event->waits, key));
	wait = new_wait(event, stay, reason);
	if (!wait)
		return;
	/* Publishes the wait to BPF. A thread that waits without its carrier is not woken itself. */
	wait->is_shown = wait->lock.lock.id && reason->blocks_thread;
	if (wait->is_shown)
		wait->shown_before =
			lock_waiters_show(wait->thread.tid, wait->lock.lock.id,
					  wait_release_of_interest(event->tap.every.interval, wait->begin_ns));
	if (waits_put(event->waits, key, wait))
		return;
	duet_ring_count(stay->ring.page, DUET_AGENT_NO_SLOT);
	free_wait(event, wait);
}

void wait_ends(struct wait_event *event, struct stay *stay, uint64_t key)
{
	struct wait *wait = waits_take(event->waits, key);
	uint64_t now_ns = clock_ns(), weight = wait ? weight_at(event, wait, now_ns) : 0;
	struct tap_sample from;

	if (weight && wait->kept) {
		sample_write_kept(stay, wait->kept, now_ns, weight, 0);
	} else if (weight) {
		from = sample_from(event, wait, weight);
		from.is_on_heap = wait->is_virtual;
		sample_here(stay, &from);
	}
	free_wait(event, wait);
}

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
