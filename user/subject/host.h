/* SPDX-License-Identifier: MIT */
/* Facts about the machine for the profile: names, size, load. */
#pragma once

#include <dirent.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

/* The cloud that the machine runs in, by files of the firmware and cloud-init, not the network; "" = not known. */
#define CLOUD_BYTES 257 /* of a text with its NUL */
struct cloud {
	char provider[8]; /* "aws", "gcp" or "azure", gProfiler's words */
	char region[CLOUD_BYTES];
	char zone[CLOUD_BYTES];
	char type[CLOUD_BYTES]; /* machine type: "m5.large" */
};

void cloud_read(struct cloud *cloud, const char *root); /* `root`: prefix of all paths; "" for the host */

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

/*
 * What the processes of the whole machine use, as rows of profile.usages: each interval one for each process that used
 * at least 5 % of a CPU since the last look, or has at least 5 % of the memory. All is read from /proc. A look is made
 * in short slices, between which the caller reads its rings, and takes at most a fifth of a CPU.
 */
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
