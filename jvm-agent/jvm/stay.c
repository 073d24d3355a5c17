/* SPDX-License-Identifier: MIT */
#include "jvm/stay.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_STEP_NS 1000000
#define DRAIN_STEPS 1000

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/*
 * A child of fork() has the handler, but not the ring's pages (MADV_DONTFORK): a stray signal would end the child. So
 * the pointer to the open stay is on a page that children find zeroed (MADV_WIPEONFORK); not_wiped before Linux 4.14.
 */
static struct stay *not_wiped;
static struct stay **current = &not_wiped;
static unsigned int inside;
static bool sealed;

/*
 * Sequentially consistent here and in stay_close(): either the one who enters sees that no stay is open, or the one who
 * closes sees that somebody is inside. Nothing weaker orders a store before a load of another variable.
 */
struct stay *stay_enter(void)
{
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(__atomic_load_n(&current, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
}

void stay_leave(void)
{
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}

static void set_open(struct stay *stay)
{
	__atomic_store_n(__atomic_load_n(&current, __ATOMIC_SEQ_CST), stay, __ATOMIC_SEQ_CST);
}

/* Done once, and the page is never unmapped: handlers may read it at any time. */
static void make_wiped(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	if (madvise(page, bytes, MADV_WIPEONFORK))
		munmap(page, bytes);
	else
		__atomic_store_n(&current, page, __ATOMIC_SEQ_CST);
}

void stay_open(struct stay *stay)
{
	if (current == &not_wiped)
		make_wiped();
	set_open(stay);
	/* In case stay_seal() ran in between. */
	if (__atomic_load_n(&sealed, __ATOMIC_SEQ_CST))
		set_open(NULL);
}

bool stay_close(void)
{
	struct timespec step = {.tv_nsec = DRAIN_STEP_NS};

	set_open(NULL);
	for (int i = 0; i < DRAIN_STEPS; i++) {
		if (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

void stay_seal(void)
{
	__atomic_store_n(&sealed, true, __ATOMIC_SEQ_CST);
	stay_close();
}
