/* SPDX-License-Identifier: MIT */
/*
 * Which rows of a profile's threads are one thread, for formats that list threads. A thread has several rows if it was
 * renamed, or if its container was not known at all times. What runs another program from now on is another thread.
 */
#ifndef WRITERS_SHARED_THREADS_H
#define WRITERS_SHARED_THREADS_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct threads {
	struct map firsts; /* pid << 32 | tid -> first row of what runs there now */
	struct vec(uint32_t) rows; /* by index of the thread: the first index of the same thread */
	struct vec(uint32_t) lasts; /* by that first index: the last one, of those with a cgroup if any has one */
};

/* Adds the threads that the profile has got since. Returns 0 or -ENOMEM. */
int threads_extend(struct threads *threads, const struct profile *profile);
void threads_release(struct threads *threads);

#endif
