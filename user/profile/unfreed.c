/* SPDX-License-Identifier: MIT */
#include "profile/unfreed.h"

#include <errno.h>
#include <stdlib.h>

#define PID_FACTOR 0x9e3779b97f4a7c15ull /* 2^64 divided by the golden ratio: pids become far from each other */

static bool is_of_memory(const struct unfreed *u, const struct profile_sample *sample)
{
	return sample->address && (sample->event == u->taken || sample->event == u->freed);
}

/* Several processes have the same addresses. */
static uint64_t key_of(const struct unfreed *u, const struct profile_sample *sample)
{
	return sample->address ^ u->profile->threads.items[sample->thread].pid * PID_FACTOR;
}

/* Samples of several CPUs need not be in the order of time. */
static int look_at(void *context, const struct profile_sample *sample)
{
	struct unfreed *u = context;
	struct unfreed_use use = {.time_ns = sample->time_ns, .sample = u->found++};
	uint64_t index;

	u->unknown += sample->event == u->taken && !sample->address;
	if (!is_of_memory(u, sample))
		return 0;
	if (map_get(&u->last, key_of(u, sample), &index)) {
		if (use.time_ns >= u->latest.items[index].time_ns)
			u->latest.items[index] = use;
		return 0;
	}
	index = u->latest.len;
	return vec_push(&u->latest, use) < 0 ? -ENOMEM : map_put(&u->last, key_of(u, sample), index);
}

int unfreed_find(struct unfreed *unfreed, const struct profile *profile)
{
	unfreed->profile = profile;
	return timeline_each(&profile->samples, look_at, unfreed);
}

bool unfreed_next(struct unfreed *unfreed, const struct profile_sample *sample)
{
	uint64_t number = unfreed->asked++, index;

	return sample->event == unfreed->taken && sample->address &&
	       map_get(&unfreed->last, key_of(unfreed, sample), &index) &&
	       unfreed->latest.items[index].sample == number;
}

void unfreed_release(struct unfreed *unfreed)
{
	map_release(&unfreed->last);
	vec_release(&unfreed->latest);
}
