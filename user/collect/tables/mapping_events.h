/* SPDX-License-Identifier: MIT */
/* The kernel's records of exec, fork and executable mappings of every process. Used inside collect/ only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "duet_record.h"
#include "proc/maps.h"
#include "proc/process.h"

struct mapping_events;

/* The rings of all CPUs together take at most `most_bytes`, except that each has at least two pages. 0 or -errno. */
int mapping_events_open(struct mapping_events **ret, size_t most_bytes);
void mapping_events_close(struct mapping_events *events);
/* These functions take NULL, which has no records. */
size_t mapping_events_bytes(const struct mapping_events *events); /* bytes of the rings */
uint64_t mapping_events_count(const struct mapping_events *events); /* records made so far, lost ones included */
/*
 * Opens the rings again, when CPUs have come online: the kernel has ended theirs. Records of a moment come twice. Keeps
 * the old rings if the kernel refuses.
 */
void mapping_events_renew(struct mapping_events *events);
/* Adds the waiting records to `log`, and the number of records that were lost to *lost. */
void mapping_events_read(struct mapping_events *events, struct mapping_log *log, uint64_t *lost);

/* Mappings of processes that ended before /proc was read. Without them their user frames have no names. */

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
