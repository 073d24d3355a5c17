/* SPDX-License-Identifier: MIT */
/* The way of a record from BPF's ring or an agent's ring into the join, and from there into the profile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collect/records/early.h"
#include "collect/records/parts.h"
#include "collect/tables/short_lived.h"
#include "duet_record.h"

struct budget;
struct pending;
struct engine_in_use;
struct jvms;
struct options;
struct overhead;
struct owners;
struct process_table;
struct profile;
struct selection;
struct symbols;
struct unwinding;

/* Nothing here is owned. */
struct intake_deps {
	const struct options *options;
	struct engine_in_use *engine;
	struct process_table *processes;
	struct jvms *jvms;
	struct unwinding *unwinding;
	struct pending *pending;
	struct profile *profile;
	struct symbols *symbols;
	struct owners *owners;
	struct overhead *overhead;
	struct budget *budget;
	const uint64_t *windows; /* number of windows written */
	const struct selection *selection; /* of --host: the processes that are profiled; NULL: the engine's targets */
};

/* Initialize with {0}. Used by one thread. */
struct intake {
	struct intake_deps of;
	struct early early; /* stacks of sleeps whose weight follows */
	struct parts parts; /* parts of deep stacks that BPF sent before their samples */
	struct short_lived short_lived;
	uint64_t jvms_seen; /* see new_jvms_next() */
	/* time of the last sample that was read from BPF's ring; the ring is in the order of time */
	uint64_t newest_ns;
	uint64_t read_ns; /* all samples taken before then have been read */
};

/* Opens `pending`, into which the records go. Returns 0 or -ENOMEM. Release in any case. */
int intake_open(struct intake *intake, const struct intake_deps *of);
void intake_release(struct intake *intake);
/* Call when the engine is open, before anything is read. */
void intake_begin(struct intake *intake);

/* Reads the agents' rings and BPF's ring. Returns false if BPF's ring is not empty, but reading took too long. */
bool intake_read(struct intake *intake);

/* The process of a sample, prepared for the walks of its threads. NULL when out of memory. */
struct process *intake_meet(struct intake *intake, const struct duet_sample *sample);
/* Takes a sample from BPF. It waits for its other half and for its names, and then gets into the profile. */
void intake_on_sample(struct intake *intake, const struct duet_sample *record);
