/* SPDX-License-Identifier: MIT */
/* The times of spans and of calls of traced methods, by thread: selects the samples within them. */
#pragma once

#include "base/vec.h"
#include "profile/profile.h"

struct interval {
	uint64_t thread; /* a key: the same for rows of one thread */
	uint64_t from_ns, until_ns;
};

/* A zeroed struct with the first three set is valid and empty. */
struct intervals {
	const struct profile *profile; /* not owned */
	uint64_t least_ns; /* shorter spans and calls are left out */
	const char *tag; /* only spans with this tag; NULL: all, and calls; not owned */
	struct vec(struct interval) items; /* sorted; those of a thread do not overlap */
	uint64_t met; /* spans and calls in the profile */
};

/* Finds them all. Returns 0 or -errno. */
int intervals_find(struct intervals *intervals);
void intervals_release(struct intervals *intervals);
bool intervals_has(const struct intervals *intervals, const struct profile_sample *sample); /* the sample is in one */
