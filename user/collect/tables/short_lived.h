/* SPDX-License-Identifier: MIT */
/* Mappings of processes that ended before /proc was read. Without them their user frames have no names. */
#pragma once

#include "duet_record.h"
#include "proc/maps.h"
#include "proc/process.h"

struct collector;

/* Initialize with {0}. */
struct short_lived {
	struct collector *collector; /* the collector of the samples; not owned */
	struct process_table *processes; /* not owned */
	/*
	 * Mappings of processes that may have ended before /proc is read. The owner adds to it once a step, so that the
	 * kernel's buffers do not overflow.
	 */
	struct mapping_log log;
};

/*
 * Gives the process the mappings that it had at the time of the sample, if the kernel's records reach back that far.
 * Does so only if its mappings could not be read, or were read after it had executed another program.
 */
void short_lived_map(struct short_lived *lived, struct process *process, const struct duet_sample *sample);
void short_lived_release(struct short_lived *lived);
