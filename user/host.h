/* SPDX-License-Identifier: MIT */
/* What the profile says of the machine: names, size, how busy it was. */
#ifndef HOST_H
#define HOST_H

#include "profile/profile.h"

struct host {
	uint64_t spawned_realtime_ns;
	uint64_t spawned_boot_ns;
	uint64_t busy_ticks; /* of all CPUs, when it was last described */
	uint64_t all_ticks;
};

void host_open(struct host *host);
/* Fills profile->host; the CPUs' load is the mean since the last description or host_open(). */
void host_describe(struct host *host, struct profile *profile);

#endif
