/* SPDX-License-Identifier: MIT */
/* Samples by event, thread and time, for formats that show each thread's samples one after the other. */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

/*
 * Which rows of a profile's threads are one thread, for formats that list threads. A thread has several rows if it was
 * renamed, or if its container was not known at all times. What runs another program from now on is another thread.
 */
struct threads {
	struct map firsts; /* pid << 32 | tid -> first row of what runs there now */
	struct vec(uint32_t) rows; /* by index of the thread: the first index of the same thread */
	struct vec(uint32_t) lasts; /* by that first index: the last one, of those with a cgroup if any has one */
};

/* Adds the threads that the profile has got since. Returns 0 or -ENOMEM. */
int threads_extend(struct threads *threads, const struct profile *profile);
void threads_release(struct threads *threads);

/* if there are more samples, those of a thread with equal stacks are merged, and have the time of the first */
#define ORDERED_MAX (1u << 20)

struct ordered {
	struct vec(struct profile_sample) samples;
	struct threads threads;
	bool is_merged;
};

/* Returns 0 or -errno; call ordered_release() in both cases. */
int ordered_build(struct ordered *ordered, const struct profile *profile);
/* The merged samples, in the order in which their stacks are first in the profile. Else as ordered_build(). */
int ordered_merge(struct ordered *ordered, const struct profile *profile);
/* The index in the profile under which the sample's thread is listed: all samples of one thread have the same. */
uint32_t ordered_thread(const struct ordered *ordered, const struct profile_sample *sample);
void ordered_release(struct ordered *ordered);
