/* SPDX-License-Identifier: MIT */
/*
 * --max-overhead: how many ticks one sample stands for, so that sampling costs what it may. What is spent once for each
 * file, process and JVM would not become less with fewer samples: it counts, but spread over the minutes that follow.
 * So a start does not slow sampling down, and a host that starts JVMs all the time pays for it as it goes.
 */
#ifndef LIMITS_PACE_H
#define LIMITS_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
	double max_percent; /* of all CPUs; 0 = no limit */
	uint32_t every; /* ticks a sample */
	uint32_t every_max;
	double percent; /* of all CPUs: mean of the last looks since the rate last changed */
	uint64_t due_ns; /* spent once and not yet counted */
	unsigned looks;
	unsigned over; /* looks in a row that found more than the limit */
	unsigned calm; /* looks in a row that found much less than the limit */
	bool is_fresh; /* no look since the last change: the mean is of another rate */
};

/* CPU time since the last look. */
struct pace_spent {
	uint64_t sampling_ns;
	uint64_t once_ns;
	uint64_t time_ns; /* that there was */
	uint64_t cpus;
};

void pace_init(struct pace *pace, double max_percent, uint64_t every_max);
uint64_t pace_wait_ns(const struct pace *pace); /* from one look to the next */
bool pace_look(struct pace *pace, const struct pace_spent *spent); /* true when `every` is another one now */

#endif
