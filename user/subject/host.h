/* SPDX-License-Identifier: MIT */
/* Facts about the machine for the profile: names, size, load. */
#pragma once

#include "profile/profile.h"

struct host {
	uint64_t spawned_realtime_ns;
	uint64_t spawned_boot_ns;
	uint64_t busy_ticks; /* sums over all CPUs at the last host_describe() or host_open() */
	uint64_t all_ticks;
};

void host_open(struct host *host);
/* Fills profile->host except for the CPU load. */
void host_describe_machine(const struct host *host, struct profile *profile);
/* CPU time of all processes, and of all CPUs, since the machine was started. */
void host_read_cpu(uint64_t *ret_busy_ns, uint64_t *ret_all_ns);
/* Fills profile->host. The CPU load is the mean since the last host_describe() or host_open(). */
void host_describe(struct host *host, struct profile *profile);
