/* SPDX-License-Identifier: MIT */
/*
 * Which CPUs have come back: they were switched off and on again, by hand or in a suspend to memory, or were added. The
 * kernel ends the perf events of a CPU that goes, and does not begin them again. Used inside collect/ only.
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"

#define CPUS_FOLDER "/sys/devices/system/cpu"

/* All zero: no CPU is known, and none comes back. */
struct cpus {
	int folder; /* owned, if there are marks */
	uint64_t looked_ns; /* of the last look, set by cpus_step(); 0: that does not look */
	struct vec(uint64_t) marks; /* of each possible CPU: changes whenever the CPU comes; 0: it is off */
};

/* Notes the CPUs that there are, of at most `count`. Without `folder`, or memory, all stays zero. */
void cpus_open(struct cpus *cpus, const char *folder, int count);
void cpus_release(struct cpus *cpus);
/* Calls `came` for each CPU that has come since the last look, however short it was away. Returns how many. */
int cpus_look(struct cpus *cpus, void (*came)(void *context, int cpu), void *context);
/* The same, but only once a second. */
int cpus_step(struct cpus *cpus, uint64_t now_ns, void (*came)(void *context, int cpu), void *context);
