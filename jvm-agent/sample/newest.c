/* SPDX-License-Identifier: MIT */
#include "sample/newest.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "locked.h"

#define BYTES (DUET_NEWEST_SLOTS * sizeof(uint64_t))

static struct {
	pthread_mutex_t lock;
	uint64_t *slots; /* atomic; NULL: nobody has asked yet, and no recording was made. Never unmapped */
} newest = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *map(int fd)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Call with the lock held. */
static bool reserve(void)
{
	if (!newest.slots)
		__atomic_store_n(&newest.slots, map(-1), __ATOMIC_RELEASE);
	return newest.slots;
}

/* Puts new memory in the place of the old, in one step for who reads it. False: the old is still there. */
static bool replace(int fd)
{
	void *at = map(fd);

	if (!at)
		return false;
	if (mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, newest.slots) == newest.slots)
		return true;
	munmap(at, BYTES);
	return false;
}

/* A file could be cut later, and then reading it would end the process. BPF's array has no positions. */
static bool is_safe(int fd)
{
	return fd >= 0 && lseek(fd, 0, SEEK_CUR) < 0 && errno == ESPIPE;
}

uint64_t *newest_here(void)
{
	LOCKED(&newest.lock);

	return reserve() ? &newest.slots[(uint32_t)syscall(SYS_gettid) % DUET_NEWEST_SLOTS] : NULL;
}

void newest_begin(enum duet_newest how, int fd)
{
	LOCKED(&newest.lock);

	if (!reserve() || (how == DUET_NEWEST_SHARED && is_safe(fd) && replace(fd)))
		return;
	(void)replace(-1);
	for (uint32_t i = 0; how != DUET_NEWEST_OWN && i < DUET_NEWEST_SLOTS; i++)
		newest.slots[i] = INT64_MAX; /* whoever asks was sampled */
}

void newest_end(void)
{
	LOCKED(&newest.lock);

	if (newest.slots)
		(void)replace(-1);
}

void newest_note(uint32_t tid, uint64_t time_ns)
{
	uint64_t *slots = __atomic_load_n(&newest.slots, __ATOMIC_ACQUIRE);
	uint64_t *slot = slots ? &slots[tid % DUET_NEWEST_SLOTS] : NULL;

	if (slot && __atomic_load_n(slot, __ATOMIC_RELAXED) < time_ns)
		__atomic_store_n(slot, time_ns, __ATOMIC_RELAXED);
}
