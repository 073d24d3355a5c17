/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <time.h>

#define DRAIN_STEP_NS 1000000
#define DRAIN_STEPS 1000

static struct session *current;
static unsigned int inside;
static bool sealed;

/*
 * Sequentially consistent on both sides: either the one who enters sees
 * `current` gone, or the one who closes sees him counted. Nothing weaker
 * orders a store before a load of another variable.
 */
struct session *session_enter(void)
{
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&current, __ATOMIC_SEQ_CST);
}

void session_leave(void)
{
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}

void session_open(struct session *session)
{
	__atomic_store_n(&current, session, __ATOMIC_SEQ_CST);
	/* Against a session_seal() that came between. */
	if (__atomic_load_n(&sealed, __ATOMIC_SEQ_CST))
		__atomic_store_n(&current, NULL, __ATOMIC_SEQ_CST);
}

bool session_close(void)
{
	struct timespec step = {.tv_nsec = DRAIN_STEP_NS};

	__atomic_store_n(&current, NULL, __ATOMIC_SEQ_CST);
	for (int i = 0; i < DRAIN_STEPS; i++) {
		if (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

void session_seal(void)
{
	__atomic_store_n(&sealed, true, __ATOMIC_SEQ_CST);
	session_close();
}
