/* SPDX-License-Identifier: MIT */
/*
 * Sleeps of users who have used up what looking at sleeps may cost. Such a sleep is not looked at, and one of those
 * that were passed over since stands for all of them: it has their weight. Each is chosen with a probability in
 * proportion to its weight. So sums are exact, and what a stack gets is right on average.
 */
#pragma once

#include "base/map.h"
#include "duet_record.h"
#include "proc/process.h"

#define THINNED_MAX 64 /* users and events for which a sleep is kept; of others, all sleeps are looked at */

struct thinned_sleep {
	uint64_t weight; /* of all sleeps that it stands for */
	struct process *process; /* a reference */
	struct duet_sample sample;
};

/* Initialize with {0}. */
struct thinned {
	struct map kept; /* payer and event -> struct thinned_sleep, owned */
	uint64_t random;
	struct thinned_sleep *taken; /* of the last call; owned */
};

/*
 * Passes over the sample of a sleep, or returns NULL and keeps it if `is_covered` is false. Otherwise returns one that
 * stands for it and for those that were kept, and its process; it is valid until the next call.
 */
const struct duet_sample *thinned_take(struct thinned *thinned, struct process **process,
				       const struct duet_sample *sample, bool is_covered);
/* Returns one that was kept, for the end of a window, as thinned_take(). NULL if there is none. */
const struct duet_sample *thinned_next(struct thinned *thinned, struct process **ret_process);
void thinned_release(struct thinned *thinned);
