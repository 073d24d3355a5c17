/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for a lock of the C library: mutexes, and read-write locks. Functions of the agent stand before the
 * library's in the linkage tables of all other libraries. They first try the lock, and only if that fails they measure
 * the library's own function, which waits: its result is returned. The caller may be the allocator: nothing allocates.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "duet_record.h"
#include "hook/linkage.h"
#include "hotspot/clock.h"
#include "jvm/stay.h"
#include "libc_versions.h"
#include "sample/pages.h"
#include "sample/regs.h"
#include "sample/sample.h"
#include "tap.h"
#include "wait/waiting.h"

/* Walks the stack before the wait, to keep the lock no longer; but after it where the last wait was a short one. */
#define SHORT_NS 20000
#define LOCKS 4096 /* whose last wait is remembered, by a hash */

/* Samples whose wait has not ended. One takes 4 to 20 KB while its thread waits; more threads are walked afterwards. */
#define KEPT 512
#define KEPT_TRIES 16
#define KEPT_BYTES \
	(sizeof(struct sample_kept) + sizeof(struct duet_sample) + DUET_MAX_USER_STACK * 12 + 64 + \
	 sizeof(struct address_attribute) + sizeof(struct lock_attribute))

struct kept_place {
	bool is_taken; /* atomic; by a thread, until it has returned from its wait */
	struct sample_kept *waiting; /* atomic; who exchanges it for NULL may write it */
	unsigned char room[KEPT_BYTES] __attribute__((aligned(8)));
};

static struct {
	struct tap_event event;
	uint64_t begun_ns;
	struct kept_place *places; /* KEPT of them; they stay for the next recording */
	uint8_t was_short[LOCKS];
} locks;

static bool shows_locks(void)
{
	return locks.event.flags & DUET_AGENT_WITH_LOCK;
}

static uint8_t *was_short(const void *lock)
{
	return &locks.was_short[((uintptr_t)lock * 0x9e3779b97f4a7c15ull) >> 52];
}

_Static_assert(LOCKS == 1 << 12, "as many as was_short() finds");

static void *take_place(size_t bytes)
{
	uint32_t start = (uint32_t)((uintptr_t)__builtin_thread_pointer() * 0x9e3779b97f4a7c15ull >> 40);

	for (uint32_t i = 0; i < KEPT_TRIES && bytes <= KEPT_BYTES; i++) {
		struct kept_place *place = &locks.places[(start + i) % KEPT];

		if (!__atomic_exchange_n(&place->is_taken, true, __ATOMIC_ACQUIRE))
			return place->room;
	}
	return NULL;
}

static struct kept_place *place_of(struct sample_kept *kept)
{
	return (struct kept_place *)((char *)kept - offsetof(struct kept_place, room));
}

struct lock_wait {
	const void *lock;
	uintptr_t function; /* of the library */
	struct regs caller;
	uint64_t begin_ns;
	struct sample_kept *kept; /* NULL: the stack is walked when the wait has ended */
	struct address_attribute address;
	struct lock_attribute attribute; /* after it, with DUET_AGENT_WITH_LOCK */
	uint32_t attribute_bytes; /* of both */
	uint32_t tid; /* 0: BPF is not shown that the thread waits */
	struct duet_lock_waiter shown_before;
};

_Static_assert(offsetof(struct lock_wait, attribute) ==
		       offsetof(struct lock_wait, address) + sizeof(struct address_attribute),
	       "one attribute follows the other");

static struct tap_sample sample_from(const struct lock_wait *wait, uint64_t weight)
{
	return (struct tap_sample){.event = locks.event.index,
				   .weight = weight,
				   .caller = &wait->caller,
				   .callee = wait->function,
				   .attributes = &wait->address,
				   .attribute_bytes = wait->attribute_bytes};
}

static void show(struct lock_wait *wait)
{
	uint64_t from_ns = wait_release_of_interest(locks.event.every.interval, wait->begin_ns);

	wait->attribute_bytes += lock_attribute_set(&wait->attribute, (uintptr_t)wait->lock, wait->begin_ns, 0);
	wait->tid = sample_own_thread().tid;
	wait->shown_before = lock_waiters_show(wait->tid, (uintptr_t)wait->lock, from_ns);
}

/* A recording may end before the store: then the next one, or the thread itself, finds the sample. */
static void wait_begins_at(struct lock_wait *wait)
{
	STAY(stay);
	struct tap_sample from;

	wait->begin_ns = clock_ns();
	wait->attribute_bytes = address_attribute_set(&wait->address, (uintptr_t)wait->lock);
	if (stay && tap_event_is_open(&locks.event) && shows_locks())
		show(wait);
	from = sample_from(wait, 0);
	if (stay && tap_event_is_open(&locks.event) && !__atomic_load_n(was_short(wait->lock), __ATOMIC_RELAXED))
		wait->kept = sample_keep(stay, &from, take_place);
	if (wait->kept)
		__atomic_store_n(&place_of(wait->kept)->waiting, wait->kept, __ATOMIC_RELEASE);
}

static void write_wait(struct stay *stay, const struct lock_wait *wait, uint64_t now_ns)
{
	uint64_t weight = wait_weight(now_ns - wait->begin_ns, locks.event.every.interval, wait->begin_ns);
	struct tap_sample from = sample_from(wait, weight);

	if (!weight)
		return;
	if (wait->kept)
		sample_write_kept(stay, wait->kept, now_ns, weight, 0);
	else
		sample_here(stay, &from);
}

/* `error` is what the library's function has returned. What it refused without waiting is no sample. */
static void wait_ends_at(const struct lock_wait *wait, int error)
{
	bool has_waited = !error || error == EOWNERDEAD || error == ETIMEDOUT;
	STAY(stay);
	uint64_t now_ns = clock_ns();
	/* else the end of the recording has written the sample */
	bool is_mine = !wait->kept || __atomic_exchange_n(&place_of(wait->kept)->waiting, NULL, __ATOMIC_ACQ_REL);

	if (wait->tid)
		lock_waiters_restore(wait->tid, &wait->shown_before);
	__atomic_store_n(was_short(wait->lock), now_ns - wait->begin_ns < SHORT_NS, __ATOMIC_RELAXED);
	if (stay && tap_event_is_open(&locks.event) && is_mine && has_waited && wait->begin_ns >= locks.begun_ns)
		write_wait(stay, wait, now_ns);
	if (wait->kept)
		__atomic_store_n(&place_of(wait->kept)->is_taken, false, __ATOMIC_RELEASE);
}

/* A hook. A lock that is refused without being held is not waited for. `errno` is not a lock function's to change. */
#define LOCK(lock_, try, function_, call) \
	do { \
		struct lock_wait wait; \
		int error = try(lock_), saved_errno; \
\
		if (__builtin_expect(error != EBUSY, 1)) \
			return error; \
		if (!tap_event_is_open(&locks.event)) \
			return call; \
		saved_errno = errno; \
		wait = (struct lock_wait){ \
			.lock = lock_, .function = (uintptr_t)(function_), .caller = REGS_OF_CALLER()}; \
		wait_begins_at(&wait); \
		error = call; \
		wait_ends_at(&wait, error); \
		errno = saved_errno; \
		return error; \
	} while (0)

static int hook_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	LOCK(mutex, pthread_mutex_trylock, pthread_mutex_lock, pthread_mutex_lock(mutex));
}

static int hook_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
	LOCK(mutex, pthread_mutex_trylock, pthread_mutex_timedlock, pthread_mutex_timedlock(mutex, until));
}

static int hook_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	LOCK(lock, pthread_rwlock_tryrdlock, pthread_rwlock_rdlock, pthread_rwlock_rdlock(lock));
}

static int hook_pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
	LOCK(lock, pthread_rwlock_tryrdlock, pthread_rwlock_timedrdlock, pthread_rwlock_timedrdlock(lock, until));
}

static int hook_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	LOCK(lock, pthread_rwlock_trywrlock, pthread_rwlock_wrlock, pthread_rwlock_wrlock(lock));
}

static int hook_pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
	LOCK(lock, pthread_rwlock_trywrlock, pthread_rwlock_timedwrlock, pthread_rwlock_timedwrlock(lock, until));
}

#define HOOK(function) {#function, (uintptr_t)hook_##function, false, 0, NULL}

static struct linkage_hook hooks[] = {
	HOOK(pthread_mutex_lock),
	HOOK(pthread_mutex_timedlock),
	HOOK(pthread_rwlock_rdlock),
	HOOK(pthread_rwlock_timedrdlock),
	HOOK(pthread_rwlock_wrlock),
	HOOK(pthread_rwlock_timedwrlock),
};

static struct linkage_set set = {.hooks = hooks, .count = sizeof(hooks) / sizeof(hooks[0])};

static void lock_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	STAY(stay);

	tap_event_close(&locks.event);
	if (shows_locks())
		lock_waiters_close();
	linkage_close(&set);
	for (int i = 0; i < KEPT; i++) {
		struct sample_kept *kept = __atomic_exchange_n(&locks.places[i].waiting, NULL, __ATOMIC_ACQ_REL);
		uint64_t begin_ns = kept ? kept->begin_ns : ended_ns;
		uint64_t waited_ns = ended_ns > begin_ns ? ended_ns - begin_ns : 0;
		uint64_t weight = wait_weight(waited_ns, locks.event.every.interval, begin_ns);

		if (stay && kept && weight)
			sample_write_kept(stay, kept, ended_ns, weight, 0);
	}
}

static int lock_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	*ret_why = "there is no memory for the samples of waiting threads";
	if (!locks.places)
		locks.places = pages_new(KEPT * sizeof(*locks.places));
	if (!locks.places)
		return -ENOMEM;
	*ret_why = "the functions of locks are not found in the agent's linkage table";
	if (!linkage_open(&set))
		return -ENOENT;
	memset(locks.was_short, 0, sizeof(locks.was_short));
	locks.begun_ns = clock_ns();
	if (event->flags & DUET_AGENT_WITH_LOCK)
		lock_waiters_open();
	tap_event_open(&locks.event, event);
	linkage_install();
	return 0;
}

const struct agent_tap tap_nativelock = {
	.kind = DUET_AGENT_EVENT_NATIVELOCK,
	.needs_no_jvm = true,
	.start = lock_start,
	.stop = lock_stop,
	.rescan = linkage_install,
};
