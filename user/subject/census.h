/* SPDX-License-Identifier: MIT */
/*
 * What the processes of the whole machine use, as rows of profile.usages: each interval one for each process that used
 * at least 5 % of a CPU since the last look, or has at least 5 % of the memory. All is read from /proc. A look is made
 * in short slices, between which the caller reads its rings, and takes at most a fifth of a CPU.
 */
#pragma once

#include <dirent.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

#define CENSUS_INTERVAL_MIN_NS 100000000ull /* the kernel counts CPU time in steps of 10 ms */

struct census_seen {
	uint64_t cpu_ns; /* when it was looked at */
	uint64_t time_ns;
};

/* The processes of one look. */
struct census_look {
	struct map ids; /* pid and start time -> index */
	struct vec(struct census_seen) seen;
};

struct census {
	struct profile *profile; /* NULL: it does nothing */
	uint64_t interval_ns;
	uint64_t next_ns; /* of the next look, or of the next slice */
	uint64_t began_ns; /* of the current or last look */
	DIR *folder; /* /proc, while a look goes on */
	struct census_look before, now;
	uint64_t memory_bytes; /* of the machine */
	uint64_t boot_ms; /* since 1970 */
};

/* Call when the recording begins. Half a second later, the first look finds earlier use. An interval of 0: none. */
void census_open(struct census *census, struct profile *profile, uint64_t interval_ns);
/* Looks at processes if it is time, for some milliseconds. Does nothing after the end of the profile's window. */
void census_step(struct census *census, uint64_t now_ns);
/* Returns `wait_ms`, or less if there is something to do earlier. */
int census_wait_ms(const struct census *census, uint64_t now_ns, int wait_ms);
void census_release(struct census *census);
