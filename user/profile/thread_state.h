/* SPDX-License-Identifier: MIT */
/* What a thread did at a sample of its time, as JFR has it. */
#ifndef PROFILE_THREAD_STATE_H
#define PROFILE_THREAD_STATE_H

#include "profile/profile.h"

/* Numbers of profile_sample.address, for events of time. .duet files contain them: never change them. */
enum thread_state {
	THREAD_STATE_UNKNOWN,
	THREAD_DEFAULT, /* it had a CPU: a sample of CPU time */
	THREAD_RUNNABLE,
	THREAD_SLEEPING,
	THREAD_STATES
};

/*
 * Returns the state that the sample has, or else the one that its stack shows: a frame for what the thread waits for.
 * Samples of other events than CPU time, wall clock and sleeps have none.
 */
enum thread_state thread_state_of(const struct profile *profile, const struct profile_sample *sample);

#endif
