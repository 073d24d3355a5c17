/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of --max-overhead: chooses how many ticks one sample accounts for, so that the cost stays within the
 * limit. Fewer samples do not reduce the work that is done once for each file, process and JVM. This work counts too,
 * but spread over the ten minutes that follow. So the start of a recording does not slow sampling down, and on a host
 * that starts JVMs all the time their cost counts steadily.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pace {
	double max_percent; /* of all CPUs; 0 = no limit */
	uint32_t every; /* one tick in this many makes a sample */
	uint32_t every_max;
	double percent; /* of all CPUs: weighted mean of the looks since the rate last changed */
	uint64_t due_ns; /* one-time work that is not counted yet */
	unsigned looks;
	unsigned over; /* looks in a row that found more than the limit */
	unsigned calm; /* looks in a row that found much less than the limit */
	bool is_fresh; /* no look since the last change: the mean belongs to the old rate */
};

/* CPU time since the last look. */
struct pace_spent {
	uint64_t sampling_ns;
	uint64_t once_ns;
	uint64_t time_ns; /* wall-clock time */
	uint64_t cpus;
};

void pace_init(struct pace *pace, double max_percent, uint64_t every_max);
uint64_t pace_wait_ns(const struct pace *pace); /* time from one look to the next */
/* Call when pace_wait_ns() has passed. Returns true if `every` has changed. */
bool pace_look(struct pace *pace, const struct pace_spent *spent);
