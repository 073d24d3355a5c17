/* SPDX-License-Identifier: MIT */
/* async-profiler's filter: of wall's samples, those of some threads only. Other events are not filtered. */
#pragma once

#include <stdbool.h>

#include "base/vec.h"
#include "profile/profile.h"

#define THREAD_CHOICES_MAX 65536

/* A program has added a thread to the filter, or has removed it. */
struct thread_choice {
	uint64_t realtime_ns;
	uint32_t tid;
	bool is_added;
};

struct thread_choices {
	struct vec(struct thread_choice) all; /* oldest first */
};

/* "120-127;132": thread ids and ranges of them; "" has those that the program has added. */
bool thread_filter_is_valid(const char *text);
/* Adds "+TID" or "-TID" with the time of the call. Returns 0 or -errno: -EINVAL for another text, -ENOSPC. */
int thread_filter_choose(struct thread_choices *choices, const char *text);
/*
 * Drops the samples of the event wall of other threads, or from times at which their thread was not added. The times of
 * the profile are CLOCK_REALTIME. Returns 0 or -errno.
 */
int thread_filter_apply(struct profile *profile, const char *text, const struct thread_choices *choices);
