/* SPDX-License-Identifier: MIT */
/* The BPF programs of one recording: which of them are loaded, how they are configured, how large their maps are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "collect/family.h"
#include "duet_config.h"

struct event_spec;

struct programs {
	struct duet_bpf *bpf; /* NULL before the load */
	struct bpf_program *of[DUET_PROGRAM_MAX]; /* NULL: it is not loaded, though an event has it */
	bool uses_cookie;
	struct family families[FAMILIES]; /* by index in bpf_families */
};

/*
 * Loads the programs, with signal cookies if the kernel has them. The families are open, and have checked the events.
 * Returns 0 or -errno.
 */
int programs_load(struct programs *programs, const struct collector_options *options);
void programs_unload(struct programs *programs);

/*
 * Returns the period of the perf event. Clocks and the CPU's counters tick once per interval. Other events tick each
 * time, and BPF samples one per interval.
 */
uint64_t programs_perf_period(const struct event_spec *spec);
