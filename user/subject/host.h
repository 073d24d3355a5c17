/* SPDX-License-Identifier: MIT */
/* Facts about the machine for the profile: names, size, load. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"

/* Finds the cloud that the machine runs in, from files of the firmware and cloud-init. No network requests. A field is "" when unknown. */
struct cloud {
	struct buf provider; /* "aws", "gcp" or "azure", gProfiler's words */
	struct buf region;
	struct buf zone;
	struct buf type; /* machine type: "m5.large" */
};

void cloud_read(struct cloud *cloud, const char *root); /* `root`: prefix of all paths; "" for the host */
void cloud_release(struct cloud *cloud);

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
