/* SPDX-License-Identifier: MIT */
/* The kernel's counters (PMUs), as /sys/bus/event_source/devices describes them. Used inside collect/ only. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "event/event.h"

/* Returns the number that perf_event_open() takes as type for this PMU, or -ENOENT. */
int pmu_type(const char *pmu);

/*
 * Sets type and config of `perf` by terms such as "cache-misses" and "event=0xc0,umask=1". Returns 0, or -errno with
 * one sentence in `why`.
 */
int pmu_find(struct event_perf *perf, const char *pmu, const char *terms, struct buf *why);
